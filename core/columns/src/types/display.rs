use std::fmt::{self, Display, Formatter, Write};

use super::{CustomType, DataType, EnumValue, TupleType};

impl Display for DataType {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write_type(out, self, Spelling::Declared)
    }
}

impl DataType {
    /// Returns the name without the part in brackets; for a type with another name, that of the type that it
    /// stands for.
    pub fn family(&self) -> &'static str {
        use DataType::*;
        match self {
            UInt8 => "UInt8",
            UInt16 => "UInt16",
            UInt32 => "UInt32",
            UInt64 => "UInt64",
            UInt128 => "UInt128",
            UInt256 => "UInt256",
            Int8 => "Int8",
            Int16 => "Int16",
            Int32 => "Int32",
            Int64 => "Int64",
            Int128 => "Int128",
            Int256 => "Int256",
            Float32 => "Float32",
            Float64 => "Float64",
            BFloat16 => "BFloat16",
            Bool => "Bool",
            String => "String",
            FixedString(_) => "FixedString",
            Date => "Date",
            Date32 => "Date32",
            DateTime { .. } => "DateTime",
            DateTime64 { .. } => "DateTime64",
            Time => "Time",
            Time64 { .. } => "Time64",
            Interval(unit) => unit.type_name(),
            Decimal { .. } => "Decimal",
            Uuid => "UUID",
            Ipv4 => "IPv4",
            Ipv6 => "IPv6",
            Enum8(_) => "Enum8",
            Enum16(_) => "Enum16",
            Nullable(_) => "Nullable",
            LowCardinality(_) => "LowCardinality",
            Array(_) => "Array",
            Map(..) => "Map",
            Tuple(_) => "Tuple",
            Variant(_) => "Variant",
            Dynamic => "Dynamic",
            Json { .. } => "JSON",
            QBit { .. } => "QBit",
            Nothing => "Nothing",
            AggregateFunction(_) => "AggregateFunction",
            Custom(custom) => custom.inner.family(),
        }
    }

    /// Returns the name to write in a Native block. LowCardinality is left out at every depth: the values are
    /// sent as they are and ClickHouse builds its dictionaries itself. So names that may have it inside are
    /// left out as well. A Dynamic is sent as the String that its values are written as.
    pub fn native_name(&self) -> String {
        let mut name = String::new();
        write_type(&mut name, self, Spelling::Native).expect("writing to a String cannot fail");
        name
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Spelling {
    Declared,
    Native,
}

fn write_type(out: &mut impl Write, data_type: &DataType, spelling: Spelling) -> fmt::Result {
    use DataType::*;
    let family = data_type.family();
    match data_type {
        FixedString(width) => write!(out, "{family}({width})"),
        Decimal { precision, scale } => write!(out, "{family}({precision}, {scale})"),
        DateTime { timezone } => write_date_time(out, timezone.as_deref()),
        DateTime64 { precision, timezone } => write_date_time64(out, *precision, timezone.as_deref()),
        Time64 { precision } => write!(out, "{family}({precision})"),
        Enum8(values) | Enum16(values) => write_enum(out, family, values),
        LowCardinality(inner) if spelling == Spelling::Native => write_type(out, inner, spelling),
        Nullable(inner) | LowCardinality(inner) | Array(inner) => write_nested(out, family, &[inner], spelling),
        Map(key, value) => write_nested(out, family, &[key, value], spelling),
        Tuple(tuple) => write_tuple(out, tuple, spelling),
        // A Variant is converted only into one with the same alternatives.
        Variant(alternatives) => {
            write_nested(out, family, &alternatives.iter().collect::<Vec<_>>(), Spelling::Declared)
        }
        Dynamic if spelling == Spelling::Native => write_type(out, &String, spelling),
        Json { typed_paths } => write_json(out, typed_paths, spelling),
        QBit { dimension, array } => write_qbit(out, *dimension, array, spelling),
        Custom(custom) if spelling == Spelling::Native && may_hold_low_cardinality(custom) => {
            write_type(out, &custom.inner, spelling)
        }
        AggregateFunction(function) => out.write_str(&function.spelled),
        Custom(custom) => out.write_str(&custom.name),
        _ => out.write_str(family),
    }
}

/// Says whether the type's name may have LowCardinality inside. A JSON's documents are sent as they are,
/// whatever types its paths have.
fn may_hold_low_cardinality(custom: &CustomType) -> bool {
    custom.name.ends_with(')') && !matches!(*custom.inner, DataType::Json { .. })
}

fn write_date_time(out: &mut impl Write, timezone: Option<&str>) -> fmt::Result {
    out.write_str("DateTime")?;
    match timezone {
        Some(timezone) => {
            out.write_char('(')?;
            write_quoted(out, timezone, '\'')?;
            out.write_char(')')
        }
        None => Ok(()),
    }
}

fn write_date_time64(out: &mut impl Write, precision: u8, timezone: Option<&str>) -> fmt::Result {
    write!(out, "DateTime64({precision}")?;
    if let Some(timezone) = timezone {
        out.write_str(", ")?;
        write_quoted(out, timezone, '\'')?;
    }
    out.write_char(')')
}

fn write_enum(out: &mut impl Write, family: &str, values: &[EnumValue]) -> fmt::Result {
    write!(out, "{family}(")?;
    for (index, EnumValue { name, value }) in values.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_quoted(out, name, '\'')?;
        write!(out, " = {value}")?;
    }
    out.write_char(')')
}

