//! Which database a driver leads to, as far as the SQL depends on it that Windrow itself writes.
//!
//! Of PostgreSQL and SQLite the catalogue is read, which knows defaults and constraints. Of any other database only
//! what every driver tells is used: the Arrow schema of a table.

mod other;
mod postgresql;
mod sqlite;

use windrow_clickhouse::Exception;
use windrow_sql::Dialect;

use crate::connection::Connection;
use crate::errors;
use crate::table::Table;
use windrow_duckdb::TableRef;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    PostgreSql,
    Sqlite,
    /// Names stand between these.
    Other {
        quote: char,
    },
}

/// By what stored batches are known when they come again.
pub(crate) const BATCHES: &str = "windrow_batches";
/// The same for ordered appends.
pub(crate) const APPENDS: &str = "windrow_appends";

impl System {
    pub(crate) fn of_scheme(scheme: &str) -> System {
        match scheme {
            "postgresql" | "postgres" => System::PostgreSql,
            "sqlite" => System::Sqlite,
            "mysql" | "mariadb" | "bigquery" | "databricks" | "spark" => System::Other { quote: '`' },
            _ => System::Other { quote: '"' },
        }
    }

    /// A name as it stands in a statement.
    pub(crate) fn name(self, name: &str) -> String {
        match self {
            System::Other { quote } if quote != '"' => {
                format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
            }
            _ => Dialect::DuckDb.name(name),
        }
    }

    /// A table's name as it stands in a statement. One without a schema is where the connection looks first.
    pub(crate) fn table(self, table: &TableRef) -> String {
        match table.schema.as_str() {
            "" => self.name(&table.table),
            schema => format!("{}.{}", self.name(schema), self.name(&table.table)),
        }
    }

    /// Run on each new connection.
    pub(crate) fn at_connect(self) -> &'static [&'static str] {
        match self {
            // Another program may be writing.
            System::Sqlite => &["PRAGMA busy_timeout = 10000"],
            System::PostgreSql => &["SET TimeZone = 'UTC'"],
            System::Other { .. } => &[],
        }
    }

    /// What makes that a connection only reads, whatever is run on it. `None`: the driver is told.
    pub(crate) fn read_only(self) -> Option<&'static str> {
        match self {
            System::PostgreSql => Some("SET default_transaction_read_only = on"),
            System::Sqlite => Some("PRAGMA query_only = 1"),
            System::Other { .. } => None,
        }
    }

    /// Whether the database itself sees to it.
    pub(crate) fn can_only_read(self) -> bool {
        self.read_only().is_some()
    }

    /// What makes that names without a schema are looked up there. `None`: the driver is told.
    pub(crate) fn use_schema(self, schema: &str) -> Option<String> {
        match self {
            System::PostgreSql => Some(format!("SET search_path = {}", self.name(schema))),
            System::Sqlite | System::Other { .. } => None,
        }
    }

    pub(crate) fn create_batches(self) -> String {
        let columns = match self {
            System::PostgreSql => "id uuid PRIMARY KEY, stored_at timestamptz NOT NULL DEFAULT clock_timestamp()",
            System::Sqlite => "id TEXT PRIMARY KEY, stored_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP",
            System::Other { .. } => "id VARCHAR(36) PRIMARY KEY, stored_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
        };
        format!("CREATE TABLE IF NOT EXISTS {BATCHES} ({columns})")
    }

    /// What stands before the names of temporary tables. Without it PostgreSQL's driver would look among the others.
    pub(crate) fn temporary(self) -> &'static str {
        match self {
            System::Sqlite => "temp",
            System::PostgreSql | System::Other { .. } => "pg_temp",
        }
    }

    /// Whether a transaction that writes keeps all others from writing until its end.
    pub(crate) fn has_one_writer(self) -> bool {
        matches!(self, System::Sqlite)
    }

    /// A query that has a row if a transaction has written into `table`, or is about to, and has not ended: it holds the
    /// table's lock until then. `None`: that can't be seen.
    pub(crate) fn is_written(self, table: &str) -> Option<String> {
        let query = format!(
            "SELECT 1 FROM pg_locks WHERE relation = to_regclass('{table}') AND mode = 'RowExclusiveLock' AND \
             database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1"
        );
        matches!(self, System::PostgreSql).then_some(query)
    }

    /// Waits, not for long, for a transaction that has written `row` and not ended: whether there is such a row is
    /// certain then. `None`: it is certain without.
    pub(crate) fn wait_for(self, row: &str) -> Option<String> {
        let both = "unique_violation OR raise_exception";
        let wait = format!(
            "DO $$ BEGIN SET LOCAL lock_timeout = '5s'; {row}; RAISE EXCEPTION 'undone'; \
             EXCEPTION WHEN {both} THEN NULL; END $$"
        );
        matches!(self, System::PostgreSql).then_some(wait)
    }

    /// Whether its driver has transactions. `None`: that has to be found out.
    pub(crate) fn has_transactions(self) -> Option<bool> {
        match self {
            System::PostgreSql | System::Sqlite => Some(true),
            System::Other { .. } => None,
        }
    }

    /// Whether a commit that failed with this has surely stored nothing: what is looked at last was violated, or the
    /// server itself says that it did not commit.
    pub(crate) fn has_undone(self, exception: &Exception) -> bool {
        exception.comes_of_values() || matches!(self, System::PostgreSql) && !errors::is_lost(exception)
    }

    /// Whether a second row with the same id is refused in the end, also where both were written at once. Some
    /// databases take a primary key for a hint.
    pub(crate) fn keeps_ids_apart(self) -> bool {
        !matches!(self, System::Other { .. })
    }

    /// A week ago, in the form of `stored_at`.
    pub(crate) fn week_ago(self) -> &'static str {
        match self {
            System::Sqlite => "datetime('now', '-7 days')",
            System::PostgreSql | System::Other { .. } => "CURRENT_TIMESTAMP - INTERVAL '7' DAY",
        }
    }

    /// A query of one column: the names of the tables in a schema. An empty one is the connection's own.
    pub(crate) fn list_tables(self, schema: &str) -> String {
        let name = Dialect::DuckDb.text(schema);
        match (self, schema) {
            (System::Sqlite, _) => "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND \
                                    name NOT LIKE 'sqlite_%' ORDER BY name"
                .to_owned(),
            (_, "") => of_information_schema("current_schema"),
            (_, _) => of_information_schema(&name),
        }
    }

    /// A query of one column: the names of the schemas.
    pub(crate) fn list_schemas(self) -> &'static str {
        match self {
            System::Sqlite => "SELECT 'default' AS name",
            System::PostgreSql | System::Other { .. } => {
                "SELECT schema_name AS name FROM information_schema.schemata ORDER BY schema_name"
            }
        }
    }

    /// Until the transaction's end nobody changes what the table is made of. An INSERT takes no more than this.
    pub(crate) fn hold_table(self, table: &TableRef) -> String {
        format!("LOCK TABLE {} IN ROW EXCLUSIVE MODE", self.table(table))
    }

    /// What a table is made of. `None`: there is none of that name.
    pub(crate) fn describe(self, connection: &mut Connection, name: &TableRef) -> Result<Option<Table>, Exception> {
        match self {
            System::PostgreSql => postgresql::describe(connection, name),
            System::Sqlite => sqlite::describe(connection, name),
            System::Other { .. } => other::describe(connection, name),
        }
    }
}

fn of_information_schema(schema: &str) -> String {
    format!(
        "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = {schema} ORDER BY table_name"
    )
}
