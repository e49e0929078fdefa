//! What stands behind the gateway: a ClickHouse that is spoken to over HTTP, or a database that takes SQL and no
//! requests: a DuckDB in the gateway's own process, or one behind an ADBC driver.
//!
//! ClickHouse says itself who may do what, and answers whatever is not gathered. Before the others the gateway decides,
//! and answers.

use std::sync::Arc;
use std::time::Duration;

use windrow_adbc::{AdbcSink, SqlDatabase};
use windrow_clickhouse::{Call, CallError, Client, Cluster, Credentials, Exception};
use windrow_duckdb::{DuckDbSink, Port, Session};
use windrow_engine::sink::{Batch, ClickHouseSink, Destination, Load, Sink, StoreError, Stored, TableKey};

use crate::admission::UserKey;
use crate::data::{caller, Caller, Identity};
use crate::native::NativeBackend;
use crate::options::DefaultUser;
use crate::users::Users;

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

#[derive(Clone)]
pub struct SqlBackend {
    pub database: SqlDatabase,
    pub users: Arc<Users>,
}

impl Backend {
    /// For what a ClickHouse alone has: replicas, shards, formats that only it reads, what is forwarded.
    pub(crate) fn clickhouse(&self) -> Option<&ClickHouse> {
        match self {
            Backend::ClickHouse(clickhouse) => Some(clickhouse),
            Backend::Sql(_) => None,
        }
    }

    /// As it is called in the settings, on the dashboard and in traces.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Backend::ClickHouse(_) => "clickhouse",
            Backend::Sql(backend) => backend.database.kind(),
        }
    }

    /// Whose account a request uses that says who it is from.
    pub(crate) fn caller(&self, identity: Identity, default_user: Option<&DefaultUser>) -> Caller {
        match self {
            Backend::ClickHouse(_) => caller(identity, default_user),
            Backend::Sql(backend) => backend.users.caller(identity),
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
            Backend::Sql(backend) => backend.users.windrow(),
        }
    }

    pub(crate) fn sink(&self) -> BackendSink {
        match self {
            Backend::ClickHouse(clickhouse) => {
                BackendSink::ClickHouse(ClickHouseSink::new(clickhouse.client.clone(), clickhouse.cluster.clone()))
            }
            Backend::Sql(backend) => match &backend.database {
                SqlDatabase::DuckDb(duckdb) => BackendSink::DuckDb(DuckDbSink::new(duckdb.clone())),
                SqlDatabase::Adbc(adbc) => BackendSink::Adbc(AdbcSink::new(adbc.clone())),
            },
        }
    }

    /// A table is to be known by one name: DuckDB's schema `main` is the database `default`.
    pub(crate) fn canonical_database(&self, database: &str) -> String {
        match self {
            Backend::ClickHouse(_) => database.to_owned(),
            Backend::Sql(SqlBackend { database: of, .. }) => of.database_of(of.schema_of(database)).to_owned(),
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
            Backend::Sql(backend) => backend.users.check(credentials).is_some_and(|access| access.readonly),
        }
    }

    /// `changed` is called when tables may have changed, however that was asked for: over HTTP, over Flight SQL, in a
    /// transaction of either. A backend that others change as well can't tell.
    pub(crate) fn when_tables_change(&self, changed: impl Fn() + Send + Sync + 'static) {
        if let Backend::Sql(backend) = self {
            backend.database.when_tables_change(changed);
        }
    }
}

pub(crate) async fn find_database(client: &Client, key: &UserKey, timeout: Duration) -> Result<(), CallError> {
    let call = Call::new(&key.credentials, "SELECT 1").timeout(timeout);
    let call = key.database.iter().fold(call, |call, database| call.param("database", database));
    client.call(call).await.map(drop)
}

impl SqlBackend {
    async fn find_database(&self, key: &UserKey) -> Result<(), Exception> {
        let schema = self.database.schema_of(key.database.as_deref().unwrap_or("default")).to_owned();
        let session = Session { schema, readonly: true, user: key.credentials.user.clone(), port: Port::Http };
        self.database.query("SELECT 1", &session).await.map(drop)
    }
}

/// Where the gatherer's batches go.
pub enum BackendSink {
    ClickHouse(ClickHouseSink),
    DuckDb(DuckDbSink),
    Adbc(AdbcSink),
}

impl Sink for BackendSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        match self {
            BackendSink::ClickHouse(sink) => sink.store(batch).await,
            BackendSink::DuckDb(sink) => sink.store(batch).await,
            BackendSink::Adbc(sink) => sink.store(batch).await,
        }
    }

    async fn answers(&self, destination: &Destination) -> bool {
        match self {
            BackendSink::ClickHouse(sink) => sink.answers(destination).await,
            BackendSink::DuckDb(sink) => sink.answers(destination).await,
            BackendSink::Adbc(sink) => sink.answers(destination).await,
        }
    }

    async fn load(&self, tables: &[TableKey]) -> Option<Load> {
        match self {
            BackendSink::ClickHouse(sink) => sink.load(tables).await,
            BackendSink::DuckDb(sink) => sink.load(tables).await,
            BackendSink::Adbc(sink) => sink.load(tables).await,
        }
    }
}
