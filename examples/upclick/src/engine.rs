//! The database behind the gateway, and the demo's queries in its dialect.

use std::time::SystemTime;

use windrow_sql::Dialect;

use crate::calendar::datetime64_text;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Engine {
    #[default]
    ClickHouse,
    DuckDb,
    PostgreSql,
    Sqlite,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::ClickHouse => "ClickHouse",
            Self::DuckDb => "DuckDB",
            Self::PostgreSql => "PostgreSQL",
            Self::Sqlite => "SQLite",
        }
    }

    /// Returns the name of the things that flushes leave in the database, one each.
    pub(crate) fn pieces(self) -> &'static str {
        match self {
            Self::ClickHouse => "parts",
            Self::DuckDb | Self::PostgreSql | Self::Sqlite => "batches",
        }
    }

    /// Returns a table of the demo, as it stands in a statement.
    pub(crate) fn table(self, database: &str, name: &str) -> String {
        match self {
            Self::ClickHouse => format!("{}.{name}", Dialect::ClickHouse.name(database)),
            Self::DuckDb => format!("{}.{name}", duckdb_schema(database)),
            Self::PostgreSql | Self::Sqlite => format!("{}.{name}", Dialect::ClickHouse.name(database)),
        }
    }

    pub(crate) fn create_table(self, table: &str) -> String {
        match self {
            // Ordered by run first: what is asked about a run reads its rows only, however many earlier ones there are.
            // A ClickHouse without a server of its own forgets merged parts at once; a server keeps them for eight
            // minutes.
            Self::ClickHouse => format!(
                "CREATE TABLE IF NOT EXISTS {table} (\
                 `id` UUID, `run` LowCardinality(String), `time` DateTime64(3, 'UTC'), `probe` UInt32, \
                 `city` LowCardinality(String), `country` LowCardinality(String), `latitude` Float64, `longitude` Float64, \
                 `url` LowCardinality(String), `latency_ms` Float64) \
                 ENGINE = MergeTree ORDER BY (run, city, time) SETTINGS old_parts_lifetime = 480"
            ),
            Self::DuckDb => format!(
                "CREATE TABLE IF NOT EXISTS {table} (id UUID, run VARCHAR, time TIMESTAMP_MS, probe UINTEGER, \
                 city VARCHAR, country VARCHAR, latitude DOUBLE, longitude DOUBLE, url VARCHAR, latency_ms DOUBLE)"
            ),
            Self::PostgreSql | Self::Sqlite => format!(
                "CREATE TABLE IF NOT EXISTS {table} (id {}, run TEXT, time TIMESTAMP, probe INTEGER, city TEXT, \
                 country TEXT, latitude DOUBLE PRECISION, longitude DOUBLE PRECISION, url TEXT, latency_ms DOUBLE PRECISION)",
                if self == Self::PostgreSql { "UUID" } else { "TEXT" }
            ),
        }
    }

    /// Returns a query of three numbers: the parts (or batches) that are there, those that are there or were
    /// lately, and all that ever were.
    pub(crate) fn count_pieces(self, database: &str, name: &str) -> String {
        match self {
            Self::ClickHouse => format!(
                "SELECT countIf(active), count(), max(max_block_number) FROM system.parts \
                 WHERE database = {} AND table = '{name}' FORMAT TabSeparated",
                sql_text(database)
            ),
            Self::DuckDb => "SELECT count(*), count(*), count(*) FROM windrow.batches FORMAT TabSeparated".to_owned(),
            Self::PostgreSql | Self::Sqlite => {
                "SELECT count(*), count(*), count(*) FROM windrow_batches FORMAT TabSeparated".to_owned()
            }
        }
    }

    /// Returns a query for each city's rows, and its average since `since`.
    pub(crate) fn cities(self, table: &str, run: &str, since: SystemTime) -> String {
        let since = self.moment(since);
        match self {
            Self::ClickHouse => format!(
                "SELECT city, count(), avgIf(latency_ms, time >= {since}) FROM {table} \
                 WHERE run = '{run}' GROUP BY city FORMAT TabSeparated"
            ),
            Self::DuckDb | Self::PostgreSql | Self::Sqlite => format!(
                "SELECT city, count(*), avg(latency_ms) FILTER (WHERE time >= {since}) FROM {table} \
                 WHERE run = '{run}' GROUP BY city FORMAT TabSeparated"
            ),
        }
    }

    /// Returns a query for each city's averages in steps of `step` seconds. Step 0 begins at `since`.
    pub(crate) fn course(self, table: &str, run: &str, since: SystemTime, step: u64) -> String {
        let since = self.moment(since);
        let steps = match self {
            Self::ClickHouse => format!("intDiv(dateDiff('millisecond', {since}, time), {step}000)"),
            Self::DuckDb => format!("date_diff('millisecond', {since}, time) // {step}000"),
            Self::PostgreSql => format!("CAST(floor(extract(epoch FROM time - {since}) / {step}) AS bigint)"),
            Self::Sqlite => {
                format!("CAST((julianday(time) - julianday({since})) * 86400 / {step} AS INTEGER)")
            }
        };
        format!(
            "SELECT city, {steps} AS step, avg(latency_ms) FROM {table} WHERE run = '{run}' AND time >= {since} \
             GROUP BY city, step FORMAT TabSeparated"
        )
    }

    fn moment(self, at: SystemTime) -> String {
        let text = datetime64_text(at);
        match self {
            Self::ClickHouse => format!("toDateTime64('{text}', 3, 'UTC')"),
            Self::DuckDb | Self::PostgreSql => format!("TIMESTAMP '{text}'"),
            // Its times are texts, as the driver writes them.
            Self::Sqlite => format!("'{}'", text.replace(' ', "T")),
        }
    }
}

/// Returns DuckDB's name of a database.
fn duckdb_schema(database: &str) -> String {
    let schema = if database == "default" { "main" } else { database };
    Dialect::DuckDb.name(schema)
}

fn sql_text(text: &str) -> String {
    Dialect::ClickHouse.text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_each_engine_does() {
        assert_eq!(Engine::ClickHouse.table("a`b\\", "upclick"), "`a\\`b\\\\`.upclick");
        assert_eq!(Engine::DuckDb.table("a\"b", "upclick"), "\"a\"\"b\".upclick");
        assert_eq!(Engine::DuckDb.table("default", "upclick"), "\"main\".upclick");
    }
}
