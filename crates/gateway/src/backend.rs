//! What stands behind the gateway: a ClickHouse that is spoken to over HTTP, or a DuckDB in the gateway's own process.
//!
//! ClickHouse says itself who may do what, and answers whatever is not gathered. DuckDB knows no users and takes no
//! requests: there the gateway decides, and answers.

use std::sync::Arc;

use windrow_clickhouse::{Client, Cluster, Credentials};
use windrow_duckdb::{DuckDb, DuckDbSink};
use windrow_engine::sink::{Batch, ClickHouseSink, Load, Sink, StoreError, Stored, TableKey};

use crate::native::NativeBackend;
use crate::users::Users;

#[derive(Clone)]
pub enum Backend {
    ClickHouse(ClickHouse),
    DuckDb(DuckDbBackend),
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
pub struct DuckDbBackend {
    pub duckdb: DuckDb,
    pub users: Arc<Users>,
}

impl Backend {
    /// Whom the gateway's own questions come from.
    pub(crate) fn own_credentials(&self) -> &Credentials {
        match self {
            Backend::ClickHouse(clickhouse) => &clickhouse.client.endpoint().credentials,
            Backend::DuckDb(backend) => backend.users.windrow(),
        }
    }

    pub(crate) fn sink(&self) -> BackendSink {
        match self {
            Backend::ClickHouse(clickhouse) => {
                BackendSink::ClickHouse(ClickHouseSink::new(clickhouse.client.clone(), clickhouse.cluster.clone()))
            }
            Backend::DuckDb(backend) => BackendSink::DuckDb(DuckDbSink::new(backend.duckdb.clone())),
        }
    }

    /// Whether it takes requests: what is not gathered is forwarded to it. Else the gateway answers all there is.
    pub(crate) fn takes_requests(&self) -> bool {
        matches!(self, Backend::ClickHouse(_))
    }

    /// Whether the gateway itself knows who is who. Else the backend is asked.
    pub(crate) fn knows_users(&self) -> bool {
        matches!(self, Backend::DuckDb(_))
    }

    /// Whether the gateway itself lets this user only read.
    pub(crate) fn is_readonly(&self, credentials: &Credentials) -> bool {
        match self {
            Backend::ClickHouse(_) => false,
            Backend::DuckDb(backend) => backend.users.check(credentials).is_some_and(|access| access.readonly),
        }
    }

    /// `changed` is called when tables may have changed, however that was asked for: over HTTP, over Flight SQL, in a
    /// transaction of either. A backend that others change as well can't tell.
    pub(crate) fn when_tables_change(&self, changed: impl Fn() + Send + Sync + 'static) {
        if let Backend::DuckDb(backend) = self {
            backend.duckdb.when_tables_change(changed);
        }
    }
}

/// Where the gatherer's batches go.
pub enum BackendSink {
    ClickHouse(ClickHouseSink),
    DuckDb(DuckDbSink),
}

impl Sink for BackendSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        match self {
            BackendSink::ClickHouse(sink) => sink.store(batch).await,
            BackendSink::DuckDb(sink) => sink.store(batch).await,
        }
    }

    async fn load(&self, tables: &[TableKey]) -> Option<Load> {
        match self {
            BackendSink::ClickHouse(sink) => sink.load(tables).await,
            BackendSink::DuckDb(sink) => sink.load(tables).await,
        }
    }
}
