//! The backend of the gateway: a ClickHouse, or a database that takes SQL and no requests (`sql_backend/`).
//!
//! ClickHouse decides itself who may do what, and answers requests that are not gathered. In front of another
//! database, the gateway decides and answers.

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::{Call, CallError, Client, Cluster, Credentials};
use windrow_engine::sink::{Batch, ClickHouseSink, Destination, Load, Sink, StoreError, Stored, TableKey};

use crate::admission::UserKey;
use crate::data::{caller, Caller, Identity};
use crate::native::NativeBackend;
use crate::options::DefaultUser;
use crate::sql_backend::{self, SqlBackend};

#[derive(Clone)]
pub enum Backend {
    ClickHouse(ClickHouse),
    Sql(Arc<dyn SqlBackend>),
}

#[derive(Clone)]
pub struct ClickHouse {
    /// Client for flushes, admissions and the gateway's own queries.
    pub client: Arc<Client>,
    /// Client for forwarded requests. Slow readers can't take the connections of `client`.
    pub relay: Arc<Client>,
    /// The cluster whose shards get the rows of its Distributed tables directly.
    pub cluster: Option<Arc<Cluster>>,
    /// The native port, for statements of native clients that are not gathered. `None` if no native clients
    /// are served.
    pub native: Option<Arc<NativeBackend>>,
}

impl Backend {
    /// Returns the ClickHouse, for what only ClickHouse has: replicas, shards, formats that only it reads, forwarding.
    pub(crate) fn clickhouse(&self) -> Option<&ClickHouse> {
        match self {
            Backend::ClickHouse(clickhouse) => Some(clickhouse),
            Backend::Sql(_) => None,
        }
    }

    /// Returns the name of the backend's kind in the settings, on the dashboard and in traces.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Backend::ClickHouse(_) => "clickhouse",
            Backend::Sql(backend) => backend.kind(),
        }
    }

    /// Finds the account of a request, by the identity that the request claims.
    pub(crate) fn caller(&self, identity: Identity, default_user: Option<&DefaultUser>) -> Caller {
        match self {
            Backend::ClickHouse(_) => caller(identity, default_user),
            Backend::Sql(backend) => sql_backend::caller(&**backend, identity),
        }
    }

    /// Checks that the database that a user begins in exists, and that the user may see it.
    pub(crate) async fn find_database(&self, key: &UserKey, timeout: Duration) -> Result<(), CallError> {
        match self {
            Backend::ClickHouse(clickhouse) => find_database(&clickhouse.relay, key, timeout).await,
            Backend::Sql(backend) => {
                let database = key.database.as_deref().unwrap_or("default");
                backend.find_database(&key.credentials.user, database).await.map_err(CallError::Exception)
            }
        }
    }

    /// Returns the account that the gateway's own queries run under.
    pub(crate) fn own_credentials(&self) -> &Credentials {
        match self {
            Backend::ClickHouse(clickhouse) => &clickhouse.client.endpoint().credentials,
            Backend::Sql(_) => sql_backend::own_credentials(),
        }
    }

    pub(crate) fn sink(&self) -> BackendSink {
        match self {
            Backend::ClickHouse(clickhouse) => {
                BackendSink::ClickHouse(ClickHouseSink::new(clickhouse.client.clone(), clickhouse.cluster.clone()))
            }
            Backend::Sql(backend) => BackendSink::Sql(backend.sink()),
        }
    }

    /// Returns the one name that a database is known by: DuckDB's schema `main` is the database `default`.
    pub(crate) fn canonical_database(&self, database: &str) -> String {
        match self {
            Backend::ClickHouse(_) => database.to_owned(),
            Backend::Sql(backend) => backend.canonical_database(database),
        }
    }

    /// Says whether the backend takes requests. Those that are not gathered are then forwarded to the
    /// backend; otherwise the gateway answers them all.
    pub(crate) fn takes_requests(&self) -> bool {
        self.clickhouse().is_some()
    }

    /// Says whether the gateway itself knows the users; otherwise the backend is asked.
    pub(crate) fn knows_users(&self) -> bool {
        !self.takes_requests()
    }

    /// Says whether the gateway itself allows this user to read only.
    pub(crate) fn is_readonly(&self, credentials: &Credentials) -> bool {
        match self {
            Backend::ClickHouse(_) => false,
            Backend::Sql(backend) => backend.access(credentials).is_some_and(|access| access.readonly),
        }
    }

    /// Calls `changed` when tables may have changed, by whatever request: over HTTP, over Flight SQL, in a
    /// transaction of either. A backend that others change as well can't tell, and never calls it.
    pub(crate) fn when_tables_change(&self, changed: impl Fn() + Send + Sync + 'static) {
        if let Backend::Sql(backend) = self {
            backend.when_tables_change(Box::new(changed));
        }
    }
}

pub(crate) async fn find_database(client: &Client, key: &UserKey, timeout: Duration) -> Result<(), CallError> {
    let call = Call::new(&key.credentials, "SELECT 1").timeout(timeout);
    let call = key.database.iter().fold(call, |call, database| call.param("database", database));
    client.call(call).await.map(drop)
}

/// The sink that the gatherer's batches are sent to.
pub enum BackendSink {
    ClickHouse(ClickHouseSink),
    Sql(Box<dyn sql_backend::SqlSink>),
}

impl Sink for BackendSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        match self {
            BackendSink::ClickHouse(sink) => sink.store(batch).await,
            BackendSink::Sql(sink) => sink.store(batch).await,
        }
    }

    async fn answers(&self, destination: &Destination) -> bool {
        match self {
            BackendSink::ClickHouse(sink) => sink.answers(destination).await,
            BackendSink::Sql(sink) => sink.answers(destination).await,
        }
    }

    async fn load(&self, tables: &[TableKey]) -> Option<Load> {
        match self {
            BackendSink::ClickHouse(sink) => sink.load(tables).await,
            BackendSink::Sql(sink) => sink.load(tables).await,
        }
    }
}
