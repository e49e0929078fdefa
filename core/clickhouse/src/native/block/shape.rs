//! The layout of a type's values, as far as it is needed to find where they end.

use std::sync::Arc;

use windrow_columns::wire::{DICTIONARY_VERSION, PLAIN_DISCRIMINATORS};
use windrow_columns::DataType;

use super::state::State;
use super::Step;
use crate::native::input::Fault;

#[derive(Debug)]
pub(super) enum Shape {
    Fixed(usize),
    String,
    Nullable(Arc<Shape>),
    Array(Arc<Shape>),
    Tuple(Vec<Arc<Shape>>),
    /// A dictionary; the shape of its keys.
    LowCardinality(Arc<Shape>),
    Variant(Vec<Arc<Shape>>),
    /// Values whose types the head of the column names.
    Dynamic,
    /// The shapes of the declared paths, in the order of their names. The head of the column names the other paths.
    Json(Arc<[Arc<Shape>]>),
    /// States of an aggregate function, one after the other. Each state says itself how long it is.
    States(Arc<State>),
}

impl Shape {
    /// Returns the type that a block names, and its shape.
    pub(super) fn named(type_text: &str) -> Result<(DataType, Arc<Shape>), Fault> {
        let data_type = DataType::parse_passing(type_text);
        let data_type = data_type.map_err(|_| Fault::Unsupported("a type that Windrow doesn't know"))?;
        let shape = Shape::of(&data_type)?;
        Ok((data_type, shape))
    }

    fn of(data_type: &DataType) -> Result<Arc<Shape>, Fault> {
        let shape = match data_type {
            DataType::String => Shape::String,
            DataType::Nullable(inner) => Shape::Nullable(Shape::of(inner)?),
            DataType::Array(inner) => Shape::Array(Shape::of(inner)?),
            DataType::Map(key, value) => Shape::Array(Arc::new(Shape::Tuple(vec![Shape::of(key)?, Shape::of(value)?]))),
            // One of no elements has a byte in each row.
            DataType::Tuple(tuple) if tuple.elements.is_empty() => Shape::Fixed(1),
            DataType::Tuple(tuple) => Shape::Tuple(Shape::of_all(&tuple.elements)?),
            DataType::LowCardinality(inner) => match &**inner {
                DataType::Nullable(inner) => Shape::LowCardinality(Shape::of(inner)?),
                inner => Shape::LowCardinality(Shape::of(inner)?),
            },
            DataType::Variant(types) => Shape::Variant(Shape::of_all(types)?),
            DataType::Dynamic => Shape::Dynamic,
            // It may as well be the path that is left out which has the name of a type.
            DataType::Json { typed_paths } if typed_paths.iter().any(|(path, _)| path == "SKIP") => {
                return Err(UNKNOWN_LAYOUT);
            }
            DataType::Json { typed_paths } => Shape::Json(Shape::of_all(typed_paths.iter().map(|(_, of)| of))?.into()),
            DataType::QBit { dimension, array } => match &**array {
                // The highest bit of all numbers of all rows, then the next one.
                DataType::Array(element) => match element.fixed_width() {
                    Some(width) => Shape::Fixed(dimension.div_ceil(8) * width * 8),
                    None => return Err(UNKNOWN_LAYOUT),
                },
                _ => return Err(UNKNOWN_LAYOUT),
            },
            DataType::Nothing => Shape::Fixed(1),
            DataType::AggregateFunction(function) => Shape::States(State::of(function)?),
            DataType::Custom(custom) => return Shape::of(&custom.inner),
            other => match other.fixed_width() {
                Some(width) => Shape::Fixed(width),
                None => return Err(UNKNOWN_LAYOUT),
            },
        };
        Ok(Arc::new(shape))
    }

    fn of_all<'t>(types: impl IntoIterator<Item = &'t DataType>) -> Result<Vec<Arc<Shape>>, Fault> {
        types.into_iter().map(Shape::of).collect()
    }

    /// Puts the heads of a column of this shape on the stack.
    pub(super) fn prefix(&self, steps: &mut Vec<Step>) {
        match self {
            Shape::Fixed(_) | Shape::String | Shape::States(_) => {}
            Shape::Nullable(inner) | Shape::Array(inner) => inner.prefix(steps),
            Shape::Tuple(elements) => elements.iter().rev().for_each(|element| element.prefix(steps)),
            Shape::LowCardinality(_) => steps.push(Step::Word(DICTIONARY_VERSION)),
            Shape::Variant(types) => {
                types.iter().rev().for_each(|inner| inner.prefix(steps));
                steps.push(Step::Word(PLAIN_DISCRIMINATORS));
            }
            Shape::Dynamic => steps.push(Step::DynamicHeads(1)),
            Shape::Json(paths) => steps.push(Step::JsonHead(paths.clone())),
        }
    }

    /// Returns how many kinds of serialisation follow the mark of a column.
    pub(super) fn kinds(&self) -> usize {
        match self {
            Shape::Tuple(elements) => 1 + elements.iter().map(|element| element.kinds()).sum::<usize>(),
            _ => 1,
        }
    }
}

const UNKNOWN_LAYOUT: Fault = Fault::Unsupported("a type whose values Windrow can't find the end of");
