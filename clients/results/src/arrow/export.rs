//! Turns a column into an array of Arrow.

use std::sync::Arc;

use super::node::{Buffer, Keeper, Node};
use super::{fixed, json_text, low_cardinality, ArrowError, ArrowOptions};
use crate::column::{Block, Column};
use windrow_columns::DataType;

/// Exports one column of a block; the array keeps the block alive. There has to be such a column.
pub(super) fn column_of(block: &Arc<Block>, index: usize, options: &ArrowOptions) -> Result<Node, ArrowError> {
    let keeper: Keeper = block.clone();
    Exporter { options }.node(&block.columns[index], &block.header.types[index], &keeper)
}

struct Exporter<'a> {
    options: &'a ArrowOptions,
}

impl Exporter<'_> {
    /// Exports a column, which lives as long as `keeper` does.
    fn node(&self, column: &Column, of: &DataType, keeper: &Keeper) -> Result<Node, ArrowError> {
        Ok(match (column, of.plain()) {
            (Column::Fixed { width, data }, scalar) if scalar.is_scalar() => {
                fixed::export(scalar, *width, data, keeper)
            }
            (Column::Strings { offsets, data }, _) => {
                let buffers = vec![Buffer::shared(offsets, keeper), Buffer::shared(data, keeper)];
                Node::valid(column.rows(), buffers, Vec::new())
            }
            (Column::Nullable { nulls, inner }, DataType::Nullable(of)) => match of.plain() {
                // Its text is made anew, and left empty where it is NULL.
                DataType::Json { .. } => json_text::export(inner, of, self.options)?.with_nulls(nulls),
                _ => self.node(inner, of, keeper)?.with_nulls(nulls),
            },
            (Column::LowCardinality { indices, dictionary, nullable }, DataType::LowCardinality(of)) => {
                self.low_cardinality(indices, dictionary, *nullable, of, keeper)?
            }
            (Column::Array { offsets, inner }, DataType::Array(of)) => {
                let inner = self.node(inner, of, keeper)?;
                Node::valid(column.rows(), vec![Buffer::shared(offsets, keeper)], vec![inner])
            }
            (Column::Map { offsets, keys, values }, DataType::Map(key, value)) => {
                let entries = vec![self.node(keys, key, keeper)?, self.node(values, value, keeper)?];
                let entries = Node::of_struct(keys.rows(), entries);
                Node::valid(column.rows(), vec![Buffer::shared(offsets, keeper)], vec![entries])
            }
            (Column::Tuple { rows, elements }, DataType::Tuple(tuple)) => {
                let elements = elements.iter().zip(&tuple.elements).map(|(element, of)| self.node(element, of, keeper));
                Node::of_struct(*rows, elements.collect::<Result<_, _>>()?)
            }
            (Column::Variant { discriminators, positions, alternatives }, DataType::Variant(_)) => {
                self.variant(discriminators, positions, alternatives, keeper)?
            }
            (Column::Variant { .. }, DataType::Dynamic) | (Column::Json { .. }, DataType::Json { .. }) => {
                json_text::export(column, of, self.options)?
            }
            (Column::Nothing { rows }, _) => Node::nulls(*rows),
            _ => return Err(ArrowError::NotSupported(format!("a column of another layout than {of}"))),
        })
    }

    fn low_cardinality(
        &self,
        indices: &[u32],
        dictionary: &Column,
        nullable: bool,
        of: &DataType,
        keeper: &Keeper,
    ) -> Result<Node, ArrowError> {
        let of = match of {
            DataType::Nullable(of) => of,
            of => of,
        };
        let node = if self.options.low_cardinality_as_dictionary {
            let dictionary = self.node(dictionary, of, keeper)?;
            let indices = Node::valid(indices.len(), vec![Buffer::shared(indices, keeper)], Vec::new());
            Node { dictionary: Some(Box::new(dictionary)), ..indices }
        } else {
            let unfolded = Arc::new(low_cardinality::unfolded(indices, dictionary));
            let keeper: Keeper = unfolded.clone();
            self.node(&unfolded, of, &keeper)?
        };
        if nullable {
            let nulls: Vec<u8> = indices.iter().map(|index| u8::from(*index == 0)).collect();
            return Ok(node.with_nulls(&nulls));
        }
        Ok(node)
    }

    /// Exports a union: for each row its member, and its place there. NULLs have their places in a member of
    /// nothing else.
    fn variant(
        &self,
        discriminators: &[u16],
        positions: &[u32],
        alternatives: &[(DataType, Column)],
        keeper: &Keeper,
    ) -> Result<Node, ArrowError> {
        let options = ArrowOptions { low_cardinality_as_dictionary: true, ..self.options.clone() };
        let folded = Exporter { options: &options };
        let members = alternatives.iter().map(|(of, column)| folded.node(column, of, keeper));
        let mut members: Vec<_> = members.collect::<Result<_, _>>()?;
        let null_id = alternatives.len() as i8;
        let mut nulls = 0;
        let (mut ids, mut places) = (Vec::with_capacity(positions.len()), Vec::with_capacity(positions.len()));
        for (discriminator, position) in discriminators.iter().zip(positions) {
            if *discriminator == Column::NULL_DISCRIMINATOR {
                ids.push(null_id);
                places.push(nulls);
                nulls += 1;
            } else {
                ids.push(*discriminator as i8);
                places.push(*position as i32);
            }
        }
        members.push(Node::nulls(nulls as usize));
        Ok(Node {
            length: ids.len(),
            null_count: 0,
            buffers: vec![Buffer::owned(ids), Buffer::owned(places)],
            children: members,
            dictionary: None,
        })
    }
}
