//! Avro's object container files: a header with the schema, then blocks of rows, each closed by the mark of the file.

mod container;
mod decode;
mod messages;
mod pairs;
mod rows;
mod schema;

use windrow_columns::{BlockBuilder, NotParsed, NotParsedReason, Parsed, ReadPlan};

use crate::budget::Budget;
use crate::convert::Converter;
use crate::input::Input;
use crate::mapping::positions;
use container::Container;
pub use messages::{avro_schema, AvroDecoder, AvroRows};
use rows::Growing;

const BROKEN: NotParsedReason = NotParsedReason::Syntax;

pub(crate) fn read(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut builder = BlockBuilder::new(plan, payload.len())?;
    match read_file(payload, plan, &mut builder) {
        Ok(()) => builder.finish(),
        Err(reason) => Err(builder.not_parsed(reason)),
    }
}

fn read_file(payload: &[u8], plan: &ReadPlan, builder: &mut BlockBuilder<'_>) -> Result<(), NotParsedReason> {
    let mut container = Container::open(payload).ok_or(BROKEN)?;
    let fields = schema::record(container.schema).ok_or(NotParsedReason::Value)?;
    let positions = positions(fields.iter().map(|field| field.name.as_str()), plan)?;
    // A column that the file hasn't is an error in ClickHouse, unless a setting says otherwise.
    if positions.iter().flatten().count() != plan.columns().len() {
        return Err(NotParsedReason::UnknownField);
    }
    for (field, position) in fields.iter().zip(&positions) {
        let wanted = position.map(|position| &plan.columns()[position].data_type);
        if wanted.is_some_and(|wanted| !pairs::is_read(&field.data_type, wanted)) {
            return Err(NotParsedReason::Value);
        }
    }
    let mut budget = Budget::new();
    let mut columns: Vec<Growing> = fields
        .iter()
        .zip(&positions)
        .map(|(field, position)| {
            Growing::new(&field.data_type, position.map(|position| &plan.columns()[position].data_type))
        })
        .collect();
    let mut count = 0usize;
    while let Some(block) = container.next_block(&mut budget)? {
        let mut input = Input::new(&block.bytes);
        for _ in 0..block.rows {
            columns.iter_mut().try_for_each(|column| column.read(&mut input, &mut budget))?;
            count += 1;
        }
        if !input.is_empty() {
            return Err(BROKEN);
        }
    }
    let converter = Converter::new(plan);
    for (column, position) in columns.into_iter().zip(positions) {
        let Some(position) = position else { continue };
        let column = column.finish().ok_or(NotParsedReason::Value)?;
        converter.put(builder, position, &column)?;
    }
    builder.end_rows(count)
}
