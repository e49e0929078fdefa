//! Who moves a topic's messages into a table: ClickHouse's Kafka engine, or a gateway with a pipeline.

use std::fmt;
use std::path::Path;

use super::messages::{Format, SCHEMA, SCHEMA_MESSAGE};
use super::target::{queue_columns, Target};
use super::Sides;
use crate::broker::{Broker, Topic};
use crate::error::BenchError;
use crate::process::peak_resident_bytes;
use crate::sql::Sql;
use crate::stack::{DataDir, Gateway, Stack, StackOptions};

const QUEUE: &str = "bench.kafka_queue";
const VIEW: &str = "bench.kafka_view";
/// The article's, with as many consumers as this machine has CPUs for.
const FLUSH_INTERVAL_MS: u32 = 2200;
const CONSUMERS: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    KafkaEngine(Threads),
    Windrow { exactly_once: bool, max_latency: &'static str },
}

/// Of the engine's, behind its consumers: which serves better depends on what they read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One block of what all consumers have read, stored by one of them.
    Shared,
    OnePerConsumer,
}

impl Side {
    pub fn chosen_as(self) -> Sides {
        match self {
            Side::KafkaEngine(_) => Sides::Engine,
            Side::Windrow { .. } => Sides::Windrow,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::KafkaEngine(Threads::Shared) => "Kafka engine",
            Side::KafkaEngine(Threads::OnePerConsumer) => "Kafka engine, a thread per consumer",
            Side::Windrow { exactly_once: true, .. } => "Windrow",
            Side::Windrow { exactly_once: false, .. } => "Windrow, at least once",
        })
    }
}

/// From where to where, and under which name.
pub struct Route<'a> {
    pub broker: &'a Broker,
    pub topic: &'a Topic,
    pub group: &'a str,
    pub format: Format,
    pub target: &'a Target,
}

/// Reads until it is stopped.
pub enum Reader {
    KafkaEngine(Sql),
    Windrow(Box<Gateway>),
}

impl Reader {
    pub fn start(side: Side, route: &Route<'_>, stack: &Stack, options: &StackOptions) -> Result<Reader, BenchError> {
        match side {
            Side::KafkaEngine(threads) => start_engine(&stack.clickhouse, threads, route),
            Side::Windrow { exactly_once, max_latency } => {
                let folder = DataDir::create()?;
                let schema = folder.write("stats.proto", SCHEMA)?;
                let config = folder.write("windrow.toml", &pipeline(route, exactly_once, max_latency, &schema))?;
                Ok(Reader::Windrow(Box::new(stack.another_gateway(options, folder, &config)?)))
            }
        }
    }

    /// Of its own process; the engine's is ClickHouse's.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Reader::KafkaEngine(_) => None,
            Reader::Windrow(gateway) => Some(gateway.pid()),
        }
    }

    pub fn peak_resident_bytes(&self) -> Option<u64> {
        self.pid().map(peak_resident_bytes)
    }

    pub fn stop(self) -> Result<(), BenchError> {
        match self {
            Reader::KafkaEngine(sql) => {
                sql.execute(&format!("DROP TABLE IF EXISTS {VIEW} SYNC"))?;
                sql.execute(&format!("DROP TABLE IF EXISTS {QUEUE} SYNC"))
            }
            Reader::Windrow(gateway) => gateway.stop(),
        }
    }
}

fn start_engine(sql: &Sql, threads: Threads, route: &Route<'_>) -> Result<Reader, BenchError> {
    let thread_per_consumer = u8::from(threads == Threads::OnePerConsumer);
    let mut settings = format!(
        "kafka_broker_list = '{}', kafka_topic_list = '{}', kafka_group_name = '{}', kafka_format = '{}', \
         kafka_num_consumers = {CONSUMERS}, kafka_flush_interval_ms = {FLUSH_INTERVAL_MS}, kafka_thread_per_consumer = {thread_per_consumer}",
        route.broker.address,
        route.topic.name,
        route.group,
        route.format.name()
    );
    if route.format.needs_schema() {
        settings.push_str(&format!(
            ", format_schema = '{SCHEMA}', format_schema_source = 'string', format_schema_message_name = '{SCHEMA_MESSAGE}'"
        ));
    }
    sql.execute(&format!("CREATE TABLE {QUEUE} ({}) ENGINE = Kafka SETTINGS {settings}", queue_columns(route.format)))?;
    let select = route.target.select_from(QUEUE);
    sql.execute(&format!("CREATE MATERIALIZED VIEW {VIEW} TO {} AS {select}", route.target.name))?;
    Ok(Reader::KafkaEngine(sql.clone()))
}

/// The settings of a gateway with nothing but this pipeline. What can be chosen by itself is.
fn pipeline(route: &Route<'_>, exactly_once: bool, max_latency: &str, schema: &Path) -> String {
    let mut text = format!(
        "[[kafka]]\nbrokers = [\"{}\"]\ntopics = [\"{}\"]\ngroup = \"{}\"\ntable = \"{}\"\nformat = \"{}\"\n\
         start = \"earliest\"\nmax_latency = \"{max_latency}\"\nexactly_once = {exactly_once}\n",
        route.broker.address,
        route.topic.name,
        route.group,
        route.target.name,
        route.format.name()
    );
    if route.format.needs_schema() {
        text.push_str(&format!("schema_file = \"{}\"\nmessage = \"{SCHEMA_MESSAGE}\"\n", schema.display()));
    }
    if route.target.stamped {
        text.push_str("columns = { ts = \"_timestamp_ms\" }\n");
    }
    text
}
