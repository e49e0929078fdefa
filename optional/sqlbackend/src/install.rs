//! ClickHouse's functions and system tables that programs ask for when they connect: macros in the schema
//! `windrow_functions`, which every statement's search path ends with, and views in `windrow`.
//!
//! They are made anew at every start: a later version's replace an earlier one's.

use windrow_adbc::SqlDatabase;
use windrow_clickhouse::Exception;
use windrow_duckdb::DuckDb;
use windrow_gateway::sql_backend::clickhouse_settings;
use windrow_sql::Dialect;

/// The version of ClickHouse whose interface this resembles. Programs decide by it what they may ask for.
/// DuckDB's own version is told by `PRAGMA version`.
const CLICKHOUSE_VERSION: &str = "26.7.1.1";
/// The revision of the native protocol that goes with that version of ClickHouse.
const REVISION: u32 = 54_488;

/// Tables of `system` that there are views for.
const SYSTEM_TABLES: [&str; 9] =
    ["one", "numbers", "databases", "tables", "columns", "settings", "functions", "build_options", "processes"];

/// Returns the view that stands for a table of `system` in a statement, if there is one.
pub(super) fn system_view(database: &SqlDatabase, table: &str) -> Option<String> {
    let SqlDatabase::DuckDb(duckdb) = database else { return None };
    SYSTEM_TABLES.contains(&table).then(|| duckdb.own_table(&format!("system_{table}")))
}

const VIEWS: [&str; 8] = [
    "system_one AS SELECT 0::UTINYINT AS dummy",
    "system_numbers AS SELECT range::UBIGINT AS number FROM range(9223372036854775807)",
    "system_databases AS SELECT CASE schema_name WHEN 'main' THEN 'default' ELSE schema_name END AS name, 'DuckDB' AS engine, \
     '' AS data_path, '' AS metadata_path, '' AS uuid, 'DuckDB' AS engine_full, coalesce(comment, '') AS comment \
     FROM duckdb_schemas() WHERE database_name = current_database() AND schema_name NOT IN ('information_schema', 'pg_catalog', 'windrow', 'windrow_functions')",
    "system_tables AS SELECT CASE schema_name WHEN 'main' THEN 'default' ELSE schema_name END AS database, table_name AS name, \
     '' AS uuid, 'DuckDB' AS engine, temporary::UTINYINT AS is_temporary, coalesce(comment, '') AS comment, \
     coalesce(sql, '') AS create_table_query, 'DuckDB' AS engine_full, '' AS partition_key, '' AS sorting_key, '' AS primary_key, \
     '' AS sampling_key, estimated_size::UBIGINT AS total_rows, NULL::UBIGINT AS total_bytes \
     FROM duckdb_tables() WHERE database_name = current_database() AND schema_name <> 'windrow' \
     UNION ALL SELECT CASE schema_name WHEN 'main' THEN 'default' ELSE schema_name END, view_name, '', 'View', 0, \
     coalesce(comment, ''), coalesce(sql, ''), 'View', '', '', '', '', NULL, NULL \
     FROM duckdb_views() WHERE database_name = current_database() AND NOT internal AND schema_name <> 'windrow'",
    "system_columns AS SELECT CASE schema_name WHEN 'main' THEN 'default' ELSE schema_name END AS database, \
     table_name AS \"table\", column_name AS name, data_type AS type, column_index::UBIGINT AS position, \
     CASE WHEN column_default IS NULL THEN '' ELSE 'DEFAULT' END AS default_kind, \
     coalesce(column_default, '') AS default_expression, coalesce(comment, '') AS comment, \
     0::UTINYINT AS is_in_partition_key, 0::UTINYINT AS is_in_sorting_key, 0::UTINYINT AS is_in_primary_key, \
     0::UTINYINT AS is_in_sampling_key, '' AS compression_codec \
     FROM duckdb_columns() WHERE database_name = current_database() AND NOT internal AND schema_name <> 'windrow'",
    "system_functions AS SELECT DISTINCT function_name AS name, (function_type = 'aggregate')::UTINYINT AS is_aggregate, \
     0::UTINYINT AS case_insensitive, '' AS alias_to FROM duckdb_functions()",
    "system_build_options AS SELECT * FROM (VALUES ('VERSION_DESCRIBE', 'DuckDB behind Windrow')) AS t(name, value)",
    "system_processes AS SELECT '' AS query_id, '' AS \"user\", '' AS query, 0::DOUBLE AS elapsed WHERE false",
];

const MACROS: [&str; 13] = [
    "currentDatabase() AS CASE current_schema() WHEN 'main' THEN 'default' ELSE current_schema() END",
    "timezone() AS 'UTC'",
    "serverTimezone() AS 'UTC'",
    "displayName() AS 'windrow'",
    "hostName() AS 'windrow'",
    "uptime() AS 0::UINTEGER",
    "toString(x) AS CAST(x AS VARCHAR)",
    "toUInt8(x) AS CAST(x AS UTINYINT)",
    "toUInt64(x) AS CAST(x AS UBIGINT)",
    "toInt64(x) AS CAST(x AS BIGINT)",
    "toFloat64(x) AS CAST(x AS DOUBLE)",
    "groupArray(x) AS coalesce(list(x) FILTER (WHERE x IS NOT NULL), [])",
    "numbers(n) AS TABLE SELECT range::UBIGINT AS number FROM range(n)",
];

/// Makes all macros and views in Windrow's schemas, which have to be there.
///
/// # Errors
/// Fails where DuckDB refuses one of them, as it does where a schema is missing.
pub async fn install_duckdb_functions(duckdb: &DuckDb) -> Result<(), Exception> {
    let version = [format!("version() AS '{CLICKHOUSE_VERSION}'"), format!("revision() AS {REVISION}::UINTEGER")];
    let macros = MACROS.iter().map(|body| (*body).to_owned()).chain(version);
    for body in macros {
        run(duckdb, &format!("CREATE OR REPLACE MACRO {}.{body}", duckdb.own_functions())).await?;
    }
    let settings = settings_view();
    for body in VIEWS.into_iter().chain([settings.as_str()]) {
        run(duckdb, &format!("CREATE OR REPLACE VIEW {}.{body}", duckdb.own_schema())).await?;
    }
    Ok(())
}

fn settings_view() -> String {
    let rows: Vec<String> = clickhouse_settings()
        .map(|(name, value)| format!("({}, {})", Dialect::DuckDb.text(name), Dialect::DuckDb.text(value)))
        .collect();
    format!(
        "system_settings AS SELECT name, value, 0::UTINYINT AS changed, '' AS description, NULL::VARCHAR AS min, \
         NULL::VARCHAR AS max, 0::UTINYINT AS readonly, '' AS type, value AS \"default\" FROM (VALUES {}) AS t(name, value)",
        rows.join(", ")
    )
}

async fn run(duckdb: &DuckDb, sql: &str) -> Result<(), Exception> {
    let mut stream = duckdb.own_query(sql).await?;
    while let Some(batch) = stream.next().await {
        batch?;
    }
    Ok(())
}
