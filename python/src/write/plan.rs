//! The plan for writing a column's values, worked out of its type once.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use windrow_columns::{DataType, TupleType};

use super::problem::{Problem, ValueError};
use super::qbit::QBitShape;

/// A column to be written.
pub(super) struct ColumnPlan {
    pub(super) name: String,
    /// The type as the table spells it.
    pub(super) type_name: String,
    pub(super) column_type: DataType,
    pub(super) node: Node,
}

impl ColumnPlan {
    pub(super) fn all(py: Python<'_>, names: &[String], type_names: &[String]) -> PyResult<Vec<Self>> {
        if names.len() != type_names.len() {
            return Err(PyValueError::new_err("as many types as columns are needed"));
        }
        names.iter().zip(type_names).map(|(name, type_name)| ColumnPlan::of(py, name, type_name)).collect()
    }

    fn of(py: Python<'_>, name: &str, type_name: &str) -> PyResult<Self> {
        let refused =
            |reason: String| ValueError::new(py, Problem::said(reason)).of_column(name, type_name).into_pyerr(py);
        let column_type = DataType::parse_result(type_name).map_err(|error| refused(error.to_string()))?;
        let node = Node::of(py, &column_type).map_err(refused)?;
        Ok(ColumnPlan { name: name.to_string(), type_name: type_name.to_string(), column_type, node })
    }
}

/// A type as the writers walk it. Only containers recurse, and the parser of types caps how deep they are.
pub(super) enum Node {
    Scalar(Scalar),
    Nullable(Box<Node>),
    Array(Box<Node>),
    Map(Box<Node>, Box<Node>),
    Tuple(TupleNode),
    Variant(VariantNode),
    QBit(QBitShape),
    /// LowCardinality inside of a Variant.
    Dictionary(Scalar),
}

/// The container of a type: a Variant is sent with its alternatives just as they are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Around {
    Anything,
    Variant,
}

/// A type whose values are written as one piece of bytes, the same in Native and in RowBinary.
pub(super) enum Scalar {
    Int {
        bytes: usize,
        signed: bool,
    },
    /// An integer of 16 or 32 bytes.
    BigInt {
        bytes: usize,
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
    DateTime {
        zone: Zone,
    },
    DateTime64 {
        precision: u8,
        zone: Zone,
    },
    Time,
    Time64 {
        precision: u8,
    },
    Decimal {
        precision: u8,
        scale: u8,
    },
    Uuid,
    Ipv4,
    Ipv6,
    Enum {
        bytes: usize,
        by_name: HashMap<Box<str>, i16>,
    },
    /// A document, which is sent as text.
    Json,
    /// A value that is sent as text, as clickhouse-connect does: a `Dynamic` made of a String.
    Dynamic,
    Nothing,
}

/// The zone in which naive datetimes are taken when the server's is asked for: the column's own, or none.
pub(super) type Zone = Option<Box<str>>;

pub(super) struct TupleNode {
    /// The elements' names, interned for look-ups in dicts.
    pub(super) names: Option<Vec<Py<PyString>>>,
    pub(super) elements: Vec<Node>,
}

pub(super) struct VariantNode {
    pub(super) alternatives: Vec<Alternative>,
}

pub(super) struct Alternative {
    pub(super) type_name: String,
    pub(super) class: Option<ValueClass>,
    pub(super) node: Node,
}

/// The Python class of a type's values, for the choice among a Variant's alternatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueClass {
    Int,
    Float,
    Bool,
    Str,
    Date,
    DateTime,
    TimeDelta,
    Decimal,
    Uuid,
    Ipv4,
    Ipv6,
    List,
    Tuple,
    Dict,
}

impl Node {
    pub(super) fn of(py: Python<'_>, column_type: &DataType) -> Result<Self, String> {
        Node::inside(py, column_type, Around::Anything)
    }

