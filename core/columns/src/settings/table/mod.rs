//! The one table of settings that bear on reading, with the defaults of ClickHouse 26.7. Whatever begins like one of
//! them and isn't in it may bear on reading in a way that nobody here knows.

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

/// What the readers know about a name.
pub(super) enum Known {
    Listed(&'static Row),
    /// By its name it bears on reading, but it is not in the table.
    Unlisted,
    Irrelevant,
}

/// A setting of ClickHouse.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// As `system.settings` has it.
    pub(crate) default: &'static str,
    /// The formats on whose reading it bears; for all others it may have any value.
    pub(super) formats: Families,
    pub(super) effect: Effect,
}

#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// Bears on speed, on guessing a schema, or on payloads that are never read here.
    Nothing,
    /// Only the default is implemented.
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
