//! The statements that make the tables, as the exporter makes them: what is stored in them, how, and in which order. The
//! exporter's comments on columns are not among it.

mod columns;
mod indexes;

use columns::{json_logs, json_traces, logs, metrics, traces, ColumnDef, TRACE_TIMES};
use indexes::{indexes, TRACE_TIMES_INDEXES};
use windrow_columns::write_identifier;

use crate::kind::Kind;
use crate::source::fields_in;

/// What the times of metrics are kept as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricTime {
    /// In seconds, as the exporter does it now.
    #[default]
    DateTime,
    /// In nanoseconds, as its earlier versions did.
    DateTime64,
}

#[derive(Clone, Debug)]
pub struct TableOptions {
    pub database: String,
    /// Of the kind that is asked for.
    pub table: String,
    /// As ClickHouse writes it: `MergeTree()`.
    pub engine: String,
    /// `ON CLUSTER` this one.
    pub cluster: Option<String>,
    /// Zero: rows stay for ever.
    pub ttl_seconds: u64,
    /// Attributes of logs and traces as JSON instead of Maps. Metrics keep their Maps, as the exporter has it.
    pub json: bool,
    pub metric_time: MetricTime,
    /// Of traces: the table, and the view that fills it, by which a trace's time is found.
    pub trace_id_ts: bool,
    /// Year and month, as the server tells them. From 26.2 on, logs get text indexes.
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

/// How a table is cut and ordered.
struct Order {
    /// The column that partitions are by, and the time that rows are kept.
    time: &'static str,
    order_by: &'static str,
    /// Where it is not the whole order.
    primary_key: Option<&'static str>,
}

/// What makes the database, if it is not there.
pub fn create_database_statement(options: &TableOptions) -> String {
    format!("CREATE DATABASE IF NOT EXISTS {}{}", identifier(&options.database), options.on_cluster())
}

/// The columns of the exporter's table that are filled, those of a Nested by their own names.
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

/// What makes the table of a kind, and what stands beside it; each statement does nothing where it is there already.
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

/// What finds the first and the last span of each trace in every block that is stored.
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

/// In the largest unit that has no rest.
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
