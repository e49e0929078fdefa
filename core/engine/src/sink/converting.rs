//! Conversion of rows whose types their table no longer has.
//!
//! A batch is sent in the types that the table had when its rows were read, and ClickHouse is told to cast
//! nothing of it. Somebody may have changed the table since, and of the text 0.5 an Int32 has not kept what
//! the Float64 would store. Rows that ClickHouse refuses then go one of two ways:
//!
//! - ClickHouse casts them, and proves of each value that the cast loses nothing of what was read: cast back,
//!   the value has to be the same text. Otherwise its insert fails, as one does whose values the table
//!   refuses.
//! - Inserts whose senders wait are refused where something may have been lost before: a Decimal that keeps
//!   more digits by now would get them from the text alone. The sender can send such an insert again
//!   ([`Again`]), and it is read for the table as it is. Rows that were acknowledged exist nowhere else any
//!   more, and are cast as they were read.

use windrow_clickhouse::{ErrorCode, Exception};
use windrow_columns::wire::write_varint;
use windrow_columns::{DataType, TupleType};
use windrow_sql::{backquote, quote_string};

use super::batch::{Again, Destination, Form};

/// Settings with which ClickHouse refuses a Native block in other types than the table's, and a NULL for a
/// column that holds none.
pub const NO_CASTS: [(&str, &str); 2] =
    [("input_format_native_allow_types_conversion", "0"), ("input_format_null_as_default", "0")];

/// Says whether ClickHouse, told to cast nothing, takes this type for a column that has it, and whether it
/// can tell others from it.
pub fn needs_no_cast(data_type: &DataType) -> bool {
    !any_part(data_type, &|part: &DataType| {
        use DataType::*;
        matches!(part, Variant(_) | Dynamic | Json { .. } | QBit { .. } | Nothing)
    })
}

/// Says whether ClickHouse, told to cast nothing, would take this type for another one: of Enums it would
/// compare no names, and of Tuples no names of their elements.
fn is_compared_by_name(data_type: &DataType) -> bool {
    any_part(data_type, &|part: &DataType| {
        matches!(part, DataType::Enum8(_) | DataType::Enum16(_) | DataType::Tuple(TupleType { names: Some(_), .. }))
    })
}

fn any_part(data_type: &DataType, is_meant: &impl Fn(&DataType) -> bool) -> bool {
    use DataType::*;
    is_meant(data_type)
        || match data_type {
            Nullable(inner) | LowCardinality(inner) | Array(inner) => any_part(inner, is_meant),
            Map(key, value) => any_part(key, is_meant) || any_part(value, is_meant),
            Tuple(tuple) => tuple.elements.iter().any(|element| any_part(element, is_meant)),
            Custom(custom) => any_part(&custom.inner, is_meant),
            _ => false,
        }
}

/// Says whether the refusal means that the table has other types by now.
pub(crate) fn is_about_types(exception: &Exception, destination: &Destination) -> bool {
    let is_said = match exception.code {
        ErrorCode::TYPE_MISMATCH => true,
        ErrorCode::INCORRECT_DATA => exception.line.contains(": (while reading header)"),
        _ => false,
    };
    is_said && casts_nothing(destination)
}

/// Gives the exception the code of a type mismatch, whatever its own code was: it concerns all rows.
pub(super) fn type_mismatch(exception: Exception) -> Exception {
    Exception { code: ErrorCode::TYPE_MISMATCH, ..exception }
}

fn casts_nothing(destination: &Destination) -> bool {
    destination.settings.iter().any(|(name, value)| (&**name, &**value) == NO_CASTS[0])
}

/// Returns the header that is sent before the rows where ClickHouse would take them for others. It is a
/// header without rows, of which ClickHouse compares every name. Returns its format and the body.
pub(super) fn header(destination: &Destination) -> Option<(&'static str, Vec<u8>)> {
    let Form::Native { types } = &destination.form else { return None };
    if !casts_nothing(destination) || !types.iter().any(is_compared_by_name) {
        return None;
    }
    let mut body = Vec::new();
    write_varint(&mut body, types.len() as u64);
    let names = destination.columns.iter().cloned().chain(types.iter().map(DataType::to_string));
    for name in names {
        write_varint(&mut body, name.len() as u64);
        body.extend_from_slice(name.as_bytes());
    }
    Some(("RowBinaryWithNamesAndTypes", body))
}

/// The way to deal with rows that were refused for their types.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// The table has these types: another spelling was refused.
    Needless,
    /// The SELECT between the columns of an INSERT and its FORMAT with which rows are stored in the types of
    /// now.
    By(String),
    /// The refusal stands: a column is gone, or somebody has better rows.
    Refused,
}

/// Returns the query for the table's types: see [`conversion`].
pub(super) fn types_question(database: &str, table: &str) -> String {
    format!(
        "SELECT name, type FROM system.columns WHERE database = {} AND table = {} FORMAT JSONCompactEachRow",
        quote_string(database),
        quote_string(table)
    )
}

/// Returns how rows of the destination's types become rows of the types that the answer tells.
pub(super) fn conversion(destination: &Destination, answer: &str, again: Again) -> Conversion {
    conversion_of(destination, answer, again).unwrap_or(Conversion::Refused)
}

