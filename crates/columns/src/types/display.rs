use std::fmt::{self, Display, Formatter, Write};

use super::{DataType, EnumValue, TupleType};

impl Display for DataType {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write_type(out, self, Spelling::Declared)
    }
}

impl DataType {
    /// The name to write in a Native block. LowCardinality is left out at every depth: the values are sent as they
    /// are and ClickHouse builds its dictionaries itself. So names that may have it inside are left out as well.
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
    let simple = match data_type {
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
        Date => "Date",
        Date32 => "Date32",
        Time => "Time",
        Interval(unit) => unit.type_name(),
        Uuid => "UUID",
        Ipv4 => "IPv4",
        Ipv6 => "IPv6",
        FixedString(width) => return write!(out, "FixedString({width})"),
        Decimal { precision, scale } => return write!(out, "Decimal({precision}, {scale})"),
        DateTime { timezone } => return write_date_time(out, timezone.as_deref()),
        DateTime64 { precision, timezone } => return write_date_time64(out, *precision, timezone.as_deref()),
        Time64 { precision } => return write!(out, "Time64({precision})"),
        Enum8(values) => return write_enum(out, "Enum8", values),
        Enum16(values) => return write_enum(out, "Enum16", values),
        LowCardinality(inner) if spelling == Spelling::Native => return write_type(out, inner, spelling),
        Nullable(inner) => return write_nested(out, "Nullable", &[inner], spelling),
        LowCardinality(inner) => return write_nested(out, "LowCardinality", &[inner], spelling),
        Array(inner) => return write_nested(out, "Array", &[inner], spelling),
        Map(key, value) => return write_nested(out, "Map", &[key, value], spelling),
        Tuple(tuple) => return write_tuple(out, tuple, spelling),
        Variant(alternatives) => {
            return write_nested(out, "Variant", &alternatives.iter().collect::<Vec<_>>(), spelling)
        }
        Custom(custom) if spelling == Spelling::Native && custom.name.ends_with(')') => {
            return write_type(out, &custom.inner, spelling)
        }
        Custom(custom) => &custom.name,
    };
    out.write_str(simple)
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

/// Words that ClickHouse puts in back-quotes although they look like plain identifiers.
const QUOTED_WORDS: [&str; 5] = ["NULL", "DISTINCT", "ALL", "TABLE", "SELECT"];

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
