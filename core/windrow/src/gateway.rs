use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use windrow_engine::{Leftovers, ShutDown};
use windrow_gateway::{bind, AdminOptions, AdminServer, Cluster, DataServer, GatewayOptions, GatewayStores, Port};
use windrow_settings::Settings;

use crate::appends::{self, Appends};
use crate::backend::RunningBackend;
use crate::data_dir_lock::DataDirLock;
use crate::data_directory::{self, DataDirectory};
use crate::dead_letters;
use crate::deduplication;
use crate::descriptors;
use crate::flight::{self, FlightServer};
use crate::kafka::{self, Pipelines};
use crate::logging;
use crate::readiness::Readiness;
use crate::reload::{self, Load, Reload};
use crate::service_manager::{ServiceManager, READY, RELOADING, STOPPING};
use crate::signals::{Asked, Signals};
use crate::traces::Traces;
use crate::without;

/// Time that streams of Flight SQL have to come to their end.
const STREAMS_GRACE: Duration = Duration::from_secs(2);
/// Shortest time that everything else has to end, however long pipelines took.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// A gateway that accepts requests.
pub(crate) struct Gateway {
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// The addresses of OTLP's ports: gRPC, then HTTP, as far as they are open.
    pub(crate) otlp: Vec<SocketAddr>,
    data: Arc<DataServer>,
    appends: Appends,
    flight: Option<FlightServer>,
    pipelines: Pipelines,
    backend: RunningBackend,
    readiness: Readiness,
    shutdown_timeout: Duration,
    data_directory: DataDirectory,
    reload: Arc<Reload>,
    traces: Option<Traces>,
}

/// Opens the ports of the native protocol.
fn native_listeners(settings: &Settings) -> Result<Vec<(TcpListener, Port)>, String> {
    named_listeners([
        (settings.native.listen, "native.listen", Port::Native),
        (settings.native.tls_listen, "native.tls_listen", Port::NativeTls),
    ])
}

fn otlp_listeners(settings: &Settings) -> Result<Vec<(TcpListener, Port)>, String> {
    if cfg!(not(feature = "otlp")) && settings.otlp.grpc_listen.or(settings.otlp.http_listen).is_some() {
        return Err(without::missing("otlp", "`otlp.grpc_listen` and `otlp.http_listen`"));
    }
    named_listeners([
        (settings.otlp.grpc_listen, "otlp.grpc_listen", Port::OtlpGrpc),
        (settings.otlp.http_listen, "otlp.http_listen", Port::OtlpHttp),
    ])
}

