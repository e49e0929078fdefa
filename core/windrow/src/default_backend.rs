//! The backend where nobody sets one: an embedded ClickHouse, or DuckDB where there is no ClickHouse to
//! embed.
//!
//! The content of the data directory decides first. Rows that were stored in the one are not to be gone for
//! their readers because the other was installed, or removed. Whoever set anything of `[embedded]` wants
//! ClickHouse: its users and its password would not hold for DuckDB.

use windrow_settings::{Backend, DuckDbPlace, Origin, Settings};

use crate::{embedded, sql_backend};

/// The file's name below the data directory. It is not `windrow`: DuckDB calls a catalogue like its file, and
/// a schema has that name.
const FILE: &str = "rows.duckdb";
/// The folder of the embedded ClickHouse, below the data directory.
const CLICKHOUSE: &str = "embedded";

/// Returns the value of `backend` that takes the default's place, if one does.
pub(crate) fn instead_of_clickhouse(settings: &Settings) -> Option<String> {
    let is_about_clickhouse = |name: &str| name.starts_with("embedded.") || name.starts_with("embedded[");
    let chose_clickhouse =
        settings.shown().any(|(name, _, source)| is_about_clickhouse(name) && source != Origin::Default.to_string());
    if !is_default(settings) || chose_clickhouse || settings.data_dir.join(CLICKHOUSE).exists() {
        return None;
    }
    let file = std::path::absolute(settings.data_dir.join(FILE)).ok()?;
    let takes_it = file.exists()
        || embedded::engine_is_missing() && sql_backend::duckdb_is_there(settings.duckdb.library.as_deref());
    takes_it.then(|| Backend::DuckDb(DuckDbPlace::File(file)).to_string())
}

/// Returns the notice that rows are stored in DuckDB by default, and why.
pub(crate) fn notice(settings: &Settings) -> Option<String> {
    let Backend::DuckDb(place) = &settings.backend else { return None };
    is_default(settings).then(|| {
        let why = if cfg!(not(feature = "embedded")) {
            "this program is built without an embedded ClickHouse"
        } else if embedded::engine_is_missing() {
            "there is no ClickHouse to embed (`pip install windrow-clickhouse` brings one)"
        } else {
            "they were there before there was a ClickHouse to embed"
        };
        format!("rows are stored in DuckDB, in {place}: {why}; set `backend` to have it one way or the other")
    })
}

fn is_default(settings: &Settings) -> bool {
    settings.origin("backend") == Some(&Origin::Default)
}
