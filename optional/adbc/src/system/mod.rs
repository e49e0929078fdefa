//! The database that a driver leads to, as far as the SQL depends on it that Windrow itself writes.
//!
//! PostgreSQL and SQLite have catalogues that are read; these know defaults and constraints. Of any other
//! database only the Arrow schema of a table is used, which every driver tells.

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
    /// Any other database; `quote` stands before and after names.
    Other {
        quote: char,
    },
}

/// The table of the ids by which stored batches are known when they come again.
pub(crate) const BATCHES: &str = "windrow_batches";
/// The same table for ordered appends.
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

    /// Returns a name as it stands in a statement.
    pub(crate) fn name(self, name: &str) -> String {
        match self {
            System::Other { quote } if quote != '"' => {
                format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
            }
            _ => Dialect::DuckDb.name(name),
        }
    }

    /// Returns a table's name as it stands in a statement. A table without a schema is the one that the
    /// connection finds first.
    pub(crate) fn table(self, table: &TableRef) -> String {
        match table.schema.as_str() {
            "" => self.name(&table.table),
            schema => format!("{}.{}", self.name(schema), self.name(&table.table)),
        }
    }

    /// Returns the statements that are run on each new connection.
    pub(crate) fn at_connect(self) -> &'static [&'static str] {
        match self {
            // Another program may be writing.
            System::Sqlite => &["PRAGMA busy_timeout = 10000"],
            System::PostgreSql => &["SET TimeZone = 'UTC'"],
            System::Other { .. } => &[],
        }
    }

    /// Returns the statement that makes a connection read-only. `None`: an option of the driver is used.
    pub(crate) fn read_only(self) -> Option<&'static str> {
        match self {
            System::PostgreSql => Some("SET default_transaction_read_only = on"),
            System::Sqlite => Some("PRAGMA query_only = 1"),
            System::Other { .. } => None,
        }
    }

    /// Says whether the database itself can make a connection read-only.
    pub(crate) fn can_only_read(self) -> bool {
        self.read_only().is_some()
    }

    /// Returns the statement that makes `schema` the one where names without a schema are looked up. `None`:
    /// an option of the driver is used.
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

    /// Returns the schema of temporary tables. Without it PostgreSQL's driver would look among the other tables.
    pub(crate) fn temporary(self) -> &'static str {
        match self {
            System::Sqlite => "temp",
            System::PostgreSql | System::Other { .. } => "pg_temp",
        }
    }

    /// Says whether a transaction that writes keeps all others from writing until its end.
    pub(crate) fn has_one_writer(self) -> bool {
        matches!(self, System::Sqlite)
    }

    /// Returns a query that has a row if a transaction has written into `table`, or is about to, and has not
    /// ended: it holds the table's lock until then. `None`: that can't be seen.
    pub(crate) fn is_written(self, table: &str) -> Option<String> {
        let query = format!(
            "SELECT 1 FROM pg_locks WHERE relation = to_regclass('{table}') AND mode = 'RowExclusiveLock' AND \
             database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1"
        );
        matches!(self, System::PostgreSql).then_some(query)
    }

    /// Returns a statement that waits a short time for a transaction that has written `row` and not ended.
    /// After that it is certain whether there is such a row. `None`: it is certain without waiting.
    pub(crate) fn wait_for(self, row: &str) -> Option<String> {
        let both = "unique_violation OR raise_exception";
        let wait = format!(
            "DO $$ BEGIN SET LOCAL lock_timeout = '5s'; {row}; RAISE EXCEPTION 'undone'; \
             EXCEPTION WHEN {both} THEN NULL; END $$"
        );
        matches!(self, System::PostgreSql).then_some(wait)
    }

    /// Says whether the driver has transactions. `None`: that has to be found out.
    pub(crate) fn has_transactions(self) -> Option<bool> {
        match self {
            System::PostgreSql | System::Sqlite => Some(true),
            System::Other { .. } => None,
        }
    }

    /// Says whether a commit that failed with this error has surely stored nothing: a constraint that is
    /// checked last was violated, or the server itself says that it did not commit.
    pub(crate) fn has_undone(self, exception: &Exception) -> bool {
        exception.comes_of_values() || matches!(self, System::PostgreSql) && !errors::is_lost(exception)
    }

    /// Says whether a second row with the same id is always refused in the end, even if both were written at
    /// once. Some databases take a primary key only for a hint.
    pub(crate) fn keeps_ids_apart(self) -> bool {
        !matches!(self, System::Other { .. })
    }

    /// Returns an expression for a week ago, in the form of `stored_at`.
    pub(crate) fn week_ago(self) -> &'static str {
        match self {
            System::Sqlite => "datetime('now', '-7 days')",
            System::PostgreSql | System::Other { .. } => "CURRENT_TIMESTAMP - INTERVAL '7' DAY",
        }
    }

    /// Returns a query of one column: the names of the tables in a schema. The empty schema is the connection's own.
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

    /// Returns a query of one column: the names of the schemas.
    pub(crate) fn list_schemas(self) -> &'static str {
        match self {
            System::Sqlite => "SELECT 'default' AS name",
            System::PostgreSql | System::Other { .. } => {
                "SELECT schema_name AS name FROM information_schema.schemata ORDER BY schema_name"
            }
        }
    }

    /// Returns a statement that keeps the columns of a table unchanged until the transaction's end. An INSERT
    /// takes the same lock.
    pub(crate) fn hold_table(self, table: &TableRef) -> String {
        format!("LOCK TABLE {} IN ROW EXCLUSIVE MODE", self.table(table))
    }

    /// Returns the description of a table, or `None` where there is none of that name.
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
