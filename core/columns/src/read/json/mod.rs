//! The formats made of JSON: rows as objects, as arrays, as columns, or within a document.

mod arrays;
mod columns;
mod document;
mod field;
mod objects;
mod strings;

use field::Fields;

use super::outcome::{NotParsed, NotParsedReason, Parsed};
use super::rows::Rows;
use super::series::{Kept, Stopped};
use crate::plan::ReadPlan;

/// A format whose values are JSON's own.
type PlainFields<'a, 'p, 'r> = Fields<'a, 'p, 'r, false>;
/// A format whose values are JSON strings with the values' texts.
type StringFields<'a, 'p, 'r> = Fields<'a, 'p, 'r, true>;

/// Reads a payload in the format JSONEachRow: objects with or without separators, or one array of them.
///
/// # Errors
/// Fails where the payload can't be parsed with certainty: it is then left to ClickHouse.
pub fn read_json_each_row(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |fields: PlainFields| objects::read_each_row(fields))
}

/// Reads a payload in the format JSONStringsEachRow: as JSONEachRow, every value within a string.
pub fn read_json_strings_each_row(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |fields: StringFields| objects::read_each_row(fields))
}

/// Reads a payload in the format JSONObjectEachRow: one object whose members are the rows.
pub fn read_json_object_each_row(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, objects::read_object_of_rows)
}

/// Reads a payload in the format JSONCompactEachRow: arrays with or without separators.
pub fn read_json_compact_each_row(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |fields: PlainFields| arrays::read_each_row(fields, arrays::Head::None))
}

/// Reads a payload in the format JSONCompactEachRowWithNames: like JSONCompactEachRow, behind an array of
/// names.
pub fn read_json_compact_each_row_with_names(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |fields: PlainFields| arrays::read_each_row(fields, arrays::Head::Names))
}

/// Reads a payload in the format JSONCompactEachRowWithNamesAndTypes: like JSONCompactEachRow, behind an
/// array of names and one of types.
pub fn read_json_compact_each_row_with_names_and_types(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |fields: PlainFields| arrays::read_each_row(fields, arrays::Head::NamesAndTypes))
}

/// Reads a payload in the format JSONCompactStringsEachRow: as JSONCompactEachRow, every value within a string.
pub fn read_json_compact_strings_each_row(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |fields: StringFields| arrays::read_each_row(fields, arrays::Head::None))
}

/// Reads a payload in the format JSONCompactStringsEachRowWithNames: like JSONCompactStringsEachRow, behind
/// an array of names.
pub fn read_json_compact_strings_each_row_with_names(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, |fields: StringFields| arrays::read_each_row(fields, arrays::Head::Names))
}

/// Reads a payload in the format JSONCompactStringsEachRowWithNamesAndTypes: like JSONCompactStringsEachRow,
/// behind an array of names and one of types.
pub fn read_json_compact_strings_each_row_with_names_and_types(
    payload: &[u8],
    plan: &ReadPlan,
) -> Result<Parsed, NotParsed> {
    read(payload, plan, |fields: StringFields| arrays::read_each_row(fields, arrays::Head::NamesAndTypes))
}

/// Reads a payload in the format JSONColumns: objects of columns by name.
pub fn read_json_columns(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, columns::read_by_name)
}

/// Reads a payload in the format JSONCompactColumns: arrays of columns in the table's order.
pub fn read_json_compact_columns(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, columns::read_by_position)
}

/// Reads a payload in the format JSONColumnsWithMetadata: a document whose `data` is as in JSONColumns.
pub fn read_json_columns_with_metadata(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, document::read_columns)
}

/// Reads a payload in the format JSON: a document whose `data` is an array of objects, or just as in JSONEachRow.
pub fn read_json(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, document::read_objects)
}

/// Reads a payload in the format JSONCompact: a document whose `data` is an array of arrays.
pub fn read_json_compact(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(payload, plan, document::read_arrays)
}

/// Appends the rows of one more payload, in the format JSONEachRow or JSONStringsEachRow.
pub(super) fn append_each_row<const STRINGS: bool>(
    payload: &[u8],
    rows: &mut Rows<'_>,
    kept: &mut Kept,
) -> Result<(), Stopped> {
    let mut fields: Fields<STRINGS> = Fields::new(payload, rows);
    fields.values.scratch = std::mem::take(&mut kept.scratch);
    let mut objects = objects::Objects::new(fields);
    objects.order = std::mem::take(&mut kept.order);
    let outcome = objects.read_each_row();
    let at = objects.fields.values.cursor.at;
    kept.order = objects.order;
    kept.scratch = objects.fields.values.scratch;
    outcome.map_err(|reason| Stopped { reason, at })
}

fn read<'a, 'p, const STRINGS: bool>(
    payload: &'a [u8],
    plan: &'p ReadPlan,
    read_rows: impl for<'r> FnOnce(Fields<'a, 'p, 'r, STRINGS>) -> Result<(), NotParsedReason>,
) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, payload.len())?;
    match read_rows(Fields::new(payload, &mut rows)) {
        Ok(()) => rows.finish(),
        Err(reason) => Err(rows.not_parsed(reason)),
    }
}