fn write_nested(out: &mut impl Write, family: &str, inner: &[&DataType], spelling: Spelling) -> fmt::Result {
    write!(out, "{family}(")?;
    for (index, inner) in inner.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_type(out, inner, spelling)?;
    }
    out.write_char(')')
}

fn write_tuple(out: &mut impl Write, tuple: &TupleType, spelling: Spelling) -> fmt::Result {
    out.write_str("Tuple(")?;
    for (index, element) in tuple.elements.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        if let Some(names) = &tuple.names {
            write_identifier(out, &names[index])?;
            out.write_char(' ')?;
        }
        write_type(out, element, spelling)?;
    }
    out.write_char(')')
}

fn write_json(out: &mut impl Write, typed_paths: &[(String, DataType)], spelling: Spelling) -> fmt::Result {
    out.write_str("JSON")?;
    for (index, (path, path_type)) in typed_paths.iter().enumerate() {
        out.write_str(if index > 0 { ", " } else { "(" })?;
        write_identifier(out, path)?;
        out.write_char(' ')?;
        write_type(out, path_type, spelling)?;
    }
    out.write_str(if typed_paths.is_empty() { "" } else { ")" })
}

fn write_qbit(out: &mut impl Write, dimension: usize, array: &DataType, spelling: Spelling) -> fmt::Result {
    let element = match array {
        DataType::Array(element) => element.as_ref(),
        other => other,
    };
    out.write_str("QBit(")?;
    write_type(out, element, spelling)?;
    write!(out, ", {dimension})")
}

/// Words that ClickHouse puts in back-quotes although they look like plain identifiers.
const QUOTED_WORDS: [&str; 5] = ["NULL", "DISTINCT", "ALL", "TABLE", "SELECT"];

/// Writes a name as ClickHouse writes it in a type, in back-quotes where it needs them.
///
/// # Errors
/// Fails where `out` can't be written to.
pub fn write_identifier(out: &mut impl Write, name: &str) -> fmt::Result {
    let plain = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !QUOTED_WORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
    if plain {
        out.write_str(name)
    } else {
        write_quoted(out, name, '`')
    }
}

fn write_quoted(out: &mut impl Write, text: &str, quote: char) -> fmt::Result {
    out.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\t' => out.write_str("\\t")?,
            '\r' => out.write_str("\\r")?,
            '\0' => out.write_str("\\0")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            other if other == quote => {
                out.write_char('\\')?;
                out.write_char(other)?;
            }
            other => out.write_char(other)?,
        }
    }
    out.write_char(quote)
}
