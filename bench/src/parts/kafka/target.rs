//! The tables that rows go into: the article's three engines.

use super::messages::Format;
use crate::error::BenchError;
use crate::sql::Sql;

/// What a message's row holds, in the types of the article's target table.
const COLUMNS: &str = "event_date Date, event_datetime DateTime('UTC'), property_id UInt32, video_title String, \
    total_view_count UInt64";
const RAW: &str = "raw String";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    Null,
    MergeTree,
    AggregatingMergeTree,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Engine::Null => "Null",
            Engine::MergeTree => "MergeTree",
            Engine::AggregatingMergeTree => "AggregatingMergeTree",
        }
    }

    /// A blob has nothing that could be aggregated.
    pub fn holds(self, format: Format) -> bool {
        self != Engine::AggregatingMergeTree || format != Format::RawBlob
    }
}

/// A table with nothing in it.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: String,
    pub engine: Engine,
    format: Format,
    /// Whether each row keeps its message's timestamp, in a column `ts`.
    pub stamped: bool,
}

impl Target {
    pub fn create(sql: &Sql, name: String, engine: Engine, format: Format, stamped: bool) -> Result<Self, BenchError> {
        let target = Target { name, engine, format, stamped };
        sql.execute(&format!("DROP TABLE IF EXISTS {} SYNC", target.name))?;
        sql.execute(&target.definition())?;
        Ok(target)
    }

    pub fn drop(self, sql: &Sql) -> Result<(), BenchError> {
        sql.execute(&format!("DROP TABLE {} SYNC", self.name))
    }

    fn definition(&self) -> String {
        let stamp = if self.stamped { ", ts DateTime64(3, 'UTC')" } else { "" };
        let (name, columns) = (&self.name, queue_columns(self.format));
        match self.engine {
            Engine::Null => format!("CREATE TABLE {name} ({columns}{stamp}) ENGINE = Null"),
            Engine::MergeTree if self.format == Format::RawBlob => {
                format!("CREATE TABLE {name} ({columns}{stamp}) ENGINE = MergeTree ORDER BY tuple()")
            }
            // The numbers of blocks are kept through merges: which insert brought a row is looked up by them.
            Engine::MergeTree if self.stamped => format!(
                "CREATE TABLE {name} ({columns}{stamp}) ENGINE = MergeTree ORDER BY (property_id, event_datetime, video_title) \
                 SETTINGS enable_block_number_column = 1"
            ),
            Engine::MergeTree => format!(
                "CREATE TABLE {name} ({columns}) ENGINE = MergeTree ORDER BY (property_id, event_datetime, video_title)"
            ),
            // The article's, without its replicas and without a column in its key that it doesn't have. ClickHouse
            // wants to be told today that the date, which follows from the time, is in no key.
            Engine::AggregatingMergeTree => format!(
                "CREATE TABLE {name} (event_date Date CODEC(DoubleDelta, ZSTD(1)), \
                 event_datetime DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)), \
                 property_id UInt32 CODEC(DoubleDelta, ZSTD(1)), video_title String CODEC(ZSTD(1)), \
                 total_view_count SimpleAggregateFunction(sum, UInt64) CODEC(ZSTD(1))) ENGINE = AggregatingMergeTree \
                 PARTITION BY toStartOfInterval(event_datetime, toIntervalHour(1)) \
                 PRIMARY KEY (property_id, event_datetime) ORDER BY (property_id, event_datetime, video_title) \
                 TTL event_datetime + toIntervalDay(1) SETTINGS allow_dimensions_outside_sorting_key = 1"
            ),
        }
    }

    /// What a view over the engine's queue moves into it: the article's own aggregation where it is its table.
    pub fn select_from(&self, queue: &str) -> String {
        match (self.engine, self.stamped) {
            (Engine::AggregatingMergeTree, _) => format!(
                "SELECT event_date, event_datetime, property_id, video_title, \
                 sumSimpleState(total_view_count) AS total_view_count FROM {queue} \
                 GROUP BY event_date, event_datetime, property_id, video_title"
            ),
            (_, true) => format!("SELECT *, assumeNotNull(_timestamp_ms) AS ts FROM {queue}"),
            (_, false) => format!("SELECT * FROM {queue}"),
        }
    }

    /// Whether all that was sent is there, and once.
    pub fn check(&self, sql: &Sql, rows: u64, views: u64) -> Result<(), BenchError> {
        let (what, expected) = match (self.engine, self.format) {
            (Engine::Null, _) => return Ok(()),
            (Engine::MergeTree, Format::RawBlob) => ("count()", rows),
            (Engine::MergeTree, _) => ("if(count() = {rows}, sum(total_view_count), 0)", views),
            (Engine::AggregatingMergeTree, _) => ("sum(total_view_count)", views),
        };
        let what = what.replace("{rows}", &rows.to_string());
        let found = sql.number(&format!("SELECT {what} FROM {}", self.name))?;
        match found == expected {
            true => Ok(()),
            false => Err(BenchError::Unsound(format!(
                "{}, {}: {what} is {found} instead of {expected}",
                self.engine.name(),
                self.format.name()
            ))),
        }
    }
}

/// Of the engine's queue table.
pub fn queue_columns(format: Format) -> &'static str {
    match format {
        Format::RawBlob => RAW,
        _ => COLUMNS,
    }
}
