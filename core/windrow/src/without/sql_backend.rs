//! Stands for `sql_backend.rs` where the program is built without the feature `sql`.

use std::path::Path;

use windrow_columns::{Block, ColumnSpec};
use windrow_settings::{AdbcUrl, DuckDbPlace, Settings};

use crate::backend::RunningBackend;
use crate::without::missing;

pub(crate) enum SqlDatabase {}

impl SqlDatabase {
    pub(crate) async fn close(&self) {
        match *self {}
    }
}

/// Returns no texts: only a database that takes SQL writes values.
pub(crate) fn values_as_text(columns: &[ColumnSpec], _: &Block) -> Vec<Option<Vec<String>>> {
    vec![None; columns.len()]
}

pub(crate) fn duckdb_is_there(_: Option<&Path>) -> bool {
    false
}

pub(crate) async fn duckdb(_: &Settings, _: &DuckDbPlace) -> Result<RunningBackend, String> {
    Err(missing("sql", "a DuckDB as `backend`"))
}

pub(crate) async fn adbc(_: &Settings, _: &AdbcUrl) -> Result<RunningBackend, String> {
    Err(missing("sql", "a database behind ADBC as `backend`"))
}