/// Opens the ports that the settings name.
fn named_listeners(named: [(Option<SocketAddr>, &'static str, Port); 2]) -> Result<Vec<(TcpListener, Port)>, String> {
    let open = |(at, setting, port): (Option<SocketAddr>, &'static str, Port)| {
        Some(bind(at?, setting).map(|listener| (listener, port)).map_err(|error| error.to_string()))
    };
    named.into_iter().filter_map(open).collect()
}

impl Gateway {
    /// Starts a gateway. Ports are taken first, so that a mistake there shows at once, and served last: a
    /// client that gets an answer can be served. Inserts that an earlier run left in the journal are stored
    /// meanwhile.
    pub(crate) async fn start(settings: Settings, load: Load) -> Result<Gateway, String> {
        let settings = Arc::new(settings);
        let pipelines = kafka::all_options(&settings)?;
        let certificates = reload::certificates(&settings)?;
        let http_listener = bind(settings.http.listen, "http.listen").map_err(|error| error.to_string())?;
        let admin_listener = bind(settings.admin.listen, "admin.listen").map_err(|error| error.to_string())?;
        let (native, otlp) = (native_listeners(&settings)?, otlp_listeners(&settings)?);
        let flight_listener = flight::listen(&settings)?.map(|address| bind(address, "flight.listen")).transpose();
        let flight_listener = flight_listener.map_err(|error| error.to_string())?;
        let address = |listener: &tokio::net::TcpListener| listener.local_addr().map_err(|error| error.to_string());
        let (http, admin) = (address(&http_listener)?, address(&admin_listener)?);

        let lock = DataDirLock::acquire(&settings.data_dir).map_err(|error| error.to_string())?;
        let journal = data_directory::journal(&settings).await?;
        let backend = RunningBackend::start(&settings).await?;
        let mut registry = Registry::default();
        let traces = settings.tracing.as_ref().map(|tracing| Traces::start(tracing, &mut registry)).transpose()?;
        let mut options = GatewayOptions::new(settings.clone(), backend.default_user.clone());
        options.cluster = Cluster::of(&settings, &mut registry)?;
        options.tracer = traces.as_ref().map(|traces| traces.tracer.clone());
        #[cfg(feature = "otlp")]
        {
            options.otlp = Some(Arc::new(windrow_otlpserver::OtlpServer::register(&mut registry)));
        }
        let opened_dead_letters = dead_letters::open(&settings, &mut registry)?;
        let deduplication = deduplication::open(&settings)?;
        let dead_letters = opened_dead_letters.dead_letters.clone();
        let stores = GatewayStores {
            journal: journal.opened,
            deduplication: deduplication.opened,
            dead_letters: opened_dead_letters.dead_letters,
        };
        let behind = backend.gateway.clone();
        let appends = appends::start(&settings, &backend, &mut registry)?;
        let data = Arc::new(DataServer::new(behind, stores, options, certificates, &mut registry));
        appends::serve(&data, &appends);
        let readiness = Readiness::follow(backend.available.clone(), &mut registry);
        let ready = {
            let (readiness, data) = (readiness.clone(), data.clone());
            move || readiness.verdict(data.goes_by_what_was_kept())
        };
        let flight = match flight_listener {
            Some(listener) => flight::start(listener, &settings, &backend, appends.clone(), &mut registry)?,
            None => None,
        };
        let pipelines = Pipelines::start(pipelines, &data, &dead_letters, &mut registry);
        let reload = Arc::new(Reload::new(load, data.clone(), settings.clone(), backend.look_up()));
        let token = settings.admin.token.as_ref().map(|secret| secret.expose().to_owned());
        let reloads = {
            let reload = reload.clone();
            move || reload.run()
        };
        AdminServer::new(registry, &data, AdminOptions { token }, ready, reloads).start(admin_listener);
        data.start(http_listener, Port::Http);
        let all_at = |listeners: &[(TcpListener, Port)]| {
            let at = listeners.iter().filter_map(|(listener, _)| Some(address(listener).ok()?.to_string()));
            let at: Vec<String> = at.collect();
            (!at.is_empty()).then(|| at.join(","))
        };
        let (native_at, otlp_at) = (all_at(&native), all_at(&otlp));
        let otlp_addresses = otlp.iter().map(|(listener, _)| address(listener)).collect::<Result<_, _>>()?;
        native.into_iter().chain(otlp).for_each(|(listener, port)| data.start(listener, port));
        let flight_at = flight.as_ref().map(|flight| tracing::field::display(flight.address()));
        tracing::info!(%http, %admin, native = native_at, flight = flight_at, otlp = otlp_at, backend = backend.name, "windrow is ready");
        let data_directory =
            DataDirectory::new(lock, vec![journal.writer, deduplication.writer, opened_dead_letters.writer]);
        let shutdown_timeout = Duration::from_millis(settings.gather.shutdown_timeout_ms);
        Ok(Gateway {
            http,
            admin,
            otlp: otlp_addresses,
            data,
            appends,
            flight,
            pipelines,
            backend,
            readiness,
            shutdown_timeout,
            data_directory,
            reload,
            traces,
        })
    }

    /// Reads the settings anew; the outcome is in the log.
    async fn reload(&self) {
        let reload = self.reload.clone();
        // It reads files.
        let _ = tokio::task::spawn_blocking(move || reload.run()).await;
    }

    #[cfg(feature = "demo")]
    pub(crate) fn engine(&self) -> Option<&crate::embedded::RunningEngine> {
        self.backend.engine()
    }

    /// Stops in order: first the pipelines, which go on storing while they have something; then the ports,
    /// then the inserts that have been gathered, then the backend, and last the journal: until the backend
    /// has ended there may be word that something is stored. Returns false where something acknowledged is
    /// neither stored nor in the journal.
    pub(crate) async fn stop(self) -> bool {
        tracing::info!("shutting down: no more requests are taken, buffers are flushed");
        self.readiness.note_end();
        let began = Instant::now();
        self.pipelines.stop(self.shutdown_timeout).await;
        let left = self.shutdown_timeout.saturating_sub(began.elapsed()).max(LAST_GRACE);
        if let Some(flight) = self.flight {
            flight.shut_down(STREAMS_GRACE).await;
        }
        self.appends.shut_down().await;
        let ShutDown { lost_inserts, .. } = self.data.shut_down(left).await;
        if let Some(traces) = self.traces {
            traces.stop().await;
        }
        self.backend.stop().await;
        let Leftovers { inserts, bytes } = self.data.gatherer().leftovers();
        self.data_directory.stop().await;
        if inserts > 0 {
            let text =
                "some inserts could not be stored within gather.shutdown_timeout_ms: they are in the journal, and the \
                        next start stores them";
            tracing::warn!(inserts, bytes, "{text}");
        }
        if lost_inserts > 0 {
            let text = "inserts that were acknowledged at level memory are lost: they could not be stored within \
                        gather.shutdown_timeout_ms";
            tracing::error!(inserts = lost_inserts, "{text}");
        }
        lost_inserts == 0
    }
}

/// Runs `windrow serve`.
pub(crate) fn serve(settings: Settings, load: Load) -> Result<ExitCode, String> {
    logging::start(&settings.log)?;
    descriptors::raise_limit(&settings)?;
    let manager = ServiceManager::of_process()?;
    runtime()?.block_on(async {
        // Listened for before anything starts, so that an early signal ends in order too.
        let mut signals = Signals::listen()?;
        let starting = Gateway::start(settings, load);
        tokio::pin!(starting);
        let mut has_to_reload = false;
        let gateway = loop {
            tokio::select! {
                gateway = &mut starting => break gateway?,
                asked = signals.next() => match asked {
                    Asked::Stop => return Ok(ExitCode::SUCCESS),
                    Asked::Reload => has_to_reload = true,
                },
            }
        };
        if has_to_reload {
            gateway.reload().await;
        }
        manager.tell(READY);
        loop {
            tokio::select! {
                () = manager.feed_watchdog() => {}
                asked = signals.next() => match asked {
                    Asked::Stop => break,
                    Asked::Reload => {
                        manager.tell(RELOADING);
                        gateway.reload().await;
                        manager.tell(READY);
                    }
                },
            }
        }
        manager.tell(STOPPING);
        Ok(if gateway.stop().await { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| error.to_string())
}
