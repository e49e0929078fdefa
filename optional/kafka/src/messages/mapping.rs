//! The source of the values of each column of the table.

use windrow_columns::{ColumnSpec, DefaultKind};

use crate::messages::error::PlanError;

/// The user's choice of a field for each column. A column that isn't named takes the field, or the virtual
/// column, of its own name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    pub columns: Vec<(String, String)>,
    /// True if the backend computes a column's DEFAULT expression where the column is given NULL and its type
    /// has none, as ClickHouse does under `input_format_null_as_default`. Then messages that have a field and
    /// messages that lack it become rows of the same columns.
    pub null_asks_for_default: bool,
}

/// The source of a column's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A field of the message. A field within another is written with dots.
    Field(String),
    Virtual(Virtual),
    /// The column's own expression in the table, since no value is given.
    Default,
    /// The type's default, since no value is given.
    Absent,
}

/// A value that every message has beside its fields. docs/kafka-engine.md has the types in ClickHouse's engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Virtual {
    Topic,
    Partition,
    Offset,
    Timestamp,
    TimestampMs,
    Key,
    HeaderNames,
    HeaderValues,
    /// The last value of the headers of one name.
    Header(String),
    RawMessage,
}

impl Virtual {
    pub fn named(name: &str) -> Option<Virtual> {
        Some(match name {
            "_topic" => Virtual::Topic,
            "_partition" => Virtual::Partition,
            "_offset" => Virtual::Offset,
            "_timestamp" => Virtual::Timestamp,
            "_timestamp_ms" => Virtual::TimestampMs,
            "_key" => Virtual::Key,
            "_headers.name" => Virtual::HeaderNames,
            "_headers.value" => Virtual::HeaderValues,
            "_raw_message" => Virtual::RawMessage,
            name => Virtual::Header(name.strip_prefix("_headers.").filter(|header| !header.is_empty())?.to_owned()),
        })
    }

    pub fn name(&self) -> String {
        match self {
            Virtual::Topic => "_topic".to_owned(),
            Virtual::Partition => "_partition".to_owned(),
            Virtual::Offset => "_offset".to_owned(),
            Virtual::Timestamp => "_timestamp".to_owned(),
            Virtual::TimestampMs => "_timestamp_ms".to_owned(),
            Virtual::Key => "_key".to_owned(),
            Virtual::HeaderNames => "_headers.name".to_owned(),
            Virtual::HeaderValues => "_headers.value".to_owned(),
            Virtual::RawMessage => "_raw_message".to_owned(),
            Virtual::Header(header) => format!("_headers.{header}"),
        }
    }
}

impl Mapping {
    /// Returns the source of every column, as far as the table and the user decide it.
    pub(crate) fn sources(&self, columns: &[ColumnSpec]) -> Result<Vec<Source>, PlanError> {
        for (name, _) in &self.columns {
            match columns.iter().find(|column| column.name == *name) {
                None => return Err(PlanError::UnknownColumn(name.clone())),
                Some(column) if !is_written(column) => return Err(PlanError::ColumnKind(name.clone())),
                Some(_) => {}
            }
        }
        Ok(columns.iter().map(|column| self.source(column)).collect())
    }

    fn source(&self, column: &ColumnSpec) -> Source {
        if !is_written(column) {
            return Source::Default;
        }
        let field = self.field(&column.name).unwrap_or(&column.name);
        match Virtual::named(field) {
            Some(source) => Source::Virtual(source),
            None if field.is_empty() => left_out(column),
            None => Source::Field(field.to_owned()),
        }
    }

    /// Returns the field that the user named for a column, if any.
    pub(crate) fn field(&self, column: &str) -> Option<&str> {
        self.columns.iter().find(|(name, _)| name == column).map(|(_, field)| field.as_str())
    }
}

pub(crate) fn is_written(column: &ColumnSpec) -> bool {
    matches!(column.default_kind, DefaultKind::None | DefaultKind::Default)
}

/// Returns the source of a column that no value is given for.
pub(crate) fn left_out(column: &ColumnSpec) -> Source {
    match column.default_kind {
        DefaultKind::None => Source::Absent,
        _ => Source::Default,
    }
}
