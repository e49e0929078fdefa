//! Backend of the gateway: a ClickHouse, or a database that takes SQL and no requests (`sql_backend/`).
//!
//! ClickHouse says itself who may do what, and answers whatever is not gathered. Before the others the gateway decides,
//! and answers.

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::{Call, CallError, Client, Cluster, Credentials};
use windrow_engine::sink::{Batch, ClickHouseSink, Destination, Load, Sink, StoreError, Stored, TableKey};

use crate::admission::UserKey;
use crate::data::{caller, Caller, Identity};
use crate::native::NativeBackend;
use crate::options::DefaultUser;
use crate::sql_backend::{SqlBackend, SqlSink};

#[derive(Clone)]
pub enum Backend {
    ClickHouse(ClickHouse),
    Sql(SqlBackend),
}

#[derive(Clone)]
pub struct ClickHouse {
    /// For flushes, admissions and the gateway's own questions.
    pub client: Arc<Client>,
    /// For what is forwarded: slow readers can't take the other's connections.
    pub relay: Arc<Client>,
    /// Whose shards get the rows of its Distributed tables straight.
    pub cluster: Option<Arc<Cluster>>,
    /// For what native clients send that is not gathered. `None`: none is served.
    pub native: Option<Arc<NativeBackend>>,
}

impl Backend {
    /// Gives the ClickHouse, for what it alone has: replicas, shards, formats that only it reads, forwarding.
    pub(crate) fn clickhouse(&self) -> Option<&ClickHouse> {
        match self {
            Backend::ClickHouse(clickhouse) => Some(clickhouse),
            Backend::Sql(_) => None,
        }
    }

    /// Name of its kind in the settings, on the dashboard and in traces.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Backend::ClickHouse(_) => "clickhouse",
            Backend::Sql(backend) => backend.kind(),
        }
    }

    /// Finds the account of a request that says who it is from.
    pub(crate) fn caller(&self, identity: Identity, default_user: Option<&DefaultUser>) -> Caller {
        match self {
            Backend::ClickHouse(_) => caller(identity, default_user),
            Backend::Sql(backend) => backend.caller(identity),
        }
    }

    /// Finds the database that a user begins in, if it is there and the user may see it.
    pub(crate) async fn find_database(&self, key: &UserKey, timeout: Duration) -> Result<(), CallError> {
        match self {
            Backend::ClickHouse(clickhouse) => find_database(&clickhouse.relay, key, timeout).await,
            Backend::Sql(backend) => backend.find_database(key).await.map_err(CallError::Exception),
        }
    }

    /// Whom the gateway's own questions come from.
    pub(crate) fn own_credentials(&self) -> &Credentials {
        match self {
            Backend::ClickHouse(clickhouse) => &clickhouse.client.endpoint().credentials,
            Backend::Sql(backend) => backend.own_credentials(),
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

    /// A table is to be known by one name: DuckDB's schema `main` is the database `default`.
    pub(crate) fn canonical_database(&self, database: &str) -> String {
        match self {
            Backend::ClickHouse(_) => database.to_owned(),
            Backend::Sql(backend) => backend.canonical_database(database),
        }
    }

    /// Whether it takes requests: what is not gathered is forwarded to it. Else the gateway answers all there is.
    pub(crate) fn takes_requests(&self) -> bool {
        self.clickhouse().is_some()
    }

    /// Whether the gateway itself knows who is who. Else the backend is asked.
    pub(crate) fn knows_users(&self) -> bool {
        !self.takes_requests()
    }

    /// Whether the gateway itself lets this user only read.
    pub(crate) fn is_readonly(&self, credentials: &Credentials) -> bool {
        match self {
            Backend::ClickHouse(_) => false,
            Backend::Sql(backend) => backend.access(credentials).is_some_and(|access| access.readonly),
        }
    }

    /// `changed` is called when tables may have changed, however that was asked for: over HTTP, over Flight SQL, in a
    /// transaction of either. A backend that others change as well can't tell.
    pub(crate) fn when_tables_change(&self, changed: impl Fn() + Send + Sync + 'static) {
        if let Backend::Sql(backend) = self {
            backend.when_tables_change(changed);
        }
    }
}

pub(crate) async fn find_database(client: &Client, key: &UserKey, timeout: Duration) -> Result<(), CallError> {
    let call = Call::new(&key.credentials, "SELECT 1").timeout(timeout);
    let call = key.database.iter().fold(call, |call, database| call.param("database", database));
    client.call(call).await.map(drop)
}

/// Where the gatherer's batches go.
pub enum BackendSink {
    ClickHouse(ClickHouseSink),
    Sql(SqlSink),
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
