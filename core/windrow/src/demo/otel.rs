//! `windrow demo --scene otel`: agents that send OpenTelemetry's logs, traces and metrics to the gateway.

use std::net::{Ipv4Addr, SocketAddr};

use windrow_settings::{Backend, Settings};
use windrow_upclick::{run_otel, Inserts, OtelOptions, Output, StopRequests};

use super::through;
use crate::cli::DemoArguments;
use crate::gateway::Gateway;
use crate::write_out;

pub(super) const AGENTS: usize = 300;

/// Opens the ports of OTLP where the settings open none.
pub(super) fn open_ports(settings: &mut Settings) -> Result<(), String> {
    if !matches!(settings.backend, Backend::Embedded | Backend::ClickHouse(_)) {
        return Err("the tables of OpenTelemetry are for ClickHouse: choose it with --backend".to_owned());
    }
    if settings.http.tls.is_some() {
        return Err("the scene's agents speak no TLS: leave `http.tls_certificate` out".to_owned());
    }
    let otlp = &settings.otlp;
    if otlp.tenants.are_used || !otlp.mappings.is_empty() {
        return Err("the scene looks into the exporter's tables: leave out [[otlp.mappings]] and `{tenant}`".to_owned());
    }
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    settings.otlp.grpc_listen.get_or_insert(free);
    settings.otlp.http_listen.get_or_insert(free);
    Ok(())
}

pub(super) async fn play(
    settings: &Settings,
    arguments: &DemoArguments,
    gateway: &Gateway,
    stop: StopRequests,
) -> Result<(), String> {
    // gRPC, then HTTP: both were named.
    let [grpc, http] = gateway.otlp[..] else { return Err("the ports of OTLP are not open".to_owned()) };
    let dashboard = format!("http://{}/", gateway.admin);
    let told =
        format!("windrow takes OTLP over gRPC on {grpc} and over HTTP on {http}, its dashboard is at {dashboard}\n");
    write_out(told.as_bytes())?;
    let tables = &settings.otlp.tables;
    let mut destination = through(settings, gateway, Inserts::Waiting);
    destination.database.clone_from(&tables.database);
    let options = OtelOptions {
        destination,
        grpc: grpc.to_string(),
        http: http.to_string(),
        tables: [
            vec![tables.logs.clone()],
            vec![tables.traces.clone()],
            vec![tables.sum.clone(), tables.histogram.clone(), tables.gauge.clone()],
        ],
        agents: arguments.probes.unwrap_or(AGENTS),
        every: arguments.every,
        run_for: arguments.run_for,
        output: if arguments.plain { Output::Plain } else { Output::Auto },
        dashboard,
    };
    run_otel(options, stop).await.map(drop).map_err(|error| error.to_string())
}
