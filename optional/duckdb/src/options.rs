//! The options that a database is opened with.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct DuckDbOptions {
    /// The database's file, made if it does not exist. `None`: the database is in memory.
    pub path: Option<PathBuf>,
    /// DuckDB's library. `None`: it is searched for.
    pub library: Option<PathBuf>,
    /// The most bytes that DuckDB may use for itself, with running results. `None`: its own default, 80 % of
    /// the machine.
    pub memory_limit_bytes: Option<u64>,
    pub threads: Option<usize>,
    /// The folder for data that does not fit into DuckDB's memory. `None`: beside the database.
    pub temporary_folder: Option<PathBuf>,
    /// The most bytes in that folder. `None`: 90 % of the free space.
    pub max_temporary_bytes: Option<u64>,
    /// The most queries that run at once; others wait in line.
    pub max_result_connections: usize,
    /// Time limit for a query in the line.
    pub max_wait: Duration,
    /// The most transactions that are open at once; others wait in line.
    pub max_transactions: usize,
    /// Says whether statements may read and write files of the machine, attach databases and load extensions.
    pub external_access: bool,
}

impl Default for DuckDbOptions {
    fn default() -> DuckDbOptions {
        DuckDbOptions {
            path: None,
            library: None,
            memory_limit_bytes: None,
            threads: None,
            temporary_folder: None,
            max_temporary_bytes: None,
            max_result_connections: 16,
            max_wait: Duration::from_secs(10),
            max_transactions: 32,
            external_access: false,
        }
    }
}

impl DuckDbOptions {
    /// Reads an address as `--backend` has it: `duckdb:///absolute/path.db`, `duckdb:relative.db`,
    /// `duckdb::memory:` or `duckdb://:memory:`. Returns `None` where it is no address of a DuckDB.
    pub fn of_url(url: &str) -> Option<DuckDbOptions> {
        let rest = url.strip_prefix("duckdb:")?;
        let path = rest.strip_prefix("//").unwrap_or(rest);
        let path = match path {
            "" => return None,
            ":memory:" => None,
            path => Some(PathBuf::from(path)),
        };
        Some(DuckDbOptions { path, ..DuckDbOptions::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let path = |url| DuckDbOptions::of_url(url).map(|options| options.path);
        assert_eq!(path("duckdb:///var/lib/a.db"), Some(Some("/var/lib/a.db".into())));
        assert_eq!(path("duckdb:a.db"), Some(Some("a.db".into())));
        assert_eq!(path("duckdb::memory:"), Some(None));
        assert_eq!(path("duckdb://:memory:"), Some(None));
        for other in ["http://localhost:8123", "duckdb:", "duckdb://", "duckdb"] {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
