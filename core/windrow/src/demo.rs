mod otel;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use windrow_clickhouse::ClientOptions;
use windrow_embedded::{Embedded, EmbeddedOptions, EngineState};
use windrow_settings::{Backend, Flag, Settings};
use windrow_upclick::{
    terminal_columns, Browser, DemoOptions, Destination, Engine, Inserts, Output, PidSource, StopRequests,
};

use crate::backend::client_options;
use crate::cli::{DemoArguments, Scene};
use crate::descriptors;
use crate::embedded::RunningEngine;
use crate::gateway::{runtime, Gateway};
use crate::logging;
use crate::reload;
use crate::signals::{Asked, Signals};
use crate::{default_backend, load_with, write_out};

/// The width from which the comparison is shown unasked: in a narrower terminal it leaves the cities too
/// little room.
const COMPARES_FROM_COLUMNS: usize = 100;
const INTERRUPTED: &str = "interrupted while it started";
const STOP_GRACE: Duration = Duration::from_secs(20);

/// Runs `windrow demo`: a gateway in this process, and the probes against it and against ClickHouse itself.
pub(crate) fn run(arguments: &DemoArguments) -> Result<ExitCode, String> {
    let temporary = TemporaryFolder::create()?;
    let flags = &arguments.settings;
    let value = temporary.path.join("windrow").to_string_lossy().into_owned();
    let own = Flag { path: "data_dir".to_owned(), name: "--data-dir".to_owned(), value };
    let mut settings = load_with(flags, if flags.names("data_dir") { Vec::new() } else { vec![own] })?;
    // Where the user has not chosen: the usual ports may be in use by a gateway that does real work.
    if !flags.names("http.listen") {
        settings.http.listen.set_port(0);
    }
    if !flags.names("admin.listen") {
        settings.admin.listen.set_port(0);
    }
    if !flags.names("flight.listen") {
        settings.flight.listen = None;
    }
    if settings.log.level == "info" {
        // The picture is redrawn in place; only what went wrong may come between.
        settings.log.level = "error,clickhouse=off".to_owned();
    }
    let is_otel = arguments.scene == Some(Scene::Otel);
    if is_otel {
        otel::open_ports(&mut settings)?;
    }
    let plan = Plan::chosen(&settings, arguments)?;
    let options = plan.options(arguments);
    options.check().map_err(|error| error.to_string())?;
    logging::start(&settings.log)?;
    descriptors::raise_limit(&settings)?;
    let complete = runtime()?.block_on(async {
        // Listened for before anything starts, so that an early signal ends in order too.
        let mut stop = stop_requests()?;
        let gateway = tokio::select! {
            started = Gateway::start(settings.clone(), reload::fixed(&settings)) => started?,
            () = stop.more_than(0) => return Err(INTERRUPTED.to_owned()),
        };
        let played = match is_otel {
            true => otel::play(&settings, arguments, &gateway, stop).await,
            false => play(&settings, options, &plan, &gateway, (&temporary.path, stop)).await,
        };
        let clean = gateway.stop().await;
        played.map(|()| clean)
    })?;
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn stop_requests() -> Result<StopRequests, String> {
    let mut signals = Signals::listen()?;
    let (sender, stop) = StopRequests::channel();
    tokio::spawn(async move {
        loop {
            if let Asked::Stop = signals.next().await {
                sender.send_modify(|asked| *asked += 1);
            }
        }
    });
    Ok(stop)
}

async fn play(
    settings: &Settings,
    options: DemoOptions,
    plan: &Plan,
    gateway: &Gateway,
    (temporary, mut stop): (&Path, StopRequests),
) -> Result<(), String> {
    let through = through(settings, gateway, plan.inserts);
    let told = format!("windrow listens on {}, its dashboard is at http://{}/\n", through.url, gateway.admin);
    write_out(told.as_bytes())?;
    if let Some(notice) = default_backend::notice(settings) {
        write_out(format!("{notice}\n").as_bytes())?;
    }
    let (straight, beside) = match plan.straight {
        true => tokio::select! {
            started = straight(settings, &through, temporary) => started?,
            () = stop.more_than(0) => return Err(INTERRUPTED.to_owned()),
        },
        false => (None, None),
    };
    let through = plan.through.then_some(through);
    let options = DemoOptions {
        destinations: through.into_iter().chain(straight).collect(),
        dashboard: Some(format!("http://{}/", gateway.admin)),
        ..options
    };
    let outcome = windrow_upclick::run(options, stop).await.map(drop).map_err(|error| error.to_string());
    if let Some(beside) = beside {
        beside.stop(STOP_GRACE).await;
    }
    outcome
}

/// The destinations of the rows, and the way they are inserted.
struct Plan {
    through: bool,
    straight: bool,
    /// The kind of the inserts through Windrow.
    inserts: Inserts,
    probes: usize,
}

impl Plan {
    /// Returns all options but the destinations of the rows.
    fn options(&self, arguments: &DemoArguments) -> DemoOptions {
        DemoOptions {
            probes: arguments.probes.unwrap_or(self.probes),
            every: arguments.every,
            run_for: arguments.run_for,
            urls: arguments.urls.clone(),
            kpi_ms: arguments.kpi,
            gateway_pid: Arc::new(|| Some(std::process::id())),
            output: if arguments.plain { Output::Plain } else { Output::Auto },
            browser: if arguments.no_browser { Browser::Leave } else { Browser::Open },
            ..DemoOptions::new(Vec::new())
        }
    }

    fn chosen(settings: &Settings, arguments: &DemoArguments) -> Result<Plan, String> {
        let engine = engine(&settings.backend)?;
        let is_clickhouse = engine == Engine::ClickHouse;
        let fits = terminal_columns().is_none_or(|columns| columns >= COMPARES_FROM_COLUMNS);
        let plan = match arguments.scene {
            Some(Scene::Synchronous) => Plan { through: false, straight: true, inserts: Inserts::Waiting, probes: 200 },
            Some(Scene::Waiting) => Plan { through: true, straight: false, inserts: Inserts::Waiting, probes: 500 },
            Some(Scene::NotWaiting) => {
                Plan { through: true, straight: false, inserts: Inserts::NotWaiting, probes: 500 }
            }
            Some(Scene::Otel) => {
                Plan { through: true, straight: false, inserts: Inserts::Waiting, probes: otel::AGENTS }
            }
            None => Plan {
                through: true,
                straight: arguments.compare.unwrap_or(fits && is_clickhouse),
                inserts: if arguments.no_wait { Inserts::NotWaiting } else { Inserts::Waiting },
                probes: 200,
            },
        };
        if plan.straight && !is_clickhouse {
            return Err(format!(
                "before {} the demo's inserts all go through Windrow: leave out --compare and --scene synchronous, or \
                 choose ClickHouse with --backend",
                engine.name()
            ));
        }
        Ok(plan)
    }
}

/// Returns the engine whose SQL the demo's queries are written in.
fn engine(backend: &Backend) -> Result<Engine, String> {
    match backend {
        Backend::Embedded | Backend::ClickHouse(_) => Ok(Engine::ClickHouse),
        Backend::DuckDb(_) => Ok(Engine::DuckDb),
        Backend::Adbc(url) => match url.scheme.as_str() {
            "postgresql" | "postgres" => Ok(Engine::PostgreSql),
            "sqlite" => Ok(Engine::Sqlite),
            other => Err(format!(
                "the demo's queries are for ClickHouse, DuckDB, PostgreSQL and SQLite, not for {other}: choose one of \
                 them with --backend"
            )),
        },
    }
}

fn through(settings: &Settings, gateway: &Gateway, inserts: Inserts) -> Destination {
    let scheme = if settings.http.tls.is_some() { "https" } else { "http" };
    let through = Destination {
        client: ClientOptions { is_own_port: true, ..ClientOptions::default() },
        flush_after: Duration::from_secs(if inserts == Inserts::NotWaiting { 5 } else { 1 }),
        database_pid: engine_pid(gateway.engine().map(RunningEngine::state)),
        engine: engine(&settings.backend).unwrap_or_default(),
        ..Destination::new(format!("{scheme}://{}", gateway.http), inserts)
    };
    let secret =
        |password: &Option<windrow_settings::Secret>| password.as_ref().map_or("", |secret| secret.expose()).to_owned();
    match &settings.backend {
        Backend::Embedded => Destination { password: secret(&settings.embedded.default_password), ..through },
        Backend::DuckDb(_) => Destination { password: secret(&settings.duckdb.default_password), ..through },
        Backend::Adbc(_) => Destination { password: secret(&settings.adbc.default_password), ..through },
        Backend::ClickHouse(replicas) => {
            let first = &replicas[0];
            Destination { user: first.user.clone(), password: first.password.expose().to_owned(), ..through }
        }
    }
}

/// Returns the destination without Windrow: the server behind it, or, beside an embedded ClickHouse, another
/// one of its own, so that each has its own CPU.
async fn straight(
    settings: &Settings,
    through: &Destination,
    temporary: &Path,
) -> Result<(Option<Destination>, Option<Embedded>), String> {
    let straight = |url: String| Destination {
        url,
        inserts: Inserts::Synchronous,
        client: ClientOptions::default(),
        ..through.clone()
    };
    if let Backend::ClickHouse(replicas) = &settings.backend {
        let server = &replicas[0];
        if server.is_srv_record {
            return Err("name one of the servers in `backend`: rows go straight to it beside Windrow".to_owned());
        }
        let scheme = if server.tls { "https" } else { "http" };
        let host = if server.host.contains(':') { format!("[{}]", server.host) } else { server.host.clone() };
        let url = format!("{scheme}://{host}:{}", server.port);
        return Ok((Some(Destination { client: client_options(settings), ..straight(url) }), None));
    }
    let mut options = EmbeddedOptions::new(temporary.join("straight"));
    options.engine.clone_from(&settings.embedded.engine);
    let engine = Embedded::start(options).await.map_err(|error| error.to_string())?;
    let at = engine.endpoint();
    let (user, password, url) = (at.user.clone(), at.password.clone(), at.url.clone());
    let database_pid = engine_pid(Some(engine.state()));
    Ok((Some(Destination { user, password, database_pid, ..straight(url) }), Some(engine)))
}

fn engine_pid(state: Option<watch::Receiver<EngineState>>) -> PidSource {
    Arc::new(move || match *state.as_ref()?.borrow() {
        EngineState::Up { pid, .. } => Some(pid),
        _ => None,
    })
}

/// The folder of the demo's files, which is deleted when the demo ends.
struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    fn create() -> Result<TemporaryFolder, String> {
        let random = getrandom::u64().map_err(|error| format!("the system gives no random numbers: {error}"))?;
        let path = std::env::temp_dir().join(format!("windrow-demo-{random:016x}"));
        // Others write in there as well: it is nobody's but ours, and none that was there before.
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(TemporaryFolder { path })
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("windrow: {} could not be removed: {error}", self.path.display());
        }
    }
}
