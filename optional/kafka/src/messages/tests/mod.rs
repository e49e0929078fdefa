//! Tests of messages and the rows that they must become.

mod avro;
mod payloads;
mod protobuf;
mod virtual_columns;

use windrow_columns::{Block, ColumnSpec, DataType, DefaultKind, Format, ReadPlan, ReadSettings};

use crate::messages::{Headers, Mapping, Message, MessageFormat, MessagePlan, SchemaSource};

pub(crate) fn column(name: &str, type_text: &str) -> ColumnSpec {
    let data_type = DataType::parse(type_text).expect("a test's type");
    ColumnSpec { name: name.to_owned(), data_type, default_kind: DefaultKind::None }
}

pub(crate) fn defaulted(name: &str, type_text: &str) -> ColumnSpec {
    ColumnSpec { default_kind: DefaultKind::Default, ..column(name, type_text) }
}

pub(crate) fn mapping(columns: &[(&str, &str)]) -> Mapping {
    let columns = columns.iter().map(|(column, field)| (column.to_string(), field.to_string())).collect();
    Mapping { columns, null_asks_for_default: false }
}

pub(crate) fn settings() -> ReadSettings {
    let mut settings = ReadSettings::default();
    settings.set_server_timezone("UTC");
    settings
}

pub(crate) fn plan(format: &str, columns: Vec<ColumnSpec>, mapped: &[(&str, &str)]) -> MessagePlan {
    let format = MessageFormat::new(format, SchemaSource::default()).expect("a test's format");
    MessagePlan::new(format, columns, &mapping(mapped), settings()).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn message(offset: i64, value: &[u8]) -> Message<'_> {
    Message {
        offset,
        timestamp_ms: 1_700_000_000_000 + offset,
        key: None,
        value: Some(value),
        headers: Headers::default(),
    }
}

/// Returns the rows that these columns have when they come as JSON over HTTP.
pub(crate) fn rows(columns: &[ColumnSpec], json: &str) -> Block {
    let plan = ReadPlan::new(columns.to_vec(), settings());
    let format = Format::named("JSONEachRow").expect("it is there");
    (format.read)(json.as_bytes(), &plan).unwrap_or_else(|not_parsed| panic!("{not_parsed}: {json}")).block
}
