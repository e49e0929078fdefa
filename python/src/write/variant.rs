//! The choice of the alternative of a Variant that a value is meant for: the only one whose Python class is
//! the value's own.

use pyo3::intern;
use pyo3::prelude::*;
use windrow_columns::{CustomType, DataType};

use super::context::Context;
use super::plan::{Alternative, Around, Node, ValueClass, VariantNode};
use super::problem::Problem;
use super::value::Value;

/// A value and the number of the alternative that it is written as.
pub(super) struct Chosen<'py> {
    pub(super) alternative: usize,
    pub(super) value: Bound<'py, PyAny>,
}

impl VariantNode {
    pub(super) fn of(py: Python<'_>, alternatives: &[DataType]) -> Result<Self, String> {
        let mut alternatives = alternatives
            .iter()
            .map(|alternative| {
                let node = Node::inside(py, alternative, Around::Variant)?;
                Ok(Alternative { type_name: alternative.to_string(), class: class_of(alternative), node })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let classes: Vec<_> = alternatives.iter().map(|alternative| alternative.class).collect();
        for alternative in &mut alternatives {
            // Two alternatives with one class: only `typed_variant` can tell which is meant.
            if classes.iter().filter(|class| **class == alternative.class).count() > 1 {
                alternative.class = None;
            }
        }
        Ok(VariantNode { alternatives })
    }

    pub(super) fn choose<'py>(&self, context: &Context<'py>, value: Value<'py>) -> Result<Chosen<'py>, Problem> {
        let value = value.held();
        if Value::of(&value).is_tuple() && value.get_type().name()? == "TypedVariant" {
            return self.choose_named(&value);
        }
        let class = class_of_value(context, Value::of(&value));
        let found = class.and_then(|class| self.alternatives.iter().position(|one| one.class == Some(class)));
        match found {
            Some(alternative) => Ok(Chosen { alternative, value }),
            None => Err(Problem::said(format!(
                "a {} fits none of {}, or more than one: say which with typed_variant(value, type)",
                value.get_type().name()?,
                self.type_names()
            ))),
        }
    }

    fn choose_named<'py>(&self, typed: &Bound<'py, PyAny>) -> Result<Chosen<'py>, Problem> {
        let py = typed.py();
        let type_name: String = typed.getattr(intern!(py, "type_name"))?.extract()?;
        match self.alternatives.iter().position(|one| one.type_name == type_name) {
            Some(alternative) => Ok(Chosen { alternative, value: typed.getattr(intern!(py, "value"))? }),
            None => Err(Problem::said(format!("type {type_name} is none of {}", self.type_names()))),
        }
    }

    fn type_names(&self) -> String {
        self.alternatives.iter().map(|one| one.type_name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn class_of(alternative: &DataType) -> Option<ValueClass> {
    Some(match alternative {
        DataType::Nullable(inner) | DataType::LowCardinality(inner) => class_of(inner)?,
        DataType::Array(_) => ValueClass::List,
        DataType::Map(..) | DataType::Json { .. } => ValueClass::Dict,
        DataType::Tuple(_) => ValueClass::Tuple,
        DataType::Custom(CustomType { name, inner }) if name.starts_with("SimpleAggregateFunction") => class_of(inner)?,
        DataType::QBit { .. } => ValueClass::List,
        scalar => class_of_scalar(scalar)?,
    })
}

fn class_of_scalar(scalar: &DataType) -> Option<ValueClass> {
    use DataType as D;
    Some(match scalar {
        D::Float32 | D::Float64 | D::BFloat16 => ValueClass::Float,
        D::Bool => ValueClass::Bool,
        D::String | D::FixedString(_) | D::Enum8(_) | D::Enum16(_) => ValueClass::Str,
        D::Date | D::Date32 => ValueClass::Date,
        D::DateTime { .. } | D::DateTime64 { .. } => ValueClass::DateTime,
        D::Time | D::Time64 { .. } => ValueClass::TimeDelta,
        D::Decimal { .. } => ValueClass::Decimal,
        D::Uuid => ValueClass::Uuid,
        D::Ipv4 => ValueClass::Ipv4,
        D::Ipv6 => ValueClass::Ipv6,
        D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 | D::UInt128 | D::UInt256 => ValueClass::Int,
        D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::Int128 | D::Int256 | D::Interval(_) => ValueClass::Int,
        _ => return None,
    })
}

/// Returns the kind of a value by its exact class: a bool is no int here.
fn class_of_value<'py>(context: &Context<'py>, value: Value<'py>) -> Option<ValueClass> {
    use pyo3::ffi;
    let class = value.class();
    let builtins: [(*mut ffi::PyTypeObject, ValueClass); 7] = [
        (&raw mut ffi::PyLong_Type, ValueClass::Int),
        (&raw mut ffi::PyFloat_Type, ValueClass::Float),
        (&raw mut ffi::PyBool_Type, ValueClass::Bool),
        (&raw mut ffi::PyUnicode_Type, ValueClass::Str),
        (&raw mut ffi::PyList_Type, ValueClass::List),
        (&raw mut ffi::PyTuple_Type, ValueClass::Tuple),
        (&raw mut ffi::PyDict_Type, ValueClass::Dict),
    ];
    let names = context.names;
    let imported = [
        (&names.date, ValueClass::Date),
        (&names.datetime, ValueClass::DateTime),
        (&names.timedelta, ValueClass::TimeDelta),
        (&names.decimal, ValueClass::Decimal),
        (&names.uuid, ValueClass::Uuid),
        (&names.ipv4, ValueClass::Ipv4),
        (&names.ipv6, ValueClass::Ipv6),
    ];
    let imported = imported.into_iter().map(|(known, kind)| (known.as_ptr().cast(), kind));
    builtins.into_iter().chain(imported).find(|(known, _)| *known == class).map(|(_, kind)| kind)
}
