//! The statements that make the tables as the exporter makes them: their columns, codecs, indexes and order.
//! The exporter's comments on columns are left out.

mod columns;
mod indexes;

use columns::{json_logs, json_traces, logs, metrics, traces, ColumnDef, TRACE_TIMES};
use indexes::{indexes, TRACE_TIMES_INDEXES};
use windrow_columns::write_identifier;

use crate::kind::Kind;
use crate::source::fields_in;

/// The type of the times of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricTime {
    /// A time in seconds, as the exporter makes it now.
    #[default]
    DateTime,
    /// A time in nanoseconds, as the exporter's earlier versions made it.
    DateTime64,
}

#[derive(Clone, Debug)]
pub struct TableOptions {
    pub database: String,
    /// Name of the table of the kind that is asked for.
    pub table: String,
    /// The engine as ClickHouse writes it: `MergeTree()`.
    pub engine: String,
    /// Name of the cluster for `ON CLUSTER`.
    pub cluster: Option<String>,
    /// Time for which rows are kept, in seconds. Zero: they stay for ever.
    pub ttl_seconds: u64,
    /// Says whether attributes of logs and traces are JSON instead of Maps. Metrics keep their Maps, as in
    /// the exporter.
    pub json: bool,
    pub metric_time: MetricTime,
    /// Says whether traces get the table, and the view that fills it, by which a trace's time is found.
    pub trace_id_ts: bool,
    /// Year and month of the server's version. From 26.2 on, logs get text indexes.
    pub server_version: (u32, u32),
}

impl TableOptions {
    pub fn new(kind: Kind, database: impl Into<String>) -> Self {
        TableOptions {
            database: database.into(),
            table: kind.default_table().to_owned(),
            engine: "MergeTree()".to_owned(),
            cluster: None,
            ttl_seconds: 0,
            json: false,
            metric_time: MetricTime::default(),
            trace_id_ts: true,
            server_version: (0, 0),
        }
    }

    fn on_cluster(&self) -> String {
        self.cluster.as_deref().map_or_else(String::new, |cluster| format!(" ON CLUSTER {}", identifier(cluster)))
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}.{}", identifier(&self.database), identifier(&format!("{}{suffix}", self.table)))
    }

    fn has_text_indexes(&self) -> bool {
        self.server_version >= (26, 2)
    }
}

/// The order and the partitions of a table.
struct Order {
    /// The column for the partitions and for the time to live.
    time: &'static str,
    order_by: &'static str,
    /// The primary key, where it is not the whole order.
    primary_key: Option<&'static str>,
}

/// Returns the statement that makes the database, if it does not exist.
pub fn create_database_statement(options: &TableOptions) -> String {
    format!("CREATE DATABASE IF NOT EXISTS {}{}", identifier(&options.database), options.on_cluster())
}

/// Returns the columns of the exporter's table that are filled. The parts of a Nested have their own names.
pub(crate) fn filled_columns(kind: Kind) -> impl Iterator<Item = &'static str> {
    columns(kind, false, MetricTime::default()).into_iter().flat_map(move |column| fields_in(kind, column.name))
}

fn columns(kind: Kind, json: bool, metric_time: MetricTime) -> Vec<ColumnDef> {
    match (kind, json) {
        (Kind::Logs, false) => logs(),
        (Kind::Logs, true) => json_logs(),
        (Kind::Traces, false) => traces(),
        (Kind::Traces, true) => json_traces(),
        (kind, _) => metrics(kind, metric_time),
    }
}

/// Returns the statements that make the table of a kind, and what belongs to it. A statement does nothing
/// where its object exists.
pub fn create_statements(kind: Kind, options: &TableOptions) -> Vec<String> {
    let columns = columns(kind, options.json, options.metric_time);
    let indexes = indexes(kind, options);
    let mut statements = vec![create_table("", &columns, indexes, &order(kind, options.json), options)];
    if kind == Kind::Traces && options.trace_id_ts {
        let order = Order { time: "Start", order_by: "(TraceId, Start)", primary_key: None };
        let columns: Vec<ColumnDef> = TRACE_TIMES.to_vec();
        statements.push(create_table("_trace_id_ts", &columns, TRACE_TIMES_INDEXES, &order, options));
        statements.push(create_view(options));
    }
    statements
}

fn order(kind: Kind, json: bool) -> Order {
    match (kind, json) {
        (Kind::Logs, _) => Order {
            time: "Timestamp",
            order_by: "(toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp)",
            primary_key: json.then_some("(toStartOfFiveMinutes(Timestamp), ServiceName)"),
        },
        (Kind::Traces, false) => {
            Order { time: "Timestamp", order_by: "(ServiceName, SpanName, toDateTime(Timestamp))", primary_key: None }
        }
        (Kind::Traces, true) => Order {
            time: "Timestamp",
            order_by: "(ServiceName, SpanName, toDateTime(Timestamp), Timestamp)",
            primary_key: None,
        },
        _ => Order {
            time: "TimeUnix",
            order_by: "(ServiceName, MetricName, toStartOfHour(TimeUnix), cityHash64(Attributes), TimeUnix)",
            primary_key: None,
        },
    }
}

fn create_table(
    suffix: &str,
    columns: &[ColumnDef],
    indexes: &[(&str, &str)],
    order: &Order,
    options: &TableOptions,
) -> String {
    let columns = columns.iter().map(ColumnDef::text);
    let indexes = indexes.iter().map(|(name, what)| format!("INDEX {name} {what}"));
    let elements: Vec<String> = columns.chain(indexes).collect();
    let (time, order_by) = (order.time, order.order_by);
    let primary_key = order.primary_key.map_or_else(String::new, |key| format!("\nPRIMARY KEY {key}"));
    format!(
        "CREATE TABLE IF NOT EXISTS {}{} (\n    {}\n) ENGINE = {}\nPARTITION BY toDate({time}){primary_key}\nORDER BY \
         {order_by}{}\nSETTINGS index_granularity = 8192, ttl_only_drop_parts = 1",
        options.name(suffix),
        options.on_cluster(),
        elements.join(",\n    "),
        options.engine,
        ttl(time, options.ttl_seconds),
    )
}

/// Returns the statement of the view that finds the first and the last span of each trace in every block that
/// is stored.
fn create_view(options: &TableOptions) -> String {
    format!(
        "CREATE MATERIALIZED VIEW IF NOT EXISTS {}{} TO {} AS\nSELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS \
         End\nFROM {}\nWHERE TraceId != ''\nGROUP BY TraceId",
        options.name("_trace_id_ts_mv"),
        options.on_cluster(),
        options.name("_trace_id_ts"),
        options.name(""),
    )
}

/// Returns the TTL clause, in the largest unit that leaves no rest.
fn ttl(time: &str, seconds: u64) -> String {
    let units = [("Day", 86_400), ("Hour", 3_600), ("Minute", 60), ("Second", 1)];
    match units.into_iter().find(|(_, of)| seconds > 0 && seconds.is_multiple_of(*of)) {
        Some((unit, of)) => format!("\nTTL toDateTime({time}) + toInterval{unit}({})", seconds / of),
        None => String::new(),
    }
}

fn identifier(name: &str) -> String {
    let mut quoted = String::new();
    write_identifier(&mut quoted, name).expect("writing to a String cannot fail");
    quoted
}
