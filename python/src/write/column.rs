//! A column of a Native block, gathered value by value.

use windrow_columns::wire::{DICTIONARY_VERSION, NULL_DISCRIMINATOR, PLAIN_DISCRIMINATORS};

use super::context::Context;
use super::dictionary::Dictionary;
use super::parts::{Items, Pairs};
use super::plan::Node;
use super::problem::Problem;
use super::qbit::BitPlanes;
use super::scalar::{stand_in, StandIn};
use super::value::Value;

/// The version of JSON columns whose values are texts.
const JSON_AS_STRING: u64 = 1;

/// The data of a column, shaped like its [`Node`].
pub(super) enum Column {
    Values(Vec<u8>),
    Nullable {
        nulls: Vec<u8>,
        inner: Box<Column>,
    },
    Array {
        ends: Ends,
        inner: Box<Column>,
    },
    Map {
        ends: Ends,
        keys: Box<Column>,
        values: Box<Column>,
    },
    Tuple {
        rows: usize,
        elements: Vec<Column>,
    },
    Variant {
        discriminators: Vec<u8>,
        alternatives: Vec<Column>,
    },
    QBit(BitPlanes),
    Dictionary(Dictionary),
    /// Data made elsewhere, of a type without prefixes. Nothing is appended to it.
    Ready(Vec<u8>),
}

/// The end of each row of an Array or Map, counted in elements.
#[derive(Default)]
pub(super) struct Ends {
    total: u64,
    bytes: Vec<u8>,
}

impl Ends {
    fn push(&mut self, length: usize) {
        self.total += length as u64;
        self.bytes.extend_from_slice(&self.total.to_le_bytes());
    }
}

impl Column {
    pub(super) fn new(node: &Node) -> Self {
        let boxed = |node| Box::new(Column::new(node));
        match node {
            Node::Scalar(_) => Column::Values(Vec::new()),
            Node::Nullable(inner) => Column::Nullable { nulls: Vec::new(), inner: boxed(inner) },
            Node::Array(inner) => Column::Array { ends: Ends::default(), inner: boxed(inner) },
            Node::Map(key, value) => Column::Map { ends: Ends::default(), keys: boxed(key), values: boxed(value) },
            Node::Tuple(tuple) => Column::Tuple { rows: 0, elements: tuple.elements.iter().map(Column::new).collect() },
            Node::Variant(variant) => Column::Variant {
                discriminators: Vec::new(),
                alternatives: variant.alternatives.iter().map(|one| Column::new(&one.node)).collect(),
            },
            Node::QBit(shape) => Column::QBit(BitPlanes::new(shape)),
            Node::Dictionary(_) => Column::Dictionary(Dictionary::default()),
        }
    }