fn conversion_of(destination: &Destination, answer: &str, again: Again) -> Option<Conversion> {
    let Form::Native { types } = &destination.form else { return None };
    let now: Vec<(String, String)> = answer.lines().map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    let (mut structure, mut values, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    for (name, sent) in destination.columns.iter().zip(types) {
        let (_, type_now) = now.iter().find(|(known, _)| known == name)?;
        let (name, sent_name) = (backquote(name), sent.native_name());
        structure.push(format!("{name} {sent_name}"));
        let parsed = DataType::parse(type_now).ok();
        if parsed.as_ref().is_some_and(|parsed| parsed.native_name() == sent_name) {
            values.push(name);
            continue;
        }
        if again != Again::Never && !parsed.is_some_and(|parsed| has_lost_nothing(sent, &parsed, again)) {
            return None;
        }
        let cast = format!("accurateCast({name}, {})", quote_string(type_now));
        let back = format!("accurateCast({cast}, {})", quote_string(&sent_name));
        let text = |value: &str| format!("ifNull(concat('=', toString({value})), '')");
        losses.push(format!("{} != {}", text(&back), text(&name)));
        values.push(cast);
    }
    if losses.is_empty() {
        return Some(Conversion::Needless);
    }
    Some(Conversion::By(format!(
        "SELECT {} FROM input({}) WHERE NOT throwIf({}, {})",
        values.join(", "),
        quote_string(&structure.join(", ")),
        losses.join(" OR "),
        quote_string("a value that was acknowledged for the column as it was is another one in its type of now")
    )))
}

/// Says whether a value that was read for one type surely has all that is read from the same text for the
/// other type, or is refused. (Except for the spelling of integers: 007 has become 7.) If the sender has made
/// values for the type, only the sender knows what they were before, except that an integer was one.
fn has_lost_nothing(sent: &DataType, now: &DataType, again: Again) -> bool {
    use DataType::*;
    let has_lost_nothing = |sent: &DataType, now: &DataType| has_lost_nothing(sent, now, again);
    match (sent, now) {
        (LowCardinality(sent), now) => has_lost_nothing(sent, now),
        (sent, LowCardinality(now)) => has_lost_nothing(sent, now),
        (Nullable(sent), Nullable(now)) | (Array(sent), Array(now)) => has_lost_nothing(sent, now),
        (Map(sent_key, sent), Map(now_key, now)) => has_lost_nothing(sent_key, now_key) && has_lost_nothing(sent, now),
        (sent, now) if sent == now => true,
        // A NULL was read as a default.
        (_, Nullable(_)) => false,
        (Decimal { scale: sent, .. }, Decimal { scale: now, .. }) => sent == now,
        (sent, now) if is_integer(sent) && is_integer(now) => true,
        (String, _) => again == Again::Text,
        (sent, Float32 | Float64 | Decimal { .. } | String) => again == Again::Text && is_integer(sent),
        _ => false,
    }
}

fn is_integer(data_type: &DataType) -> bool {
    use DataType::*;
    let is_unsigned = matches!(data_type, UInt8 | UInt16 | UInt32 | UInt64 | UInt128 | UInt256);
    is_unsigned || matches!(data_type, Int8 | Int16 | Int32 | Int64 | Int128 | Int256)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> DataType {
        DataType::parse(name).expect("a type")
    }

    #[test]
    fn what_reading_may_have_lost_is_known() {
        for (sent, now) in [
            ("Int32", "Int64"),
            ("Int64", "UInt8"),
            ("Int32", "Float64"),
            ("UInt32", "String"),
            ("String", "UInt32"),
            ("LowCardinality(String)", "DateTime"),
            ("Array(Nullable(UInt16))", "Array(Nullable(UInt32))"),
            ("Map(String, Int8)", "Map(LowCardinality(String), Int64)"),
            ("Decimal(9, 3)", "Decimal(18, 3)"),
        ] {
            assert!(has_lost_nothing(&of(sent), &of(now), Again::Text), "{sent} as {now}");
        }
        for (sent, now) in [
            ("Int32", "Nullable(Int32)"),
            ("Float32", "Float64"),
            ("Decimal(18, 3)", "Decimal(18, 6)"),
            ("Date", "DateTime"),
            ("DateTime", "DateTime64(3)"),
            ("DateTime", "DateTime('Asia/Tokyo')"),
            ("DateTime64(3)", "DateTime"),
            ("FixedString(3)", "String"),
            ("Bool", "String"),
            ("Array(Float32)", "Array(Float64)"),
        ] {
            assert!(!has_lost_nothing(&of(sent), &of(now), Again::Text), "{sent} as {now}");
        }
        assert!(has_lost_nothing(&of("Int32"), &of("Int64"), Again::Values));
        for now in ["Float64", "String"] {
            assert!(!has_lost_nothing(&of("Int32"), &of(now), Again::Values), "0.5 may have been what it was made of");
        }
    }

    #[test]
    fn types_that_clickhouse_would_take_for_others_are_known() {
        for name in ["UInt8", "Array(LowCardinality(String))", "Map(String, Float64)", "Tuple(Int8, Date)", "Point"] {
            assert!(needs_no_cast(&of(name)) && !is_compared_by_name(&of(name)), "{name}");
        }
        for name in ["Enum8('a' = 1)", "Array(Enum16('a' = 1))", "Tuple(a Int8)", "Map(String, Tuple(a Int8))"] {
            assert!(needs_no_cast(&of(name)) && is_compared_by_name(&of(name)), "{name}");
        }
    }
}
