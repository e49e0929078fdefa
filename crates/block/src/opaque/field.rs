//! How ClickHouse reads a field of CSV or TSV, as far as it concerns where the field ends.

/// Types by how their values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// To the end of the field, and never beyond it.
    Token,
    /// In TSV as they stand, quotes and all: over line breaks, too. In CSV as one text.
    Brackets,
    /// As `Brackets`; in CSV also over several fields.
    Tuple,
    Unknown,
}

const TOKENS: &[&str] = &[
    "AggregateFunction",
    "BFloat16",
    "Bool",
    "Date",
    "Date32",
    "DateTime",
    "DateTime64",
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
    "Time",
    "Time64",
    "UInt128",
    "UInt16",
    "UInt256",
    "UInt32",
    "UInt64",
    "UInt8",
    "UUID",
    "Variant",
];

/// Types within types; far more than anybody writes.
const MAX_DEPTH: usize = 16;

impl FieldKind {
    /// Of a type's name, as DESCRIBE has it.
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
            "Array" | "Map" | "Nested" | "Ring" | "LineString" | "MultiLineString" | "Polygon" | "MultiPolygon" => {
                FieldKind::Brackets
            }
            "Tuple" | "Point" => FieldKind::Tuple,
            _ => FieldKind::Unknown,
        }
    }
}

/// Brackets that a field may have open at a time.
const MAX_OPEN: usize = 64;

/// Whether a field of TSV is a value in brackets that ends where the field does.
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

/// The length of what stands behind an opening quote, up to and with the closing one.
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
            ("Nullable(DateTime64(3, 'Asia/Tokyo'))", FieldKind::Token),
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
