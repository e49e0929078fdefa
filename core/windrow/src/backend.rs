use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{watch, Notify};
use windrow_clickhouse::{
    Call, CallError, Choice, Client, ClientOptions, Cluster, Credentials, Dialer, Endpoint, Replicas, SrvRecord,
    TlsError,
};
use windrow_gateway::{ClickHouse, DefaultUser, NativeBackend};
use windrow_settings::{Backend, ClickHouseUrl, ReplicaChoice, Settings};

use crate::embedded::{self, RunningEngine};
use crate::sql_backend::{self, SqlDatabase};

/// The answer to the question whether the backend can be reached; the error is a sentence that says why not.
pub(crate) type Availability = watch::Receiver<Result<(), String>>;

/// The backend of a gateway that runs.
pub(crate) struct RunningBackend {
    pub(crate) gateway: windrow_gateway::Backend,
    /// The backend's name as the log shows it.
    pub(crate) name: String,
    pub(crate) available: Availability,
    pub(crate) default_user: Option<DefaultUser>,
    /// The database that takes SQL, where the backend is one.
    pub(crate) sql: Option<SqlDatabase>,
    /// The embedded ClickHouse, where that is the backend.
    engine: Option<RunningEngine>,
    look_up: Arc<Notify>,
}

const ASK_INTERVAL: Duration = Duration::from_secs(2);
/// The time limit of one answer. `FIRST_ANSWER` is that of the first one, which the start waits for.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);
const FIRST_ANSWER: Duration = Duration::from_secs(1);

impl RunningBackend {
    pub(crate) async fn start(settings: &Settings) -> Result<RunningBackend, String> {
        let look_up = Arc::new(Notify::new());
        match &settings.backend {
            Backend::Embedded => embedded::start(settings).await,
            Backend::DuckDb(place) => sql_backend::duckdb(settings, place).await,
            Backend::Adbc(url) => sql_backend::adbc(settings, url).await,
            Backend::ClickHouse(urls) => {
                let endpoints = urls.iter().map(endpoint).collect();
                let replicas = match urls.iter().any(|url| url.is_srv_record) {
                    true => named_by_record(settings, endpoint(&urls[0]), look_up.clone()).await?,
                    false => {
                        Arc::new(Replicas::new(endpoints, choice(settings), &client_options(settings)).map_err(advise)?)
                    }
                };
                let native = native_address(settings)?;
                let mut clickhouse = clickhouse(settings, replicas, native)?;
                clickhouse.client.replicas().watch();
                clickhouse.cluster = cluster(settings, &clickhouse.client)?;
                if let Some(cluster) = &clickhouse.cluster {
                    // Before anything that was cut by shards is stored or comes again.
                    let _ = tokio::time::timeout(FIRST_ANSWER, cluster.ask()).await;
                    cluster.follow();
                }
                let available = ask_now_and_then(clickhouse.client.clone()).await;
                Ok(RunningBackend {
                    name: clickhouse.client.replicas().to_string(),
                    gateway: windrow_gateway::Backend::ClickHouse(clickhouse),
                    available,
                    default_user: None,
                    sql: None,
                    engine: None,
                    look_up,
                })
            }
        }
    }

    /// Returns the signal that has the record which names the replicas looked up at once.
    pub(crate) fn look_up(&self) -> Arc<Notify> {
        self.look_up.clone()
    }

    /// Wraps a ClickHouse that this process runs for itself.
    #[cfg(feature = "embedded")]
    pub(crate) fn embedded(
        engine: RunningEngine,
        clickhouse: ClickHouse,
        default_user: DefaultUser,
        available: Availability,
    ) -> RunningBackend {
        RunningBackend {
            name: clickhouse.client.endpoint().to_string(),
            gateway: windrow_gateway::Backend::ClickHouse(clickhouse),
            available,
            default_user: Some(default_user),
            sql: None,
            engine: Some(engine),
            look_up: Arc::default(),
        }
    }

