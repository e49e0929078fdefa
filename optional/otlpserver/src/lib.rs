//! The server of OpenTelemetry's protocol, OTLP: logs, traces and metrics go into the tables of the collector's ClickHouse
//! exporter, each request as one insert for each of its tables ([`ColumnInsert`](windrow_gateway::protocol::ColumnInsert)).
//!
//! - `http.rs` and `grpc.rs`: a request is read from a connection (`payload.rs`), and answered.
//! - `sender.rs`: on whose behalf it comes, before anything of its body is read.
//! - `export.rs`: what is in it is cut by tenants (`tenants.rs`) and tables, and handed over.
//! - `tables.rs`: what is known of a table that rows go into; `create.rs` makes one that is missing.
//! - `refused.rs`: what a sender is told that has to send again, or not; `dead_letters.rs` keeps rows that their
//!   sender drops, though others of its request were taken.
//! - `metrics.rs`: the counters.
//!
//! Senders repeat what was not answered, and drop what was refused for good. So nothing is answered as taken before it has
//! its ack level, and an error that may pass is never one that makes a sender drop its rows.

mod create;
mod dead_letters;
mod export;
mod grpc;
mod http;
mod metrics;
mod payload;
mod refused;
mod sender;
mod tables;
mod tenants;

use std::sync::Arc;

use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use windrow_gateway::protocol::{GatewayHandle, NewConnection, Port, ProtocolServer, SignalCounts};

use self::metrics::{Metrics, SIGNALS};
use self::tables::Tables;

/// The server of OTLP over HTTP and over gRPC.
pub struct OtlpServer {
    /// The state that all connections share.
    shared: Arc<Shared>,
}

/// The tables and counters that all connections share.
struct Shared {
    tables: Tables,
    metrics: Metrics,
}

/// The gateway, with the state of this server, as all requests use them.
#[derive(Clone)]
struct Context {
    gateway: GatewayHandle,
    shared: Arc<Shared>,
}

impl OtlpServer {
    /// Makes the server, and registers its counters.
    pub fn register(registry: &mut Registry) -> OtlpServer {
        OtlpServer { shared: Arc::new(Shared { tables: Tables::new(), metrics: Metrics::register(registry) }) }
    }
}

impl ProtocolServer for OtlpServer {
    fn serve<'a>(&'a self, gateway: &'a GatewayHandle, connection: NewConnection) -> BoxFuture<'a, ()> {
        let context = Context { gateway: gateway.clone(), shared: self.shared.clone() };
        // Boxed apart: a connection is to be as large as its own protocol makes it.
        match connection.port {
            Port::OtlpGrpc => Box::pin(async move { grpc::serve(&context, connection).await }),
            _ => Box::pin(async move { http::serve(&context, connection).await }),
        }
    }

    fn counts(&self) -> Vec<SignalCounts> {
        SIGNALS.map(|signal| self.shared.metrics.counts(signal)).to_vec()
    }

    fn forget_unused(&self) {
        self.shared.tables.forget_unused();
    }
}
