//! Stands for `sql_backend/` where the program is built without the feature `sql`: there is no such backend.

use windrow_clickhouse::{Credentials, Exception};
use windrow_columns::{Block, ColumnSpec, DataType};
use windrow_engine::sink::{Batch, Destination, Load, Sink, StoreError, Stored, TableKey};
use windrow_http::Connection;

use crate::admission::{Account, BackendFacts, NotAdmitted, TableSchema, UserKey};
use crate::data::{After, Caller, Cause, Exchange, Identity, Read, Request};
use crate::native::{Failure, Posted, Session};
use crate::statement::Changes;

#[derive(Clone)]
pub enum SqlBackend {}

pub enum SqlSink {}

pub(crate) const SETTINGS: [(&str, &str); 0] = [];

/// What a user may do.
pub struct Access {
    pub readonly: bool,
}

pub(crate) fn is_for_anyone(_: &Request<'_>) -> bool {
    false
}

pub(crate) fn is_output_setting(_: &str) -> bool {
    false
}

pub(crate) fn rows_as_json(_: &[String], _: &[DataType], _: &Block, _: usize) -> Result<Vec<u8>, String> {
    Err("The program is built without the feature sql".to_owned())
}

/// Nobody here can write any.
pub fn values_as_text(columns: &[ColumnSpec], _: &Block) -> Vec<Option<Vec<String>>> {
    vec![None; columns.len()]
}

impl SqlBackend {
    pub fn access(&self, _: &Credentials) -> Option<Access> {
        match *self {}
    }

    pub async fn close(&self) {
        match *self {}
    }

    pub(crate) fn kind(&self) -> &'static str {
        match *self {}
    }

    pub(crate) fn caller(&self, _: Identity) -> Caller {
        match *self {}
    }

    pub(crate) fn own_credentials(&self) -> &Credentials {
        match *self {}
    }

    pub(crate) fn canonical_database(&self, _: &str) -> String {
        match *self {}
    }

    pub(crate) async fn find_database(&self, _: &UserKey) -> Result<(), Exception> {
        match *self {}
    }

    pub(crate) fn when_tables_change(&self, _: impl Fn() + Send + Sync + 'static) {
        match *self {}
    }

    pub(crate) fn sink(&self) -> SqlSink {
        match *self {}
    }

    pub(crate) fn facts(&self) -> BackendFacts {
        match *self {}
    }

    pub(crate) fn account(&self, _: &UserKey) -> Result<Account, NotAdmitted> {
        match *self {}
    }

    pub(crate) async fn table(&self, _: &TableKey) -> Result<TableSchema, NotAdmitted> {
        match *self {}
    }

    pub(crate) async fn table_anew(&self, _: &TableKey) -> Result<TableSchema, Exception> {
        match *self {}
    }

    pub(crate) fn probe(&self, _: &Credentials) -> Result<(), NotAdmitted> {
        match *self {}
    }
}

impl Exchange<'_> {
    pub(crate) async fn answer_anyone(&self, backend: &SqlBackend, _: &mut Connection, _: &mut Vec<u8>) -> After {
        match *backend {}
    }

    pub(crate) async fn run_sql(
        &self,
        backend: &SqlBackend,
        _: &mut Connection,
        _: &mut Vec<u8>,
        _: Cause<'_>,
        _: Read,
    ) -> After {
        match *backend {}
    }
}

impl Session<'_> {
    pub(crate) async fn run_on_sql(
        &mut self,
        backend: &SqlBackend,
        _: Posted<'_>,
        _: &[u8],
        _: &Changes,
        _: bool,
    ) -> Result<(), Failure> {
        match *backend {}
    }
}

impl Sink for SqlSink {
    async fn store(&self, _: &Batch) -> Result<Stored, StoreError> {
        match *self {}
    }

    async fn answers(&self, _: &Destination) -> bool {
        match *self {}
    }

    async fn load(&self, _: &[TableKey]) -> Option<Load> {
        match *self {}
    }
}
