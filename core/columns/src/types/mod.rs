//! ClickHouse's types, as far as Windrow reads and writes values of them.
//!
//! A type that can't be inserted is not an error of the user's: the gateway forwards inserts into such tables.

mod display;
mod interval;
mod parse;

pub use display::write_identifier;
pub use interval::IntervalUnit;
pub use parse::TypeError;

/// A ClickHouse type. Aliases (`INT`, `Decimal64(3)`) are already resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
    UInt256,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Int256,
    Float32,
    Float64,
    /// A float of 16 bits: the upper half of a Float32.
    BFloat16,
    Bool,
    String,
    /// A string of fixed length, in bytes.
    FixedString(usize),
    Date,
    Date32,
    DateTime {
        timezone: Option<String>,
    },
    DateTime64 {
        precision: u8,
        timezone: Option<String>,
    },
    /// A time of day or an amount of time, in seconds, negative ones included.
    Time,
    Time64 {
        precision: u8,
    },
    /// A count of some unit of time.
    Interval(IntervalUnit),
    Decimal {
        precision: u8,
        scale: u8,
    },
    Uuid,
    Ipv4,
    Ipv6,
    /// Names and numbers of an Enum, sorted by number, as ClickHouse prints them.
    Enum8(Vec<EnumValue>),
    Enum16(Vec<EnumValue>),
    Nullable(Box<DataType>),
    LowCardinality(Box<DataType>),
    Array(Box<DataType>),
    Map(Box<DataType>, Box<DataType>),
    Tuple(TupleType),
    /// The alternatives, sorted by name, which is the order of their discriminators.
    Variant(Vec<DataType>),
    /// A type that occurs only in results, as all that follow except `Custom`.
    Dynamic,
    /// `JSON` with the paths whose types were declared, sorted by path.
    Json {
        typed_paths: Vec<(String, DataType)>,
    },
    /// `QBit(Float32, 768)`: on the wire bit by bit, here an `Array` of `dimension` numbers in every row.
    QBit {
        dimension: usize,
        array: Box<DataType>,
    },
    Nothing,
    /// The states of an aggregate function: never read, only passed on.
    AggregateFunction(Box<AggregateFunction>),
    Custom(CustomType),
}

/// An aggregate function, as in `AggregateFunction(quantileIf(0.5), UInt64, UInt8)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AggregateFunction {
    /// The whole type, as it was spelled.
    pub spelled: String,
    /// The function's name without its parameters; `None` if its states have versions.
    pub name: Option<String>,
    pub arguments: Vec<DataType>,
}

/// A type under another name: `Point`, `Nested(...)`, `SimpleAggregateFunction(...)`, and in results `Dynamic` and `JSON`
/// with arguments. Its values are those of `inner`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomType {
    pub name: String,
    pub inner: Box<DataType>,
}

/// One name of an Enum and the number that is stored for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnumValue {
    pub name: String,
    pub value: i16,
}

/// The elements of a Tuple; either all of them have a name or none has. `Tuple()` has no elements; only results have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TupleType {
    pub names: Option<Vec<String>>,
    pub elements: Vec<DataType>,
}

impl DataType {
    /// Returns the bytes of one value in a Native block, for the types where all values have the same width.
    pub fn fixed_width(&self) -> Option<usize> {
        use DataType::*;
        Some(match self {
            UInt8 | Int8 | Bool | Enum8(_) => 1,
            UInt16 | Int16 | Date | Enum16(_) | BFloat16 => 2,
            UInt32 | Int32 | Float32 | Date32 | DateTime { .. } | Time | Ipv4 => 4,
            UInt64 | Int64 | Float64 | DateTime64 { .. } | Time64 { .. } | Interval(_) => 8,
            UInt128 | Int128 | Uuid | Ipv6 => 16,
            UInt256 | Int256 => 32,
            FixedString(width) => *width,
            Decimal { precision, .. } => DataType::decimal_width(*precision),
            Custom(custom) => return custom.inner.fixed_width(),
            String | Nullable(_) | LowCardinality(_) | Array(_) | Map(..) | Tuple(_) | Variant(_) => return None,
            Dynamic | Json { .. } | QBit { .. } | Nothing | AggregateFunction(_) => return None,
        })
    }

    /// Returns the bytes of a Decimal of `precision` digits.
    pub fn decimal_width(precision: u8) -> usize {
        match precision {
            0..=9 => 4,
            10..=18 => 8,
            19..=38 => 16,
            _ => 32,
        }
    }

    /// Says whether the type has no types inside and is no other name of a type.
    pub fn is_scalar(&self) -> bool {
        match self {
            DataType::String => true,
            DataType::Custom(_) => false,
            other => other.fixed_width().is_some(),
        }
    }

    pub(crate) fn contains_float(&self) -> bool {
        match self {
            DataType::Float32 | DataType::Float64 | DataType::BFloat16 => true,
            DataType::Nullable(inner) | DataType::LowCardinality(inner) | DataType::Array(inner) => {
                inner.contains_float()
            }
            DataType::Map(key, value) => key.contains_float() || value.contains_float(),
            DataType::Tuple(tuple) => tuple.elements.iter().any(DataType::contains_float),
            DataType::Variant(alternatives) => alternatives.iter().any(DataType::contains_float),
            DataType::Custom(custom) => custom.inner.contains_float(),
            _ => false,
        }
    }

    /// Returns the type that the values are laid out as: the one that another name stands for, and the
    /// `Array` of a `QBit`.
    pub fn plain(&self) -> &DataType {
        match self {
            DataType::Custom(custom) => custom.inner.plain(),
            DataType::QBit { array, .. } => array,
            plain => plain,
        }
    }

    /// Says whether NULL is a value of the type, for a type that can be inserted; a Variant's NULL is not a
    /// Nullable's.
    pub(crate) fn is_nullable(&self) -> bool {
        match self.plain() {
            DataType::Nullable(_) => true,
            DataType::LowCardinality(inner) => inner.is_nullable(),
            _ => false,
        }
    }
}