    /// Appends a value. After a failure the column is of no more use.
    pub(super) fn push<'py>(&mut self, node: &Node, context: &Context<'py>, value: Value<'py>) -> Result<(), Problem> {
        match (self, node) {
            (Column::Values(out), Node::Scalar(scalar)) => {
                if value.is_none() && !scalar.takes_none() {
                    return Err(Problem::none());
                }
                scalar.put(context, value, out)
            }
            (Column::Nullable { nulls, inner }, Node::Nullable(inner_node)) => {
                push_nullable(nulls, inner, inner_node, context, value)
            }
            (Column::Array { ends, inner }, Node::Array(inner_node)) => {
                let items = Items::of(value)?;
                ends.push(items.len());
                for index in 0..items.len() {
                    inner.push(inner_node, context, items.get(index)?)?;
                }
                Ok(())
            }
            (Column::Map { ends, keys, values }, Node::Map(key_node, value_node)) => {
                let pairs = Pairs::of(value)?;
                ends.push(pairs.keys.len());
                for index in 0..pairs.keys.len() {
                    keys.push(key_node, context, pairs.keys.get(index)?)?;
                    values.push(value_node, context, pairs.values.get(index)?)?;
                }
                Ok(())
            }
            (Column::Tuple { rows, elements }, Node::Tuple(tuple)) => {
                *rows += 1;
                let items = tuple.elements_of(value)?;
                for (index, (element, node)) in elements.iter_mut().zip(&tuple.elements).enumerate() {
                    element.push(node, context, items.get(index)?)?;
                }
                Ok(())
            }
            (Column::Variant { discriminators, .. }, Node::Variant(_)) if value.is_none() => {
                discriminators.push(NULL_DISCRIMINATOR);
                Ok(())
            }
            (Column::Variant { discriminators, alternatives }, Node::Variant(variant)) => {
                let chosen = variant.choose(context, value)?;
                discriminators.push(chosen.alternative as u8);
                let node = &variant.alternatives[chosen.alternative].node;
                alternatives[chosen.alternative].push(node, context, Value::of(&chosen.value))
            }
            (Column::QBit(planes), Node::QBit(shape)) => planes.push(shape, value),
            (Column::Dictionary(dictionary), Node::Dictionary(scalar)) => {
                if value.is_none() && !scalar.takes_none() {
                    return Err(Problem::none());
                }
                let mut written = Vec::new();
                scalar.put(context, value, &mut written)?;
                dictionary.push(&written);
                Ok(())
            }
            _ => unreachable!("a column is made for its node"),
        }
    }

    /// Appends the value that stands in the place of a NULL.
    pub(super) fn push_default(&mut self, node: &Node) {
        match (self, node) {
            (Column::Values(out), Node::Scalar(scalar)) => scalar.put_default(out),
            (Column::Nullable { nulls, inner }, Node::Nullable(inner_node)) => {
                nulls.push(1);
                inner.push_default(inner_node);
            }
            (Column::Array { ends, .. } | Column::Map { ends, .. }, _) => ends.push(0),
            (Column::Tuple { rows, elements }, Node::Tuple(tuple)) => {
                *rows += 1;
                for (element, node) in elements.iter_mut().zip(&tuple.elements) {
                    element.push_default(node);
                }
            }
            (Column::Variant { discriminators, .. }, _) => discriminators.push(NULL_DISCRIMINATOR),
            (Column::QBit(planes), Node::QBit(shape)) => planes.push_zeros(shape),
            (Column::Dictionary(dictionary), Node::Dictionary(scalar)) => {
                let mut written = Vec::new();
                scalar.put_default(&mut written);
                dictionary.push(&written);
            }
            _ => unreachable!("a column is made for its node"),
        }
    }

    /// Appends versions, which stand before all data of the column, those of inner types included.
    pub(super) fn put_prefix(&self, node: &Node, out: &mut Vec<u8>) {
        match (self, node) {
            (Column::Values(_), Node::Scalar(scalar)) if scalar.is_json() => {
                out.extend_from_slice(&JSON_AS_STRING.to_le_bytes());
            }
            (Column::Dictionary(_), _) => out.extend_from_slice(&DICTIONARY_VERSION.to_le_bytes()),
            (Column::Nullable { inner, .. }, Node::Nullable(inner_node)) => inner.put_prefix(inner_node, out),
            (Column::Array { inner, .. }, Node::Array(inner_node)) => inner.put_prefix(inner_node, out),
            (Column::Map { keys, values, .. }, Node::Map(key_node, value_node)) => {
                keys.put_prefix(key_node, out);
                values.put_prefix(value_node, out);
            }
            (Column::Tuple { elements, .. }, Node::Tuple(tuple)) => {
                elements.iter().zip(&tuple.elements).for_each(|(element, node)| element.put_prefix(node, out));
            }
            (Column::Variant { alternatives, .. }, Node::Variant(variant)) => {
                out.extend_from_slice(&PLAIN_DISCRIMINATORS.to_le_bytes());
                for (alternative, one) in alternatives.iter().zip(&variant.alternatives) {
                    alternative.put_prefix(&one.node, out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn put_data(&self, out: &mut Vec<u8>) {
        match self {
            Column::Values(bytes) | Column::Ready(bytes) => out.extend_from_slice(bytes),
            Column::Nullable { nulls, inner } => {
                out.extend_from_slice(nulls);
                inner.put_data(out);
            }
            Column::Array { ends, inner } => {
                out.extend_from_slice(&ends.bytes);
                inner.put_data(out);
            }
            Column::Map { ends, keys, values } => {
                out.extend_from_slice(&ends.bytes);
                keys.put_data(out);
                values.put_data(out);
            }
            // ClickHouse has a character for every row of a Tuple without elements.
            Column::Tuple { rows, elements } if elements.is_empty() => out.resize(out.len() + rows, b'0'),
            Column::Tuple { elements, .. } => elements.iter().for_each(|element| element.put_data(out)),
            Column::Variant { discriminators, alternatives } => {
                out.extend_from_slice(discriminators);
                alternatives.iter().for_each(|alternative| alternative.put_data(out));
            }
            Column::QBit(planes) => planes.put_data(out),
            Column::Dictionary(dictionary) => dictionary.put_data(out),
        }
    }

    /// Returns about as many bytes as `put_data` appends.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Column::Values(bytes) | Column::Ready(bytes) => bytes.len(),
            Column::Nullable { nulls, inner } => nulls.len() + inner.bytes(),
            Column::Array { ends, inner } => ends.bytes.len() + inner.bytes(),
            Column::Map { ends, keys, values } => ends.bytes.len() + keys.bytes() + values.bytes(),
            Column::Tuple { rows, elements } => rows + elements.iter().map(Column::bytes).sum::<usize>(),
            Column::Variant { discriminators, alternatives } => {
                discriminators.len() + alternatives.iter().map(Column::bytes).sum::<usize>()
            }
            Column::QBit(planes) => planes.bytes(),
            Column::Dictionary(dictionary) => dictionary.bytes(),
        }
    }
}

#[inline]
fn push_nullable<'py>(
    nulls: &mut Vec<u8>,
    inner: &mut Column,
    node: &Node,
    context: &Context<'py>,
    value: Value<'py>,
) -> Result<(), Problem> {
    if value.is_none() {
        nulls.push(1);
        inner.push_default(node);
        return Ok(());
    }
    let (Column::Values(out), Node::Scalar(scalar)) = (&mut *inner, node) else {
        nulls.push(0);
        return inner.push(node, context, value);
    };
    let start = out.len();
    nulls.push(0);
    let held = value.held();
    if let Err(problem) = scalar.put(context, Value::of(&held), out) {
        let Some(stand_in) = stand_in(Value::of(&held)) else { return Err(problem) };
        out.truncate(start);
        scalar.put_default(out);
        let last = nulls.len() - 1;
        nulls[last] = u8::from(stand_in == StandIn::Null);
    }
    Ok(())
}
