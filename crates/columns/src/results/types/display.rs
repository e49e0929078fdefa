//! A type in the server's spelling.

use std::fmt::{self, Display, Formatter};

use crate::write_identifier;

use super::Type;

impl Display for Type {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(scalar) => write!(out, "{scalar}"),
            Type::Nullable(inner) => write!(out, "Nullable({inner})"),
            Type::LowCardinality(inner) => write!(out, "LowCardinality({inner})"),
            Type::Array(inner) => write!(out, "Array({inner})"),
            Type::Map(key, value) => write!(out, "Map({key}, {value})"),
            Type::Tuple { names, elements } => write_tuple(out, names.as_deref(), elements),
            Type::Variant(alternatives) => write_variant(out, alternatives),
            Type::Dynamic => out.write_str("Dynamic"),
            Type::Json { typed_paths } => write_json(out, typed_paths),
            Type::QBit { dimension, array } => match array.as_ref() {
                Type::Array(element) => write!(out, "QBit({element}, {dimension})"),
                other => write!(out, "QBit({other}, {dimension})"),
            },
            Type::Nothing => out.write_str("Nothing"),
            Type::Alias { name, .. } => out.write_str(name),
        }
    }
}

fn write_tuple(out: &mut Formatter<'_>, names: Option<&[String]>, elements: &[Type]) -> fmt::Result {
    out.write_str("Tuple(")?;
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        if let Some(name) = names.and_then(|names| names.get(index)) {
            write_identifier(out, name)?;
            out.write_str(" ")?;
        }
        write!(out, "{element}")?;
    }
    out.write_str(")")
}

fn write_variant(out: &mut Formatter<'_>, alternatives: &[Type]) -> fmt::Result {
    out.write_str("Variant(")?;
    for (index, alternative) in alternatives.iter().enumerate() {
        let separator = if index > 0 { ", " } else { "" };
        write!(out, "{separator}{alternative}")?;
    }
    out.write_str(")")
}

fn write_json(out: &mut Formatter<'_>, typed_paths: &[(String, Type)]) -> fmt::Result {
    out.write_str("JSON")?;
    for (index, (path, path_type)) in typed_paths.iter().enumerate() {
        out.write_str(if index > 0 { ", " } else { "(" })?;
        write_identifier(out, path)?;
        write!(out, " {path_type}")?;
    }
    out.write_str(if typed_paths.is_empty() { "" } else { ")" })
}
