//! What a database is opened with.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct DuckDbOptions {
    /// The database's file, made where there is none. `None`: in memory.
    pub path: Option<PathBuf>,
    /// DuckDB's library. `None`: it is searched for.
    pub library: Option<PathBuf>,
    /// What DuckDB may use for itself, results under way included. `None`: its own default, 80 % of the machine.
    pub memory_limit_bytes: Option<u64>,
    pub threads: Option<usize>,
    /// Where DuckDB puts what does not fit into its memory. `None`: beside the database.
    pub temporary_folder: Option<PathBuf>,
    /// What may lie there. `None`: 90 % of what is free.
    pub max_temporary_bytes: Option<u64>,
    /// Queries that run at once; others wait in line.
    pub max_result_connections: usize,
    /// How long they wait there.
    pub max_wait: Duration,
    /// Transactions that are open at once; others wait in line.
    pub max_transactions: usize,
    /// Whether statements may read and write files of the machine, attach databases and load extensions.
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
    /// From what `--backend` says: `duckdb:///absolute/path.db`, `duckdb:relative.db`, `duckdb::memory:` or
    /// `duckdb://:memory:`. `None`: it is no address of a DuckDB.
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
