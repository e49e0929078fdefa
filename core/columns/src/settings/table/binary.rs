//! Settings of Native, RowBinary and MsgPack.

use super::Effect::{NativeCasts, Nothing, OnlyDefault};
use super::{row, Row};
use crate::format::families::{ALL, MSGPACK, ROW_BINARY};

pub(super) const ROWS: &[Row] = &[
    row("format_binary_max_array_size", "1073741824", ROW_BINARY, OnlyDefault),
    row("format_binary_max_object_size", "100000", ROW_BINARY, OnlyDefault),
    row("format_binary_max_string_size", "1073741824", ROW_BINARY, OnlyDefault),
    row("input_format_binary_decode_types_in_binary_format", "0", ROW_BINARY, OnlyDefault),
    row("input_format_binary_max_type_complexity", "1000", ROW_BINARY, OnlyDefault),
    row("input_format_binary_read_json_as_string", "0", ROW_BINARY, OnlyDefault),
    row("input_format_msgpack_number_of_columns", "0", MSGPACK, Nothing),
    // Whatever came in goes on as Native, and where the table computes something, under the insert's own settings.
    row("input_format_native_allow_types_conversion", "1", ALL, NativeCasts),
    row("input_format_native_decode_types_in_binary_format", "0", ALL, OnlyDefault),
];