    /// Wraps a database that takes SQL.
    #[cfg(feature = "sql")]
    pub(crate) fn sql(database: SqlDatabase, settings: &Settings, available: Availability) -> RunningBackend {
        let served = windrow_sqlbackend::ServedDatabase::new(database.clone(), settings);
        RunningBackend {
            gateway: windrow_gateway::Backend::Sql(Arc::new(served)),
            sql: Some(database),
            name: settings.backend.to_string(),
            available,
            default_user: None,
            engine: None,
            look_up: Arc::default(),
        }
    }

    /// Returns the embedded ClickHouse, where that is the backend.
    #[cfg(feature = "demo")]
    pub(crate) fn engine(&self) -> Option<&RunningEngine> {
        self.engine.as_ref()
    }

    pub(crate) async fn stop(self) {
        if let windrow_gateway::Backend::ClickHouse(ClickHouse { client, relay, cluster, .. }) = &self.gateway {
            client.close();
            relay.close();
            cluster.iter().for_each(|cluster| cluster.close());
        }
        if let Some(sql) = self.sql {
            sql.close().await;
        }
        if let Some(engine) = self.engine {
            engine.stop().await;
        }
    }
}

fn endpoint(url: &ClickHouseUrl) -> Endpoint {
    Endpoint {
        host: url.host.clone(),
        port: url.port,
        native_port: url.native_port,
        tls: url.tls,
        credentials: Credentials { user: url.user.clone(), password: url.password.expose().to_owned() },
    }
}

/// Returns the replicas that an SRV record names, and follows the record. A start does not wait for a name
/// server that can't be reached.
async fn named_by_record(settings: &Settings, like: Endpoint, look_up: Arc<Notify>) -> Result<Arc<Replicas>, String> {
    let replicas = Replicas::named_by(like.clone(), choice(settings), &client_options(settings)).map_err(advise)?;
    let replicas = Arc::new(replicas);
    let record = SrvRecord::new(like, settings.backend_dns_server)?;
    let pause = tokio::time::timeout(FIRST_ANSWER, record.update(&replicas)).await.unwrap_or_default();
    record.follow(&replicas, pause, look_up);
    Ok(replicas)
}

/// Makes the clients of a ClickHouse. `native` is the address of the native port, if it is not the usual one
/// of each server.
pub(crate) fn clickhouse(
    settings: &Settings,
    replicas: Arc<Replicas>,
    native: Option<(String, u16)>,
) -> Result<ClickHouse, String> {
    let options = client_options(settings);
    let connect_timeout = options.connect_timeout;
    let dialer = {
        let options = options.clone();
        move |endpoint: &Endpoint| {
            let usual = endpoint.native_port.unwrap_or(if endpoint.tls { 9440 } else { 9000 });
            let (host, port) = native.as_ref().map_or((&endpoint.host, usual), |(host, port)| (host, *port));
            Dialer::new(host, port, endpoint.tls, &options)
        }
    };
    Ok(ClickHouse {
        cluster: None,
        native: Some(Arc::new(NativeBackend::new(replicas.clone(), Box::new(dialer), connect_timeout))),
        client: Arc::new(Client::of(replicas.clone(), &options)),
        relay: Arc::new(Client::of(replicas, &options)),
    })
}

pub(crate) fn advise(error: TlsError) -> String {
    format!("{error}; {TLS_ADVICE}")
}

/// Returns the cluster whose tables are cut by shards, if one is set.
fn cluster(settings: &Settings, client: &Arc<Client>) -> Result<Option<Arc<Cluster>>, String> {
    if settings.backend_cluster.is_empty() {
        return Ok(None);
    }
    let addresses = settings.backend_shards.iter().map(|urls| urls.iter().map(endpoint).collect()).collect();
    let (options, choice) = (client_options(settings), choice(settings));
    let file = settings.data_dir.join("shards.json");
    Ok(Some(Arc::new(Cluster::new(&settings.backend_cluster, client.clone(), choice, options, addresses, Some(file)))))
}

