//! Turns a column into an array of Arrow.

use std::sync::Arc;

use arrow_data::ArrayData;
use arrow_schema::DataType as ArrowType;

use super::buffers::{array, owned, shared, with_nulls, Keeper};
use super::{fixed, json_text, low_cardinality, ArrowError, ArrowOptions};
use crate::column::{Block, Column};
use windrow_columns::DataType;

/// Exports one column of a block; the array keeps the block alive. There has to be such a column.
pub(super) fn column_of(
    block: &Arc<Block>,
    index: usize,
    arrow: &ArrowType,
    options: &ArrowOptions,
) -> Result<ArrayData, ArrowError> {
    let keeper: Keeper = block.clone();
    Exporter { options }.export(arrow, &block.columns[index], &block.header.types[index], &keeper)
}

struct Exporter<'a> {
    options: &'a ArrowOptions,
}

impl Exporter<'_> {
    /// Exports a column, which lives as long as `keeper` does, as the type of Arrow that it becomes.
    fn export(
        &self,
        arrow: &ArrowType,
        column: &Column,
        of: &DataType,
        keeper: &Keeper,
    ) -> Result<ArrayData, ArrowError> {
        Ok(match (column, of.plain(), arrow) {
            (Column::Fixed { width, data }, scalar, _) if scalar.is_scalar() => {
                fixed::export(arrow, scalar, *width, data, keeper)
            }
            (Column::Strings { offsets, data }, ..) => {
                array(arrow, column.rows(), vec![shared(offsets, keeper), shared(data, keeper)], Vec::new())
            }
            (Column::Nullable { nulls, inner }, DataType::Nullable(of), _) => match of.plain() {
                // Its text is made anew, and left empty where it is NULL.
                DataType::Json { .. } => with_nulls(json_text::export(inner, of, self.options)?, nulls),
                _ => with_nulls(self.export(arrow, inner, of, keeper)?, nulls),
            },
            (Column::LowCardinality { indices, dictionary, nullable }, DataType::LowCardinality(of), _) => {
                let values = self.low_cardinality(arrow, indices, dictionary, of, keeper)?;
                if !nullable {
                    return Ok(values);
                }
                let nulls: Vec<u8> = indices.iter().map(|index| u8::from(*index == 0)).collect();
                with_nulls(values, &nulls)
            }
            (Column::Array { offsets, inner }, DataType::Array(of), ArrowType::List(element)) => {
                let inner = self.export(element.data_type(), inner, of, keeper)?;
                array(arrow, column.rows(), vec![shared(offsets, keeper)], vec![inner])
            }
            (Column::Map { offsets, keys, values }, DataType::Map(key, value), ArrowType::Map(entries, _)) => {
                let ArrowType::Struct(fields) = entries.data_type() else { return Err(other_layout(of)) };
                let both = vec![
                    self.export(fields[0].data_type(), keys, key, keeper)?,
                    self.export(fields[1].data_type(), values, value, keeper)?,
                ];
                let entries = array(entries.data_type(), keys.rows(), Vec::new(), both);
                array(arrow, column.rows(), vec![shared(offsets, keeper)], vec![entries])
            }
            (Column::Tuple { rows, elements }, DataType::Tuple(tuple), ArrowType::Struct(fields)) => {
                let elements = elements.iter().zip(&tuple.elements).zip(fields);
                let elements =
                    elements.map(|((element, of), field)| self.export(field.data_type(), element, of, keeper));
                array(arrow, *rows, Vec::new(), elements.collect::<Result<_, _>>()?)
            }
            (Column::Variant { discriminators, positions, alternatives }, DataType::Variant(_), _) => {
                self.variant(arrow, of, discriminators, positions, alternatives, keeper)?
            }
            (Column::Variant { .. }, DataType::Dynamic, _) | (Column::Json { .. }, DataType::Json { .. }, _) => {
                json_text::export(column, of, self.options)?
            }
            (Column::Nothing { rows }, ..) => nothing(*rows),
            _ => return Err(other_layout(of)),
        })
    }

    /// Exports the values without regard to NULLs.
    fn low_cardinality(
        &self,
        arrow: &ArrowType,
        indices: &[u32],
        dictionary: &Column,
        of: &DataType,
        keeper: &Keeper,
    ) -> Result<ArrayData, ArrowError> {
        let of = match of {
            DataType::Nullable(of) => of,
            of => of,
        };
        if let ArrowType::Dictionary(_, values) = arrow {
            let dictionary = self.export(values, dictionary, of, keeper)?;
            return Ok(array(arrow, indices.len(), vec![shared(indices, keeper)], vec![dictionary]));
        }
        let unfolded = Arc::new(low_cardinality::unfolded(indices, dictionary));
        let keeper: Keeper = unfolded.clone();
        self.export(arrow, &unfolded, of, &keeper)
    }

    /// Exports a union: for each row its member, and its place there. NULLs have their places in a member of
    /// nothing else.
    fn variant(
        &self,
        arrow: &ArrowType,
        of: &DataType,
        discriminators: &[u16],
        positions: &[u32],
        alternatives: &[(DataType, Column)],
        keeper: &Keeper,
    ) -> Result<ArrayData, ArrowError> {
        let ArrowType::Union(members, _) = arrow else { return Err(other_layout(of)) };
        let members = alternatives.iter().zip(members.iter());
        let members = members.map(|((of, column), (_, field))| self.export(field.data_type(), column, of, keeper));
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
        members.push(nothing(nulls as usize));
        Ok(array(arrow, ids.len(), vec![owned(ids), owned(places)], members))
    }
}

/// Makes an array of nothing but NULL: Arrow's null type has no buffers.
fn nothing(rows: usize) -> ArrayData {
    array(&ArrowType::Null, rows, Vec::new(), Vec::new())
}

fn other_layout(of: &DataType) -> ArrowError {
    ArrowError::NotSupported(format!("a column of another layout than {of}"))
}
