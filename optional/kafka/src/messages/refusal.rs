//! The error text of a message that can't be read, and whether ClickHouse would surely refuse it too.

use windrow_columns::{DataType, NotParsedReason, SeriesError};

use crate::messages::error::{MessageError, Unread};
use crate::messages::plan::MessagePlan;

/// Bytes of the message that are shown on either side of the place where reading stopped.
const SHOWN_BYTES: usize = 24;

#[cold]
pub(crate) fn refused(plan: &MessagePlan, value: &[u8], error: SeriesError) -> Unread {
    let row = error.row + 1;
    let column = error.column.and_then(|field| plan.column_of_field(field));
    let mut text = what(error.reason, plan.format.name());
    if let Some(at) = error.at {
        text.push_str(&near(value, at));
    }
    if let Some(column) = column {
        text.push_str(&format!(": (while reading the value of column `{}` of type {})", column.name, column.data_type));
    }
    text.push_str(&format!(": (at row {row})"));
    let data_type = column.map(|column| &column.data_type);
    let certain = error.is_refused || is_certain(plan.format.name(), value, &error, data_type);
    Unread::Refused(MessageError { text, row, column: column.map(|column| column.name.clone()), certain })
}

fn what(reason: NotParsedReason, format: &str) -> String {
    use NotParsedReason as R;
    let what = match reason {
        R::Syntax => "Cannot parse input: it is not well-formed, or cut off",
        R::Value => "Cannot parse input: the value is not one of the column's type",
        R::Expression => "Cannot parse input: expected a literal",
        R::UnknownField => return format!("Unknown field found while parsing {format} format"),
        R::DuplicateField => return format!("Duplicate field found while parsing {format} format"),
        R::MixedDefaults => {
            "Some rows of the message have a value for a column with a DEFAULT expression and others have none"
        }
        R::Null => "Cannot convert NULL value to non-Nullable type",
        R::TimeZone => "Cannot parse datetime: its time zone has this local time twice or not at all, or is not known",
        R::Setting => "A setting, or the version of the server, asks for another way of reading this value",
        R::TooDeep => "Too deep nesting",
        R::ColumnKind => "The format can't be read into these columns",
    };
    what.to_owned()
}

/// Describes the place with the bytes around it.
fn near(value: &[u8], at: usize) -> String {
    let at = at.min(value.len());
    let shown = &value[at.saturating_sub(SHOWN_BYTES)..value.len().min(at + SHOWN_BYTES)];
    match at == value.len() {
        true => format!(", at its end, behind '{}'", shown.escape_ascii()),
        false => format!(", near '{}'", shown.escape_ascii()),
    }
}

/// Says whether ClickHouse would surely refuse the message. Only plainly damaged ones count; ClickHouse
/// judges all others. These rules were compared with ClickHouse on damaged messages.
fn is_certain(format: &str, value: &[u8], error: &SeriesError, data_type: Option<&DataType>) -> bool {
    let (is_broken, at) = (error.reason == NotParsedReason::Syntax, error.at.unwrap_or(0));
    match format {
        "RowBinary" | "MsgPack" => is_broken && at == value.len(),
        "JSONEachRow" if is_broken || error.reason == NotParsedReason::Value => {
            is_no_json(value, at) || is_broken && is_broken_json(value, at) || is_word(value, at, data_type)
        }
        _ => false,
    }
}

/// Says whether the value is no JSON object at all, or is cut off.
fn is_no_json(value: &[u8], at: usize) -> bool {
    let first = value.iter().find(|byte| !byte.is_ascii_whitespace() && **byte != 0x0B);
    // A mark of byte order and separators may be passed over.
    let is_other = !first.is_some_and(|first| matches!(first, b'{' | b'[' | b',' | b';' | 0xEF));
    is_other || at >= value.len() || is_open_string(value, at)
}

/// Says whether the place is inside a string that does not end.
fn is_open_string(value: &[u8], at: usize) -> bool {
    let (mut inside, mut escaped) = (false, false);
    for byte in &value[..at] {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    inside && !value[at..].contains(&b'"')
}

/// Says whether an object has a byte that can't stand at this place. Some bytes are left out, since it isn't
/// known where ClickHouse passes over them.
fn is_broken_json(value: &[u8], at: usize) -> bool {
    let is_object = value.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    is_object && value.get(at).is_some_and(|byte| !b"+.;,'}]eE\0".contains(byte))
}

/// Says whether a word stands where an integer has to be.
fn is_word(value: &[u8], at: usize, data_type: Option<&DataType>) -> bool {
    let is_letter = value.get(at).is_some_and(|byte| byte.is_ascii_alphabetic() && !matches!(byte, b't' | b'f' | b'n'));
    is_letter && data_type.is_some_and(is_integer)
}

/// Says whether the type is an integer that no word can be read into.
fn is_integer(data_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        data_type,
        T::UInt8
            | T::UInt16
            | T::UInt32
            | T::UInt64
            | T::UInt128
            | T::UInt256
            | T::Int8
            | T::Int16
            | T::Int32
            | T::Int64
    )
}