fn choice(settings: &Settings) -> Choice {
    match settings.backend_choice {
        ReplicaChoice::InOrder => Choice::InOrder,
        ReplicaChoice::Nearest => Choice::Nearest,
        ReplicaChoice::RoundRobin => Choice::RoundRobin,
        ReplicaChoice::LeastLoaded => Choice::LeastLoaded,
    }
}

/// Returns the address of the native port that the setting gives.
fn native_address(settings: &Settings) -> Result<Option<(String, u16)>, String> {
    let Some(address) = &settings.backend_native_address else { return Ok(None) };
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    let problem = || format!("`backend_native.address` is host:port, as in clickhouse:9000, not '{address}'");
    parts.map(Some).ok_or_else(problem)
}

const TLS_ADVICE: &str = "see `backend_tls.ca_file` and `backend_tls.server_name`";

pub(crate) fn client_options(settings: &Settings) -> ClientOptions {
    ClientOptions {
        max_connections: settings.backend_pool.max_connections,
        connect_timeout: Duration::from_millis(settings.backend_pool.connect_timeout_ms),
        idle_timeout: Duration::from_millis(settings.backend_pool.idle_timeout_ms),
        ca_file: settings.backend_tls.ca_file.clone(),
        server_name: settings.backend_tls.server_name.clone(),
        is_own_port: false,
    }
}

async fn ask_now_and_then(client: Arc<Client>) -> Availability {
    let silent = format!("{} has not answered since Windrow's start; {LOOK}", client.replicas());
    let asking = move || {
        let client = client.clone();
        async move { ask(&client).await }
    };
    follow_answers(silent, asking).await
}

/// Asks a database that Windrow does not run itself, now and again and again. One that is silent does not
/// hold up the start.
pub(crate) async fn follow_answers<F>(silent: String, ask: impl Fn() -> F + Send + Sync + 'static) -> Availability
where
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    let first = tokio::time::timeout(FIRST_ANSWER, ask()).await.unwrap_or(Err(silent));
    let (sender, receiver) = watch::channel(first);
    tokio::spawn(async move {
        while !sender.is_closed() {
            tokio::time::sleep(ASK_INTERVAL).await;
            drop(sender.send_replace(ask().await));
        }
    });
    receiver
}

pub(crate) async fn ask(client: &Client) -> Result<(), String> {
    let call = client.call(Call::new(&client.endpoint().credentials, "SELECT 1"));
    // As a whole: its bytes may come one by one.
    let Ok(answer) = tokio::time::timeout(ANSWER, call).await else {
        return Err(format!("{} has not answered for {} s; {LOOK}", client.replicas(), ANSWER.as_secs()));
    };
    match answer {
        Err(CallError::Exception(exception)) if exception.is_about_identity() => {
            let user = &client.endpoint().credentials.user;
            Err(format!("it refuses Windrow's own user '{user}', of the setting `backend`: {}", exception.line))
        }
        Ok(_) | Err(CallError::Exception(_)) => Ok(()),
        Err(CallError::NotSent(error)) => Err(format!("{error}; {}", remedy(&error.cause.to_string()))),
        Err(CallError::Unknown(text)) => Err(format!("{text}; {LOOK}")),
    }
}

const LOOK: &str = "see that ClickHouse runs there, and that the setting `backend` names its HTTP port (8123)";

/// Returns the advice about a connection that can't be made.
fn remedy(cause: &str) -> &'static str {
    match cause {
        _ if cause.contains("InvalidContentType") => {
            "that port does not speak TLS: write http:// in the setting `backend`, or name the port that does (8443)"
        }
        _ if cause.contains("invalid peer certificate") => {
            "name who signed its certificate in `backend_tls.ca_file`, or whose it is in `backend_tls.server_name`"
        }
        _ => LOOK,
    }
}
