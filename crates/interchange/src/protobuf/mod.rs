//! Protobuf messages, of which the insert itself carries the schema (`format_schema_source = 'string'`). Schemas in files
//! are the server's.
//!
//! A field that a message has not is its default, NULL where the column takes it; one that comes twice, or as another
//! kind of value than its schema says, is left to ClickHouse.

mod grow;
mod schema;
mod tokens;

use windrow_block::{BlockBuilder, DefaultKind, NotTyped, NotTypedReason, Parsed, ReadPlan};

use crate::budget::Budget;
use crate::convert::Converter;
use crate::input::Input;
use grow::Growing;
use schema::Message;

/// Messages, each behind its length.
pub(crate) fn read_many(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotTyped> {
    read(payload, plan, |rows| {
        let mut input = Input::new(payload);
        while !input.is_empty() {
            let mut row = grow::delimited(2, &mut input)?;
            rows.add(&mut row)?;
        }
        Ok(())
    })
}

/// One message, without its length.
pub(crate) fn read_single(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotTyped> {
    read(payload, plan, |rows| match payload.is_empty() {
        true => Err(NotTypedReason::Syntax),
        false => rows.add(&mut Input::new(payload)),
    })
}

struct GrowingRows {
    fields: Vec<Growing>,
    count: usize,
    budget: Budget,
}

impl GrowingRows {
    fn add(&mut self, row: &mut Input<'_>) -> Result<(), NotTypedReason> {
        self.count += 1;
        grow::message(&mut self.fields, row, &mut self.budget)
    }
}

fn read(
    payload: &[u8],
    plan: &ReadPlan,
    add_rows: impl FnOnce(&mut GrowingRows) -> Result<(), NotTypedReason>,
) -> Result<Parsed, NotTyped> {
    let mut builder = BlockBuilder::new(plan, payload.len())?;
    let mut count = 0;
    let outcome = fields(plan).and_then(|fields| {
        let mut rows = GrowingRows { fields, count: 0, budget: Budget::new() };
        add_rows(&mut rows)?;
        count = rows.count;
        let converter = Converter::new(plan);
        for (index, field) in rows.fields.into_iter().enumerate() {
            let column = field.finish().ok_or(NotTypedReason::Value)?;
            converter.put(&mut builder, index, &column)?;
        }
        builder.end_rows(count)
    });
    match outcome {
        Ok(()) => builder.finish(),
        Err(reason) => Err(builder.not_typed(reason)),
    }
}

/// A field for every column of the table. With others, or with DEFAULT expressions, ClickHouse's own rules decide what a
/// field that is left out means.
fn fields(plan: &ReadPlan) -> Result<Vec<Growing>, NotTypedReason> {
    let schema = plan.settings().inline_schema().ok_or(NotTypedReason::Setting)?;
    let message = schema::message(schema.text, schema.message_name).ok_or(NotTypedReason::Setting)?;
    let column = |index: usize| {
        let spec = &plan.columns()[index];
        if spec.default_kind != DefaultKind::None {
            return Err(NotTypedReason::MixedDefaults);
        }
        let field = message.fields.iter().find(|field| field.name == spec.name).ok_or(NotTypedReason::UnknownField)?;
        let is_only = message.fields.iter().filter(|other| is_alike(&other.name, &spec.name)).count() == 1;
        match is_only && is_clear(&message, &spec.name) {
            true => Growing::new(field, &spec.data_type).ok_or(NotTypedReason::Value),
            false => Err(NotTypedReason::UnknownField),
        }
    };
    (0..plan.columns().len()).map(column).collect()
}

/// ClickHouse takes names for the same that differ in case, or in `.` and `_`.
fn is_alike(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.replace('.', "_").to_ascii_lowercase();
    plain(a) == plain(b)
}

/// Whether a column's name can't be taken for a field within another one, `a_b` for `b` in `a`.
fn is_clear(message: &Message, name: &str) -> bool {
    let begins = |field: &schema::Field| {
        let prefix = format!("{}_", field.name.to_ascii_lowercase());
        name.replace('.', "_").to_ascii_lowercase().starts_with(&prefix)
    };
    !name.contains('.') && !message.fields.iter().any(begins)
}
