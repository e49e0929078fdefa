//! Stands for `sql_backend.rs` where the program is built without the feature `sql`.

use std::path::Path;

use windrow_settings::{AdbcUrl, DuckDbPlace, Settings};

use crate::backend::RunningBackend;
use crate::without::missing;

pub(crate) fn duckdb_is_there(_: Option<&Path>) -> bool {
    false
}

pub(crate) async fn duckdb(_: &Settings, _: &DuckDbPlace) -> Result<RunningBackend, String> {
    Err(missing("sql", "a DuckDB as `backend`"))
}

pub(crate) async fn adbc(_: &Settings, _: &AdbcUrl) -> Result<RunningBackend, String> {
    Err(missing("sql", "a database behind ADBC as `backend`"))
}
