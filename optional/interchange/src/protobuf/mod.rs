//! Protobuf messages. An insert brings the schema for its payload itself (`format_schema_source = 'string'`),
//! since schemas in files are on the server. Messages of a topic are read by a schema that was read before.
//!
//! A field that a message lacks is its default, or NULL where the column accepts it. A field that comes
//! twice, or with another kind of value than its schema says, is left to ClickHouse.

mod grow;
mod number;
mod rows;
mod schema;

use windrow_columns::{BlockBuilder, DefaultKind, NotParsed, NotParsedReason, Parsed, ReadPlan, ReadSettings};

use crate::budget::Budget;
use crate::input::Input;
use grow::{Growing, Reading};
pub use rows::{ProtobufPlan, ProtobufRows, ProtobufSchema};
use schema::Message;

/// The rules about which fields are read into which types.
pub(super) struct Rules {
    /// Says whether every digit has to be kept.
    exact: bool,
    /// Says whether pairs of types are read too that users seldom mean: texts as times, seconds as a
    /// DateTime64, numbers as digits.
    every_pair: bool,
    settings: ReadSettings,
}

/// Reads messages, each after its length.
pub(crate) fn read_many(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |rows| {
        let mut input = Input::new(payload);
        while !input.is_empty() {
            let mut row = grow::delimited(2, &mut input, &mut rows.reading)?;
            rows.add(&mut row)?;
        }
        Ok(())
    })
}

/// Reads one message, without its length.
pub(crate) fn read_single(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |rows| match payload.is_empty() {
        true => Err(NotParsedReason::Syntax),
        false => rows.add(&mut Input::new(payload)),
    })
}

struct GrowingRows {
    fields: Vec<Growing>,
    count: usize,
    reading: Reading,
}

impl GrowingRows {
    fn add(&mut self, row: &mut Input<'_>) -> Result<(), NotParsedReason> {
        self.count += 1;
        grow::message(&mut self.fields, row, &mut self.reading)
    }
}

fn read(
    payload: &[u8],
    plan: &ReadPlan,
    add_rows: impl FnOnce(&mut GrowingRows) -> Result<(), NotParsedReason>,
) -> Result<Parsed, NotParsed> {
    let mut builder = BlockBuilder::new(plan, payload.len())?;
    let outcome = fields(plan).and_then(|fields| {
        let mut rows = GrowingRows { fields, count: 0, reading: Reading::new(Budget::new()) };
        add_rows(&mut rows)?;
        let mut columns = Vec::with_capacity(rows.fields.len());
        rows.fields.iter_mut().for_each(|field| field.take_columns(&mut columns));
        columns.into_iter().try_for_each(|(index, column)| builder.put(index, column, rows.count))?;
        builder.end_rows(rows.count)
    });
    match outcome {
        Ok(()) => builder.finish(),
        Err(reason) => Err(builder.not_parsed(reason)),
    }
}

/// Returns the field of each column of the table. If there are other fields, or DEFAULT expressions,
/// ClickHouse's own rules decide about a field that is left out.
fn fields(plan: &ReadPlan) -> Result<Vec<Growing>, NotParsedReason> {
    let schema = plan.settings().inline_schema().ok_or(NotParsedReason::Setting)?;
    let message = schema::message(schema.text, schema.message_name).ok_or(NotParsedReason::Setting)?;
    let rules = Rules { exact: plan.settings().is_exact(), every_pair: false, settings: plan.settings().clone() };
    let column = |index: usize| {
        let spec = &plan.columns()[index];
        if spec.default_kind != DefaultKind::None {
            return Err(NotParsedReason::MixedDefaults);
        }
        let field = message.fields.iter().find(|field| field.name == spec.name).ok_or(NotParsedReason::UnknownField)?;
        let is_only = message.fields.iter().filter(|other| is_alike(&other.name, &spec.name)).count() == 1;
        match is_only && is_clear(&message, &spec.name) {
            true => Growing::new(field, &spec.data_type, &rules)
                .map(|growing| growing.for_column(index))
                .ok_or(NotParsedReason::Value),
            false => Err(NotParsedReason::UnknownField),
        }
    };
    (0..plan.columns().len()).map(column).collect()
}

/// Says whether two names are the same for ClickHouse, which ignores case and takes `.` and `_` for the same.
fn is_alike(a: &str, b: &str) -> bool {
    plain(a) == plain(b)
}

fn plain(name: &str) -> String {
    name.replace('.', "_").to_ascii_lowercase()
}

/// Says whether a column's name can't be taken for a field inside another one, `a_b` for `b` in `a`.
fn is_clear(message: &Message, name: &str) -> bool {
    let begins = |field: &schema::Field| {
        let prefix = format!("{}_", field.name.to_ascii_lowercase());
        plain(name).starts_with(&prefix)
    };
    !name.contains('.') && !message.fields.iter().any(begins)
}
