use std::sync::Arc;

use crate::column::Column;
use crate::plan::Zones;
use crate::types::{DataType, EnumValue};
use crate::zone::Zone;

/// A type made ready for reading: zones looked up, Enums indexed, LowCardinality gone.
pub(crate) enum Reader {
    Integer {
        width: usize,
        signed: bool,
    },
    WideInteger {
        width: usize,
        signed: bool,
    },
    Float32,
    Float64,
    BFloat16,
    Bool,
    String,
    FixedString(usize),
    Date,
    Date32,
    DateTime(Arc<Zone>),
    DateTime64 {
        precision: u8,
        zone: Arc<Zone>,
    },
    Time,
    Time64 {
        precision: u8,
    },
    Decimal {
        precision: u8,
        scale: u8,
        width: usize,
    },
    Uuid,
    Ipv4,
    Ipv6,
    Enum(EnumReader),
    Nullable(Box<Reader>),
    Array(Box<Reader>),
    Map(Box<MapReader>),
    Tuple(TupleReader),
    /// A Variant, of which only NULL is read.
    Variant,
}

pub(crate) struct EnumReader {
    width: usize,
    /// Names and numbers, sorted by number.
    values: Vec<EnumValue>,
    /// Positions in `values`, sorted by name.
    by_name: Vec<usize>,
}

pub(crate) struct MapReader {
    pub(crate) key: Reader,
    pub(crate) value: Reader,
}

pub(crate) struct TupleReader {
    pub(crate) names: Option<Vec<String>>,
    pub(crate) elements: Vec<Reader>,
}

impl Reader {
    pub(crate) fn new(data_type: &DataType, zones: &mut Zones) -> Self {
        use DataType::*;
        let integer = |width, signed| Reader::Integer { width, signed };
        let wide = |width, signed| Reader::WideInteger { width, signed };
        match data_type {
            UInt8 => integer(1, false),
            UInt16 => integer(2, false),
            UInt32 => integer(4, false),
            UInt64 => integer(8, false),
            Int8 => integer(1, true),
            Int16 => integer(2, true),
            Int32 => integer(4, true),
            Int64 | Interval(_) => integer(8, true),
            UInt128 => wide(16, false),
            UInt256 => wide(32, false),
            Int128 => wide(16, true),
            Int256 => wide(32, true),
            Float32 => Reader::Float32,
            Float64 => Reader::Float64,
            BFloat16 => Reader::BFloat16,
            Bool => Reader::Bool,
            String => Reader::String,
            FixedString(width) => Reader::FixedString(*width),
            Date => Reader::Date,
            Date32 => Reader::Date32,
            DateTime { timezone } => Reader::DateTime(zones.get(timezone.as_deref())),
            DateTime64 { precision, timezone } => {
                Reader::DateTime64 { precision: *precision, zone: zones.get(timezone.as_deref()) }
            }
            Time => Reader::Time,
            Time64 { precision } => Reader::Time64 { precision: *precision },
            Decimal { precision, scale } => Reader::Decimal {
                precision: *precision,
                scale: *scale,
                width: data_type.fixed_width().expect("a Decimal has a fixed width"),
            },
            Uuid => Reader::Uuid,
            Ipv4 => Reader::Ipv4,
            Ipv6 => Reader::Ipv6,
            Enum8(values) => Reader::Enum(EnumReader::new(1, values)),
            Enum16(values) => Reader::Enum(EnumReader::new(2, values)),
            Nullable(inner) => Reader::Nullable(Box::new(Reader::new(inner, zones))),
            LowCardinality(inner) => Reader::new(inner, zones),
            Array(inner) => Reader::Array(Box::new(Reader::new(inner, zones))),
            Map(key, value) => {
                Reader::Map(Box::new(MapReader { key: Reader::new(key, zones), value: Reader::new(value, zones) }))
            }
            // The others are types of no plan: `DataType::parse` does not give them.
            Variant(_) | Dynamic | Json { .. } | QBit { .. } | Nothing | AggregateFunction(_) => Reader::Variant,
            Custom(custom) => Reader::new(&custom.inner, zones),
            Tuple(tuple) => Reader::Tuple(TupleReader {
                names: tuple.names.clone(),
                elements: tuple.elements.iter().map(|element| Reader::new(element, zones)).collect(),
            }),
        }
    }

    /// Appends the value that ClickHouse stores for a column that is left out and has no DEFAULT expression.
    /// It differs from the column's zero for Enums only, where it is the lowest value.
    pub(crate) fn push_default(&self, column: &mut Column) {
        match (self, column) {
            (Reader::Enum(reader), Column::Fixed { data, .. }) => {
                let lowest = reader.values.first().map_or(0, |entry| entry.value);
                data.extend_from_slice(&lowest.to_le_bytes()[..reader.width]);
            }
            (Reader::Tuple(tuple), Column::Tuple { elements }) => {
                for (reader, element) in tuple.elements.iter().zip(elements) {
                    reader.push_default(element);
                }
            }
            (_, column) => column.push_zero(),
        }
    }

    /// Says whether the type's zero is an empty value of other values, or made of their zeros.
    pub(crate) fn holds_others(&self) -> bool {
        matches!(self, Reader::Array(_) | Reader::Map(_) | Reader::Tuple(_))
    }

    /// Says whether the column's zero would set an Enum to zero, which may be none of its values.
    pub(crate) fn zero_is_doubtful(&self) -> bool {
        match self {
            Reader::Enum(_) => true,
            Reader::Tuple(tuple) => tuple.elements.iter().any(Reader::zero_is_doubtful),
            _ => false,
        }
    }
}

impl EnumReader {
    fn new(width: usize, values: &[EnumValue]) -> Self {
        let mut by_name: Vec<usize> = (0..values.len()).collect();
        by_name.sort_by(|a, b| values[*a].name.cmp(&values[*b].name));
        EnumReader { width, values: values.to_vec(), by_name }
    }

    pub(crate) fn push_named(&self, name: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let found = self.by_name.binary_search_by(|index| self.values[*index].name.as_bytes().cmp(name)).ok()?;
        let value = self.values[self.by_name[found]].value;
        out.extend_from_slice(&value.to_le_bytes()[..self.width]);
        Some(())
    }

    pub(crate) fn push_value(&self, value: i64, out: &mut Vec<u8>) -> Option<()> {
        let value = i16::try_from(value).ok()?;
        self.values.binary_search_by_key(&value, |entry| entry.value).ok()?;
        out.extend_from_slice(&value.to_le_bytes()[..self.width]);
        Some(())
    }
}
