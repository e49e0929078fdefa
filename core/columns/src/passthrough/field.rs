//! The way in which ClickHouse reads a field of CSV or TSV, as far as it decides where the field ends.

use super::counted::Counted;

/// Kinds of types, by the way in which their values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// Values that are read to the end of the field, and never beyond it.
    Token,
    /// Values that are read by the number of their bytes, whichever those are. Except in TSVRaw, a value that
    /// is cut off goes on in the next line.
    Counted(Counted),
    /// Values in brackets. In TSV they are read as they stand, quotes and all, also over line breaks. In CSV
    /// they are read as one text.
    Brackets,
    /// Values like `Brackets`, which in CSV may also take several fields.
    Tuple,
    Unknown,
}

const TOKENS: &[&str] = &[
    "AggregateFunction",
    "BFloat16",
    "Bool",
    "Decimal",
    "Dynamic",
    "Enum16",
    "Enum8",
    "FixedString",
    "Float32",
    "Float64",
    "IPv4",
    "IPv6",
    "Int128",
    "Int16",
    "Int256",
    "Int32",
    "Int64",
    "Int8",
    "JSON",
    "String",
    "UInt128",
    "UInt16",
    "UInt256",
    "UInt32",
    "UInt64",
    "UInt8",
    "Variant",
];

/// Types whose values are read by the number of their bytes.
const COUNTED: &[&str] = &["Date", "Date32", "DateTime", "DateTime64", "Time", "Time64", "UUID"];

/// Depth of types within types; far more than anybody writes.
const MAX_DEPTH: usize = 16;

impl FieldKind {
    /// Returns the kind of a type that is named as DESCRIBE names it.
    pub(super) fn of(type_name: &str) -> FieldKind {
        FieldKind::within(type_name, 0)
    }

    fn within(type_name: &str, depth: usize) -> FieldKind {
        let (name, arguments) = match type_name.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or("")),
            None => (type_name, ""),
        };
        match name {
            _ if TOKENS.contains(&name) => FieldKind::Token,
            "Nullable" | "LowCardinality" if depth < MAX_DEPTH => FieldKind::within(arguments, depth + 1),
            "SimpleAggregateFunction" if depth < MAX_DEPTH => {
                let (_, value) = arguments.split_once(", ").unwrap_or_default();
                FieldKind::within(value, depth + 1)
            }
            "Date" | "Date32" => FieldKind::Counted(Counted::Date),
            "DateTime" | "DateTime64" => FieldKind::Counted(Counted::Moment),
            "Time" | "Time64" => FieldKind::Counted(Counted::TimeOfDay),
            "UUID" => FieldKind::Counted(Counted::Uuid),
            // Where such values end within brackets is looked at no closer.
            _ if names_in(arguments).any(|name| COUNTED.contains(&name)) => FieldKind::Unknown,
            "Array" | "Map" | "Nested" | "Ring" | "LineString" | "MultiLineString" | "Polygon" | "MultiPolygon" => {
                FieldKind::Brackets
            }
            "Tuple" | "Point" => FieldKind::Tuple,
            _ => FieldKind::Unknown,
        }
    }
}

fn names_in(arguments: &str) -> impl Iterator<Item = &str> {
    arguments.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
}

/// The number of brackets that a field may have open at a time.
const MAX_OPEN: usize = 64;

/// Says whether a field of TSV is a value in brackets that ends where the field does.
pub(super) fn is_balanced(field: &[u8]) -> bool {
    if field == b"\\N" {
        return true;
    }
    let mut open = [0u8; MAX_OPEN];
    let mut depth = 0;
    let mut at = 0;
    while let Some(&byte) = field.get(at) {
        at += 1;
        match byte {
            b'[' | b'(' | b'{' if depth < MAX_OPEN => {
                open[depth] = byte;
                depth += 1;
            }
            // Outside of all brackets there is nothing to read.
            _ if depth == 0 => return false,
            b']' | b')' | b'}' => {
                depth -= 1;
                if !matches!((open[depth], byte), (b'[', b']') | (b'(', b')') | (b'{', b'}')) {
                    return false;
                }
                if depth == 0 {
                    return at == field.len();
                }
            }
            b'\'' => match end_of_quoted(&field[at..]) {
                Some(length) => at += length,
                None => return false,
            },
            // Another kind of quotes, or more open than can be kept in mind.
            b'"' | b'`' | b'\\' | b'[' | b'(' | b'{' => return false,
            _ => {}
        }
    }
    false
}

/// Returns the length of a text behind an opening quote, up to and with the closing quote.
fn end_of_quoted(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'\'', b'\\', &bytes[at..])?;
        if bytes[at] == b'\'' {
            return Some(at + 1);
        }
        at += 2;
        if at > bytes.len() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_their_outermost_layer() {
        let cases = [
            ("UInt64", FieldKind::Token),
            ("Date", FieldKind::Counted(Counted::Date)),
            ("LowCardinality(Date32)", FieldKind::Counted(Counted::Date)),
            ("Nullable(DateTime64(3, 'Asia/Tokyo'))", FieldKind::Counted(Counted::Moment)),
            ("SimpleAggregateFunction(max, DateTime('UTC'))", FieldKind::Counted(Counted::Moment)),
            ("Array(Date)", FieldKind::Unknown),
            ("Map(String, Array(Nullable(DateTime64(3))))", FieldKind::Unknown),
            ("Tuple(id UUID)", FieldKind::Unknown),
            ("LowCardinality(Nullable(String))", FieldKind::Token),
            ("JSON(max_dynamic_paths=4, a Array(String))", FieldKind::Token),
            ("Variant(Array(UInt8), Tuple(a String))", FieldKind::Token),
            ("AggregateFunction(sum, UInt64)", FieldKind::Token),
            ("SimpleAggregateFunction(sum, UInt64)", FieldKind::Token),
            ("SimpleAggregateFunction(groupArrayArray, Array(UInt64))", FieldKind::Brackets),
            ("SimpleAggregateFunction(groupArrayArray(3), Array(UInt64))", FieldKind::Brackets),
            ("Array(UInt64)", FieldKind::Brackets),
            ("Map(String, String)", FieldKind::Brackets),
            ("Nullable(Tuple(a String))", FieldKind::Tuple),
            ("Point", FieldKind::Tuple),
            ("QBit(Float32, 8)", FieldKind::Unknown),
            ("Nullable(", FieldKind::Unknown),
            ("", FieldKind::Unknown),
        ];
        for (type_name, expected) in cases {
            assert_eq!(FieldKind::of(type_name), expected, "{type_name}");
        }
    }

    #[test]
    fn a_field_is_balanced_if_nothing_is_left_open() {
        for field in ["[]", "[1,2]", "[(1,'a'),(2,'b\\'')]", "{'a':[1]}", "['[']", "\\N", "['a''b']", "[ 1 ]"] {
            assert!(is_balanced(field.as_bytes()), "{field}");
        }
        for field in [
            "", "1", "[1,", "[1]x", "[1)", "['a]", "['a\\']", "['a\\", "[\"a\"]", " [1]", "[1] ", "[1][2]", "[a\\]",
            "]",
        ] {
            assert!(!is_balanced(field.as_bytes()), "{field}");
        }
        assert!(!is_balanced("[".repeat(100).as_bytes()));
        assert!(!is_balanced(format!("{}{}", "[".repeat(65), "]".repeat(65)).as_bytes()));
    }
}
