//! Payloads as blocks.
//!
//! A reader accepts what ClickHouse is certain to store in exactly the same way, and gives everything else
//! back as `NotParsed`: the insert is then forwarded, and ClickHouse answers with its own error or its own
//! leniency. So a reader never produces an error text, and never needs to be as lenient as ClickHouse is; a
//! reader has to be right about every value that it accepts. Each accepted spelling was tried on a real
//! ClickHouse, type by type.

mod address;
mod allowance;
mod binary;
mod build;
mod cursor;
pub(crate) mod delimited;
pub(crate) mod json;
mod json_end;
mod json_text;
mod json_value;
mod layout;
mod msgpack;
mod native;
mod native_convert;
mod nested;
mod number;
mod outcome;
pub(crate) mod raw;
mod rows;
mod scalar;
mod sent_type;
mod series;
mod sql_text;
mod sql_value;
mod text_value;
mod time;
mod time_of_day;
mod values;

pub use binary::{
    read_row_binary, read_row_binary_with_defaults, read_row_binary_with_names, read_row_binary_with_names_and_types,
    read_row_binary_with_names_and_types_and_defaults,
};
pub use build::{BlockBuilder, ColumnData, StringData};
pub use json::read_json_each_row;
pub(crate) use json_end::end_of_json;
pub(crate) use json_text::Escapes;
pub use msgpack::read_msgpack;
pub use native::read_native;
pub use outcome::{NotParsed, NotParsedReason, Parsed};
pub use series::{Series, SeriesError};
pub use text_value::TextValues;
pub(crate) use time::TimeSpelling;
pub use values::read_values;
