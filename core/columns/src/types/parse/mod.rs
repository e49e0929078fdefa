//! One grammar of ClickHouse's type names, for three purposes that refuse different types.

mod cursor;
mod error;
mod nested;
mod open;

pub use error::TypeError;

use cursor::Parser;

use super::{CustomType, DataType, EnumValue, IntervalUnit, TupleType};

/// ClickHouse's own limit for FixedString.
const MAX_FIXED_STRING_BYTES: u64 = 0xFF_FFFF;
/// The longest name of a type: more than a `Tuple` of every column of a wide table.
const MAX_NAME_BYTES: usize = 16 << 20;

/// The purpose that a type is read for.
#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    /// An insert. Values that are not read here are left to ClickHouse, so a type is only taken if all of its
    /// values are.
    Insert,
    Result,
    /// Values that stay as they came: only their ends have to be known.
    Passing,
}

impl Purpose {
    /// Returns the limit of nesting: deeper than what people write, and shallow enough for recursion on a
    /// small stack.
    const fn max_depth(self) -> usize {
        match self {
            Purpose::Insert => 32,
            Purpose::Result | Purpose::Passing => 128,
        }
    }
}

impl DataType {
    /// The depth of types inside types that is followed in a result. A `Dynamic` names types in its values,
    /// so a reader continues to count through them.
    pub const MAX_RESULT_DEPTH: usize = Purpose::Result.max_depth();

    /// Reads a type as DESCRIBE and Native blocks spell it.
    ///
    /// # Errors
    /// Fails where the text is no type in ClickHouse's spelling, is nested too deeply, or values of it can't
    /// be inserted.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        Self::parse_for(Purpose::Insert, text, 0)
    }

    /// Reads the type of a result's column.
    ///
    /// # Errors
    /// Fails where the text is no type in ClickHouse's spelling, is nested too deeply, or its values can't be
    /// read.
    pub fn parse_result(text: &str) -> Result<Self, TypeError> {
        Self::parse_result_at(text, 0)
    }

    /// Reads the type of values that are not looked into.
    ///
    /// # Errors
    /// Fails where the text is no type in ClickHouse's spelling, is nested too deeply, or is not known.
    pub fn parse_passing(text: &str) -> Result<Self, TypeError> {
        Self::parse_for(Purpose::Passing, text, 0)
    }

    /// Reads the type of a name that occurs inside values, `depth` types down.
    ///
    /// # Errors
    /// Fails like [`DataType::parse_result`].
    pub fn parse_result_at(text: &str, depth: usize) -> Result<Self, TypeError> {
        Self::parse_for(Purpose::Result, text, depth)
    }

    fn parse_for(purpose: Purpose, text: &str, depth: usize) -> Result<Self, TypeError> {
        if text.len() > MAX_NAME_BYTES {
            return Err(TypeError::Malformed { offset: MAX_NAME_BYTES });
        }
        let mut parser = Parser { text, at: 0, purpose };
        let data_type = parser.data_type(depth)?;
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

/// Returns a type of geometry. These are tuples and arrays under names of their own.
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

impl Parser<'_> {
    fn data_type(&mut self, depth: usize) -> Result<DataType, TypeError> {
        use DataType::*;
        self.skip_space();
        let start = self.at;
        let family = self.word()?;
        match self.purpose {
            purpose if depth < purpose.max_depth() => {}
            Purpose::Insert => return Err(TypeError::TooDeep),
            Purpose::Result | Purpose::Passing => return Err(TypeError::TooDeepToRead),
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
            "Dynamic" if self.purpose != Purpose::Insert => self.dynamic(start)?,
            "JSON" if self.purpose != Purpose::Insert => self.json(start, depth)?,
            "QBit" if self.purpose != Purpose::Insert => self.qbit(depth)?,
            "Nothing" if self.purpose != Purpose::Insert => Nothing,
            "AggregateFunction" if self.purpose == Purpose::Passing => self.aggregate_function(start, depth)?,
            other => match (IntervalUnit::of_type(other), geo_type(other)) {
                (Some(unit), _) => Interval(unit),
                (_, Some(geo)) => geo,
                _ => return Err(self.unknown(start)),
            },
        })
    }

    /// Returns the error of a type that is not known. A result's reader is told the arguments as well;
    /// someone who inserts is told the family.
    fn unknown(&mut self, start: usize) -> TypeError {
        if self.purpose != Purpose::Insert && self.peek() == Some('(') {
            self.next();
            if let Err(malformed) = self.rest_of_arguments() {
                return malformed;
            }
        }
        self.refused(&self.text[start..self.at])
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
}