    pub(super) fn inside(py: Python<'_>, column_type: &DataType, around: Around) -> Result<Self, String> {
        let of = |inner| Node::inside(py, inner, around);
        Ok(match column_type {
            DataType::Nullable(inner) => Node::Nullable(Box::new(of(inner)?)),
            DataType::LowCardinality(inner) if around == Around::Variant => match of(inner)? {
                Node::Scalar(scalar) => Node::Dictionary(scalar),
                _ => return Err(format!("{column_type} in a Variant can't be inserted from Python")),
            },
            // ClickHouse builds its dictionaries itself.
            DataType::LowCardinality(inner) => of(inner)?,
            DataType::Array(inner) => Node::Array(Box::new(of(inner)?)),
            DataType::Map(key, value) => Node::Map(Box::new(of(key)?), Box::new(of(value)?)),
            DataType::Tuple(TupleType { names, elements }) => Node::Tuple(TupleNode {
                names: names
                    .as_ref()
                    .map(|names| names.iter().map(|name| PyString::intern(py, name).unbind()).collect()),
                elements: elements.iter().map(of).collect::<Result<_, _>>()?,
            }),
            DataType::Variant(alternatives) => Node::Variant(VariantNode::of(py, alternatives)?),
            DataType::Dynamic => Node::Scalar(Scalar::Dynamic),
            DataType::Json { .. } => Node::Scalar(Scalar::Json),
            DataType::Nothing => Node::Scalar(Scalar::Nothing),
            DataType::QBit { dimension, array } => {
                Node::QBit(QBitShape { dimension: *dimension, bits: qbit_bits(array)? })
            }
            DataType::Custom(custom) => of(&custom.inner)?,
            scalar => Node::Scalar(Scalar::of(scalar)?),
        })
    }
}

impl Scalar {
    fn of(scalar: &DataType) -> Result<Self, String> {
        use DataType as D;
        let int = |bytes, signed| Scalar::Int { bytes, signed };
        let zone = |timezone: &Option<String>| timezone.as_deref().map(Box::from);
        let by_name = |values: &[windrow_columns::EnumValue]| {
            values.iter().map(|entry| (Box::from(entry.name.as_str()), entry.value)).collect()
        };
        Ok(match scalar {
            D::Int8 => int(1, true),
            D::Int16 => int(2, true),
            D::Int32 => int(4, true),
            D::Int64 | D::Interval(_) => int(8, true),
            D::UInt8 => int(1, false),
            D::UInt16 => int(2, false),
            D::UInt32 => int(4, false),
            D::UInt64 => int(8, false),
            D::Int128 => Scalar::BigInt { bytes: 16, signed: true },
            D::Int256 => Scalar::BigInt { bytes: 32, signed: true },
            D::UInt128 => Scalar::BigInt { bytes: 16, signed: false },
            D::UInt256 => Scalar::BigInt { bytes: 32, signed: false },
            D::Float32 => Scalar::Float32,
            D::Float64 => Scalar::Float64,
            D::BFloat16 => Scalar::BFloat16,
            D::Bool => Scalar::Bool,
            D::String => Scalar::String,
            D::FixedString(width) => Scalar::FixedString(*width),
            D::Date => Scalar::Date,
            D::Date32 => Scalar::Date32,
            D::DateTime { timezone } => Scalar::DateTime { zone: zone(timezone) },
            D::DateTime64 { precision, timezone } => Scalar::DateTime64 { precision: *precision, zone: zone(timezone) },
            D::Time => Scalar::Time,
            D::Time64 { precision } => Scalar::Time64 { precision: *precision },
            D::Decimal { precision, scale } => Scalar::Decimal { precision: *precision, scale: *scale },
            D::Uuid => Scalar::Uuid,
            D::Ipv4 => Scalar::Ipv4,
            D::Ipv6 => Scalar::Ipv6,
            D::Enum8(values) => Scalar::Enum { bytes: 1, by_name: by_name(values) },
            D::Enum16(values) => Scalar::Enum { bytes: 2, by_name: by_name(values) },
            other => return Err(format!("values of type {other} can't be inserted from Python")),
        })
    }

    /// Returns the bytes of every value, where all have the same.
    pub(super) fn width(&self) -> Option<usize> {
        Some(match self {
            Scalar::Int { bytes, .. } | Scalar::BigInt { bytes, .. } | Scalar::Enum { bytes, .. } => *bytes,
            Scalar::Bool | Scalar::Nothing => 1,
            Scalar::BFloat16 | Scalar::Date => 2,
            Scalar::Float32 | Scalar::Date32 | Scalar::DateTime { .. } | Scalar::Time | Scalar::Ipv4 => 4,
            Scalar::Float64 | Scalar::DateTime64 { .. } | Scalar::Time64 { .. } => 8,
            Scalar::Uuid | Scalar::Ipv6 => 16,
            Scalar::FixedString(width) => *width,
            Scalar::Decimal { precision, .. } => DataType::decimal_width(*precision),
            Scalar::String | Scalar::Json | Scalar::Dynamic => return None,
        })
    }
}

fn qbit_bits(array: &DataType) -> Result<usize, String> {
    match array {
        DataType::Array(element) => match element.as_ref() {
            DataType::BFloat16 => Ok(16),
            DataType::Float32 => Ok(32),
            DataType::Float64 => Ok(64),
            other => Err(format!("a QBit of {other} can't be inserted from Python")),
        },
        other => Err(format!("a QBit of {other} can't be inserted from Python")),
    }
}
