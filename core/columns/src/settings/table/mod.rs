//! The one table of settings that change how payloads are read, with the defaults of ClickHouse 26.7. A
//! setting that begins like one of them and isn't in the table may change reading in a way that is not known
//! here.

mod binary;
mod common;
mod delimited;
mod interchange;
mod json;
mod other;

use super::delimited::Delimited;
use super::format_schema::Which;
use super::json::Json;
use crate::format::Families;

/// The knowledge of the readers about a name.
pub(super) enum Known {
    Listed(&'static Row),
    /// A setting that changes reading, going by its name, but is not in the table.
    Unlisted,
    Irrelevant,
}

/// A setting of ClickHouse.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The default as `system.settings` has it.
    pub(crate) default: &'static str,
    /// The formats whose reading the setting changes; for all others it may have any value.
    pub(super) formats: Families,
    pub(super) effect: Effect,
}

#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// The setting changes speed, the guessing of a schema, or payloads that are never read here.
    Nothing,
    /// No other value than the default is implemented.
    OnlyDefault,
    SkipUnknownFields,
    Delimited(Delimited),
    Json(Json),
    FormatSchema(Which),
    NullAsDefault,
    NativeCasts,
    DatetimeNumberIsRaw,
    PreciseFloatParsing,
    DateTimeInputFormat,
    SessionTimezone,
}

const fn row(name: &'static str, default: &'static str, formats: Families, effect: Effect) -> Row {
    Row { name, default, formats, effect }
}

const TABLES: [&[Row]; 6] = [common::ROWS, json::ROWS, delimited::ROWS, binary::ROWS, interchange::ROWS, other::ROWS];

const PREFIXES: &[&str] = &["input_format_", "format_", "date_time_", "cast_"];

pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

pub(super) fn find(name: &str) -> Known {
    match rows().find(|row| row.name == name) {
        Some(row) => Known::Listed(row),
        None if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) => Known::Unlisted,
        None => Known::Irrelevant,
    }
}
