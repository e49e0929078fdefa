use std::fmt::{self, Display, Formatter};

use super::{CustomType, DataType, EnumValue, IntervalUnit, TupleType};

/// Deeper than any table that people write, and shallow enough for recursion on a small stack.
const MAX_DEPTH: usize = 32;
/// ClickHouse's own limit for FixedString.
const MAX_FIXED_STRING_BYTES: u64 = 0xFF_FFFF;
/// The last discriminator means NULL.
const MAX_ALTERNATIVES: usize = 255;

/// Why a type's text was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeError {
    /// A type that Windrow does not read; inserts into such a table are forwarded.
    Unsupported(String),
    /// Not a type in ClickHouse's spelling.
    Malformed {
        offset: usize,
    },
    TooDeep,
}

impl Display for TypeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TypeError::Unsupported(name) => write!(out, "type {name} is not read by Windrow; it is left to ClickHouse"),
            TypeError::Malformed { offset } => write!(out, "no type in ClickHouse's spelling, at byte {offset}"),
            TypeError::TooDeep => write!(out, "types nested deeper than {MAX_DEPTH} are left to ClickHouse"),
        }
    }
}

impl std::error::Error for TypeError {}

impl DataType {
    /// Reads a type as DESCRIBE and Native blocks spell it.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        let mut parser = Parser { text, at: 0 };
        let data_type = parser.data_type(0)?;
        parser.skip_space();
        if parser.at == text.len() {
            Ok(data_type)
        } else {
            Err(parser.malformed())
        }
    }
}

fn custom(name: String, inner: DataType) -> DataType {
    DataType::Custom(CustomType { name, inner: Box::new(inner) })
}

