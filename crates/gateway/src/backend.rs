//! What stands behind the gateway: a ClickHouse that is spoken to over HTTP, or a DuckDB in the gateway's own process.
//!
//! ClickHouse says itself who may do what, and answers whatever is not gathered. DuckDB knows no users and takes no
//! requests: there the gateway decides, and answers.

use std::sync::Arc;

use windrow_client::{Client, Credentials};
use windrow_duckdb::{DuckDb, DuckDbSink};
use windrow_engine::sink::{Batch, ClickHouseSink, Load, Sink, StoreError, Stored, TableName};

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
            Backend::ClickHouse(clickhouse) => BackendSink::ClickHouse(ClickHouseSink::new(clickhouse.client.clone())),
            Backend::DuckDb(backend) => BackendSink::DuckDb(DuckDbSink::new(backend.duckdb.clone())),
        }
    }

    pub(crate) fn duckdb(&self) -> Option<&DuckDbBackend> {
        match self {
            Backend::DuckDb(backend) => Some(backend),
            Backend::ClickHouse(_) => None,
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

    async fn load(&self, tables: &[TableName]) -> Option<Load> {
        match self {
            BackendSink::ClickHouse(sink) => sink.load(tables).await,
            BackendSink::DuckDb(sink) => sink.load(tables).await,
        }
    }
}
