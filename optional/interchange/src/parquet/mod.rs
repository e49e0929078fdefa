//! The format Parquet.
//!
//! A file ends in its metadata: the schema, and the places of the pages for each row group and column. Only
//! the table's columns are read. Pages give levels and values (`pages`, `encoding`, `hybrid`); levels are
//! turned into NULLs and lists (`assemble`).

mod assemble;
mod encoding;
mod footer;
mod hybrid;
mod pages;
mod schema;
mod strict;
mod thrift;
mod values;

use windrow_columns::{BlockBuilder, NotParsed, NotParsedReason, Parsed, ReadPlan};

use crate::budget::Budget;
use crate::convert::Converter;
use crate::mapping::positions;
use assemble::Part;
use footer::{Footer, RowGroup};
use pages::Levels;
use schema::Field;

const MARK: &[u8] = b"PAR1";
const BROKEN: NotParsedReason = NotParsedReason::Syntax;

pub(crate) fn read(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut builder = BlockBuilder::new(plan, payload.len())?;
    match read_file(payload, plan, &mut builder) {
        Ok(()) => builder.finish(),
        Err(reason) => Err(builder.not_parsed(reason)),
    }
}

fn read_file(payload: &[u8], plan: &ReadPlan, builder: &mut BlockBuilder<'_>) -> Result<(), NotParsedReason> {
    let body = payload.strip_suffix(MARK).filter(|body| body.starts_with(MARK)).ok_or(BROKEN)?;
    let (body, footer_bytes) = body.split_last_chunk::<4>().ok_or(BROKEN)?;
    let footer_start = body.len().checked_sub(u32::from_le_bytes(*footer_bytes) as usize).ok_or(BROKEN)?;
    let (data, footer) = body.split_at(footer_start);
    let footer = Footer::read(strict::sound(footer, strict::FILE).ok_or(BROKEN)?).ok_or(BROKEN)?;
    // Bytes of such columns may be geometries.
    if footer.remarks.iter().any(|key| key == "geo") {
        return Err(NotParsedReason::Value);
    }
    let fields = schema::fields(&footer.schema, plan.settings().is_for_sql()).ok_or(NotParsedReason::Value)?;
    let positions = positions(fields.iter().map(|field| field.name.as_str()), plan)?;
    let mut budget = Budget::new();
    let mut rows = 0i64;
    for group in &footer.row_groups {
        rows = rows.checked_add(group.rows).ok_or(BROKEN)?;
        let file = File { data, fields: &fields, positions: &positions, converter: Converter::new(plan) };
        file.read_group(group, builder, &mut budget)?;
    }
    (rows == footer.rows).then_some(()).ok_or(BROKEN)
}

struct File<'a> {
    data: &'a [u8],
    fields: &'a [Field],
    positions: &'a [Option<usize>],
    converter: Converter<'a>,
}

impl File<'_> {
    fn read_group(
        &self,
        group: &RowGroup,
        builder: &mut BlockBuilder<'_>,
        budget: &mut Budget,
    ) -> Result<(), NotParsedReason> {
        let rows = usize::try_from(group.rows).map_err(|_| BROKEN)?;
        let leaf_count: usize = self.fields.iter().map(|field| assemble::leaves(field).len()).sum();
        if group.chunks.len() != leaf_count {
            return Err(BROKEN);
        }
        for (field, position) in self.fields.iter().zip(self.positions) {
            let Some(position) = position else { continue };
            let mut parts = Vec::new();
            for (index, leaf, levels) in assemble::leaves(field) {
                let chunk = &group.chunks[index];
                let is_same = schema::Physical::of(chunk.physical, Some(leaf.physical.width())) == Some(leaf.physical)
                    && chunk.path.first() == Some(&field.name);
                if !is_same {
                    return Err(BROKEN);
                }
                let data = pages::read_chunk(self.data, chunk, leaf, levels, budget)?;
                parts.push(Part::new(data, rows)?);
            }
            let column = assemble::column(field, Levels { definition: 0, repetition: 0 }, parts)?;
            self.converter.put(builder, *position, &column)?;
        }
        builder.end_rows(rows)
    }
}