/// The types of geometry, which are tuples and arrays under names of their own.
fn geo_type(name: &str) -> Option<DataType> {
    const SHAPES: [&str; 6] = ["LineString", "MultiLineString", "MultiPolygon", "Point", "Polygon", "Ring"];
    let array_of = |inner: &str| geo_type(inner).map(|inner| DataType::Array(Box::new(inner.plain().clone())));
    let inner = match name {
        "Point" => DataType::Tuple(TupleType { names: None, elements: vec![DataType::Float64, DataType::Float64] }),
        "Ring" | "LineString" => array_of("Point")?,
        "Polygon" | "MultiLineString" => array_of("Ring")?,
        "MultiPolygon" => array_of("Polygon")?,
        "Geometry" => DataType::Variant(SHAPES.into_iter().filter_map(geo_type).collect()),
        _ => return None,
    };
    Some(custom(name.to_string(), inner))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn data_type(&mut self, depth: usize) -> Result<DataType, TypeError> {
        let family = self.word()?;
        self.data_type_of(family, depth)
    }

    fn data_type_of(&mut self, family: &str, depth: usize) -> Result<DataType, TypeError> {
        use DataType::*;
        if depth >= MAX_DEPTH {
            return Err(TypeError::TooDeep);
        }
        Ok(match family {
            "UInt8" => UInt8,
            "UInt16" => UInt16,
            "UInt32" => UInt32,
            "UInt64" => UInt64,
            "UInt128" => UInt128,
            "UInt256" => UInt256,
            "Int8" => Int8,
            "Int16" => Int16,
            "Int32" => Int32,
            "Int64" => Int64,
            "Int128" => Int128,
            "Int256" => Int256,
            "Float32" => Float32,
            "Float64" => Float64,
            "BFloat16" => BFloat16,
            "Bool" => Bool,
            "String" => String,
            "Date" => Date,
            "Date32" => Date32,
            "Time" => Time,
            "Time64" => self.time64()?,
            "UUID" => Uuid,
            "IPv4" => Ipv4,
            "IPv6" => Ipv6,
            "FixedString" => self.fixed_string()?,
            "DateTime" => DateTime { timezone: self.date_time()? },
            "DateTime64" => self.date_time64()?,
            "Decimal" => self.decimal()?,
            "Decimal32" => self.decimal_of(9)?,
            "Decimal64" => self.decimal_of(18)?,
            "Decimal128" => self.decimal_of(38)?,
            "Decimal256" => self.decimal_of(76)?,
            "Enum" => self.enum_of_any_width()?,
            "Enum8" => Enum8(self.enum_values(i8::MIN.into(), i8::MAX.into())?),
            "Enum16" => Enum16(self.enum_values(i16::MIN, i16::MAX)?),
            "Nullable" => self.nullable(depth)?,
            "LowCardinality" => self.low_cardinality(depth)?,
            "Array" => Array(Box::new(self.only_inner(depth)?)),
            "Map" => self.map(depth)?,
            "Tuple" => self.tuple(depth)?,
            "Variant" => self.variant(depth)?,
            "Nested" => self.nested(depth)?,
            "SimpleAggregateFunction" => self.simple_aggregate_function(depth)?,
            other => match (IntervalUnit::of_type(other), geo_type(other)) {
                (Some(unit), _) => Interval(unit),
                (_, Some(geo)) => geo,
                _ => return Err(TypeError::Unsupported(other.chars().take(100).collect())),
            },
        })
    }

    fn fixed_string(&mut self) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let width = self.unsigned()?;
        self.expect(')')?;
        if width == 0 || width > MAX_FIXED_STRING_BYTES {
            return Err(self.malformed());
        }
        Ok(DataType::FixedString(width as usize))
    }

    fn date_time(&mut self) -> Result<Option<String>, TypeError> {
        if !self.eat('(') {
            return Ok(None);
        }
        let timezone = self.quoted('\'')?;
        self.expect(')')?;
        Ok(Some(timezone))
    }

    fn date_time64(&mut self) -> Result<DataType, TypeError> {
        let mut precision = 3;
        let mut timezone = None;
        if self.eat('(') {
            precision = self.unsigned()?;
            if self.eat(',') {
                timezone = Some(self.quoted('\'')?);
            }
            self.expect(')')?;
        }
        Ok(DataType::DateTime64 { precision: self.checked_precision(precision)?, timezone })
    }

    fn time64(&mut self) -> Result<DataType, TypeError> {
        let mut precision = 3;
        if self.eat('(') {
            precision = self.unsigned()?;
            self.expect(')')?;
        }
        Ok(DataType::Time64 { precision: self.checked_precision(precision)? })
    }

    fn checked_precision(&self, precision: u64) -> Result<u8, TypeError> {
        u8::try_from(precision).ok().filter(|precision| *precision <= 9).ok_or_else(|| self.malformed())
    }

    fn decimal(&mut self) -> Result<DataType, TypeError> {
        let (mut precision, mut scale) = (10, 0);
        if self.eat('(') {
            precision = self.unsigned()?;
            if self.eat(',') {
                scale = self.unsigned()?;
            }
            self.expect(')')?;
        }
        self.checked_decimal(precision, scale)
    }

    fn decimal_of(&mut self, precision: u64) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let scale = self.unsigned()?;
        self.expect(')')?;
        self.checked_decimal(precision, scale)
    }

    fn checked_decimal(&self, precision: u64, scale: u64) -> Result<DataType, TypeError> {
        if (1..=76).contains(&precision) && scale <= precision {
            Ok(DataType::Decimal { precision: precision as u8, scale: scale as u8 })
        } else {
            Err(self.malformed())
        }
    }

    fn enum_of_any_width(&mut self) -> Result<DataType, TypeError> {
        let values = self.enum_values(i16::MIN, i16::MAX)?;
        let is_small = values.iter().all(|entry| i8::try_from(entry.value).is_ok());
        Ok(if is_small { DataType::Enum8(values) } else { DataType::Enum16(values) })
    }

    fn enum_values(&mut self, lowest: i16, highest: i16) -> Result<Vec<EnumValue>, TypeError> {
        self.expect('(')?;
        let mut values: Vec<EnumValue> = Vec::new();
        let mut numbered = 0;
        loop {
            let name = self.quoted('\'')?;
            let value = if self.eat('=') {
                numbered += 1;
                self.signed()?
            } else {
                values.len() as i64 + 1
            };
            match i16::try_from(value) {
                Ok(value) if (lowest..=highest).contains(&value) => values.push(EnumValue { name, value }),
                _ => return Err(self.malformed()),
            }
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')')?;
        if numbered != 0 && numbered != values.len() {
            return Err(self.malformed());
        }
        values.sort_by_key(|entry| entry.value);
        Ok(values)
    }

    fn signed(&mut self) -> Result<i64, TypeError> {
        let negative = self.eat('-');
        let magnitude = i64::try_from(self.unsigned()?).map_err(|_| self.malformed())?;
        Ok(if negative { -magnitude } else { magnitude })
    }

    fn nullable(&mut self, depth: usize) -> Result<DataType, TypeError> {
        let inner = self.only_inner(depth)?;
        match inner.plain() {
            DataType::Nullable(_)
            | DataType::LowCardinality(_)
            | DataType::Array(_)
            | DataType::Map(..)
            | DataType::Variant(_) => Err(TypeError::Unsupported(format!("Nullable({inner})"))),
            _ => Ok(DataType::Nullable(Box::new(inner))),
        }
    }

    fn low_cardinality(&mut self, depth: usize) -> Result<DataType, TypeError> {
        let inner = self.only_inner(depth)?;
        let dictionary_of = match inner.plain() {
            DataType::Nullable(inner) => inner.plain(),
            plain => plain,
        };
        match dictionary_of {
            DataType::LowCardinality(_)
            | DataType::Array(_)
            | DataType::Map(..)
            | DataType::Tuple(_)
            | DataType::Variant(_) => Err(TypeError::Unsupported(format!("LowCardinality({inner})"))),
            _ => Ok(DataType::LowCardinality(Box::new(inner))),
        }
    }

    /// The alternatives are kept in ClickHouse's order. A Variant is converted only into one with the same
    /// alternatives, so those that a Native block would spell otherwise are not for us.
    fn variant(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let mut alternatives = Vec::new();
        loop {
            let alternative = self.data_type(depth + 1)?;
            let name = alternative.to_string();
            if alternative.is_nullable()
                || alternative.native_name() != name
                || matches!(alternative.plain(), DataType::Variant(_))
            {
                return Err(TypeError::Unsupported(format!("{name} in a Variant")));
            }
            alternatives.push(alternative);
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')')?;
        alternatives.sort_by_cached_key(DataType::to_string);
        alternatives.dedup();
        if alternatives.len() > MAX_ALTERNATIVES {
            return Err(self.malformed());
        }
        Ok(DataType::Variant(alternatives))
    }

    fn nested(&mut self, depth: usize) -> Result<DataType, TypeError> {
        let DataType::Tuple(tuple) = self.tuple(depth)? else { return Err(self.malformed()) };
        if tuple.names.is_none() {
            return Err(self.malformed());
        }
        let tuple = DataType::Tuple(tuple);
        let name = tuple.to_string().replacen("Tuple", "Nested", 1);
        Ok(custom(name, DataType::Array(Box::new(tuple))))
    }

    /// `SimpleAggregateFunction(sum, UInt64)`: values of the type that is aggregated.
    fn simple_aggregate_function(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let function = self.word()?;
        let mut name = format!("SimpleAggregateFunction({function}");
        if self.eat('(') {
            name.push('(');
            loop {
                name.push_str(self.word()?);
                if !self.eat(',') {
                    break;
                }
                name.push_str(", ");
            }
            self.expect(')')?;
            name.push(')');
        }
        self.expect(',')?;
        let inner = self.data_type(depth + 1)?;
        self.expect(')')?;
        Ok(custom(format!("{name}, {inner})"), inner))
    }

    fn map(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let key = self.data_type(depth + 1)?;
        self.expect(',')?;
        let value = self.data_type(depth + 1)?;
        self.expect(')')?;
        Ok(DataType::Map(Box::new(key), Box::new(value)))
    }

    fn tuple(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let mut names = Vec::new();
        let mut elements = Vec::new();
        if self.eat(')') {
            // Its rows would take no bytes at all; rare enough to be left to ClickHouse.
            return Err(TypeError::Unsupported("Tuple()".to_string()));
        }
        loop {
            let element = self.tuple_element(depth, &mut names)?;
            elements.push(element);
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')')?;
        let names = match names.len() {
            0 => None,
            count if count == elements.len() => Some(names),
            _ => return Err(self.malformed()),
        };
        Ok(DataType::Tuple(TupleType { names, elements }))
    }

    fn tuple_element(&mut self, depth: usize, names: &mut Vec<String>) -> Result<DataType, TypeError> {
        self.skip_space();
        if self.peek() == Some('`') {
            names.push(self.quoted('`')?);
            return self.data_type(depth + 1);
        }
        let word = self.word()?;
        self.skip_space();
        // `a UInt8` has a second word, `UInt8` and `Array(UInt8)` have not.
        if self.peek().is_some_and(|next| next.is_ascii_alphabetic()) {
            names.push(word.to_string());
            self.data_type(depth + 1)
        } else {
            self.data_type_of(word, depth + 1)
        }
    }

    fn only_inner(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let inner = self.data_type(depth + 1)?;
        self.expect(')')?;
        Ok(inner)
    }

    fn word(&mut self) -> Result<&'a str, TypeError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        if length == 0 {
            return Err(self.malformed());
        }
        self.at += length;
        Ok(&rest[..length])
    }

    fn unsigned(&mut self) -> Result<u64, TypeError> {
        let word = self.word()?;
        word.parse().map_err(|_| self.malformed())
    }

    fn quoted(&mut self, quote: char) -> Result<String, TypeError> {
        self.expect(quote)?;
        let mut text = String::new();
        loop {
            let next = self.next().ok_or_else(|| self.malformed())?;
            match next {
                '\\' => {
                    let escaped = self.next().ok_or_else(|| self.malformed())?;
                    text.push(self.unescape(escaped)?);
                }
                // A doubled quote stands for itself.
                next if next == quote && self.peek() == Some(quote) => {
                    self.next();
                    text.push(quote);
                }
                next if next == quote => return Ok(text),
                next => text.push(next),
            }
        }
    }

    fn unescape(&self, escaped: char) -> Result<char, TypeError> {
        Ok(match escaped {
            '\\' | '\'' | '`' | '"' => escaped,
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            'b' => '\u{8}',
            'f' => '\u{c}',
            _ => return Err(self.malformed()),
        })
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|next| next == ' ' || next == '\n' || next == '\t') {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), TypeError> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }

    fn malformed(&self) -> TypeError {
        TypeError::Malformed { offset: self.at }
    }
}
