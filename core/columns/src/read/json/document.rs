//! Documents as ClickHouse writes them: `meta` with names and types, `data` with the rows, and further
//! members behind.

use super::arrays::read_array;
use super::columns::read_named_columns;
use super::objects::{read_each_row, Objects};
use super::PlainFields;
use crate::read::json_text::read_string;
use crate::read::layout::Layout;
use crate::read::nested::ValueReader;
use crate::read::outcome::NotParsedReason;
use crate::types::DataType;

pub(super) fn read_columns(mut fields: PlainFields<'_, '_, '_>) -> Result<(), NotParsedReason> {
    read_meta(&mut fields)?;
    read_named_columns(&mut fields)?;
    skip_rest(&mut fields)
}

/// Reads a document of objects. Without `meta` the payload is read like JSONEachRow.
pub(super) fn read_objects(mut fields: PlainFields<'_, '_, '_>) -> Result<(), NotParsedReason> {
    if !has_meta(&mut fields) {
        return read_each_row(fields);
    }
    // One that names no column is no `meta` for ClickHouse: it takes the document itself for a row.
    if read_meta(&mut fields)?.is_empty() {
        return Err(NotParsedReason::Syntax);
    }
    let mut objects = Objects::new(fields);
    objects.read_array()?;
    skip_rest(&mut objects.fields)
}

pub(super) fn read_arrays(mut fields: PlainFields<'_, '_, '_>) -> Result<(), NotParsedReason> {
    let names = read_meta(&mut fields)?;
    let layout = Layout::of_names(names.iter().map(Vec::as_slice), fields.rows.plan)?;
    if layout.fields.is_empty() {
        return Err(NotParsedReason::Syntax);
    }
    read_array(&mut fields, &layout)?;
    skip_rest(&mut fields)
}

/// Says whether the first key is `meta`, without moving the cursor.
fn has_meta(fields: &mut PlainFields<'_, '_, '_>) -> bool {
    let start = fields.values.cursor.at;
    fields.values.cursor.skip_space();
    let is_object = fields.values.cursor.eat(b'{');
    fields.values.cursor.skip_space();
    // A key with escapes may mean `meta` as well, and is refused by either reader.
    let has_meta = is_object && fields.values.cursor.rest().starts_with(b"\"meta\"");
    fields.values.cursor.at = start;
    has_meta
}

/// Reads up to the value of `data`; returns the columns' names. They and their types have to be those of the table.
fn read_meta(fields: &mut PlainFields<'_, '_, '_>) -> Result<Vec<Vec<u8>>, NotParsedReason> {
    fields.values.cursor.skip_space();
    fields.values.cursor.expect(b'{')?;
    fields.values.cursor.skip_space();
    expect_key(fields, b"meta")?;
    fields.values.cursor.expect(b'[')?;
    fields.values.cursor.skip_space();
    let mut names = Vec::new();
    if !fields.values.cursor.eat(b']') {
        loop {
            names.push(read_described_column(fields)?);
            if fields.values.ends_list(b']')? {
                break;
            }
        }
    }
    if fields.values.ends_object()? {
        return Err(NotParsedReason::Syntax);
    }
    expect_key(fields, b"data")?;
    Ok(names)
}

fn expect_key(fields: &mut PlainFields<'_, '_, '_>, key: &[u8]) -> Result<(), NotParsedReason> {
    if fields.values.read_plain_key()? != key {
        return Err(NotParsedReason::Syntax);
    }
    fields.values.expect_colon()
}

/// Reads `{"name": ..., "type": ...}`, in either order; returns the name.
fn read_described_column(fields: &mut PlainFields<'_, '_, '_>) -> Result<Vec<u8>, NotParsedReason> {
    let (mut name, mut type_text) = (None, None);
    fields.values.cursor.expect(b'{')?;
    fields.values.cursor.skip_space();
    loop {
        let target = match fields.values.read_plain_key()? {
            b"name" => &mut name,
            b"type" => &mut type_text,
            _ => return Err(NotParsedReason::Syntax),
        };
        fields.values.expect_colon()?;
        fields.values.cursor.expect(b'"')?;
        let text = read_string(&mut fields.values.cursor, &mut fields.values.scratch)?;
        if target.replace(text.bytes(&fields.values.scratch).to_vec()).is_some() {
            return Err(NotParsedReason::DuplicateField);
        }
        if fields.values.ends_object()? {
            break;
        }
    }
    let (Some(name), Some(type_text)) = (name, type_text) else { return Err(NotParsedReason::Syntax) };
    let type_text = std::str::from_utf8(&type_text).map_err(|_| NotParsedReason::Value)?;
    let data_type = DataType::parse(type_text).map_err(|_| NotParsedReason::Value)?;
    let plan = fields.rows.plan;
    // ClickHouse passes over the whole of `meta` for a type that it does not know, and so it takes the document for a row.
    match plan.position(&name) {
        Some(column) if plan.columns()[column].data_type == data_type => Ok(name),
        Some(_) => Err(NotParsedReason::Value),
        None => Err(NotParsedReason::UnknownField),
    }
}

/// Skips `rows`, `statistics` and any other members that follow.
fn skip_rest(fields: &mut PlainFields<'_, '_, '_>) -> Result<(), NotParsedReason> {
    while !fields.values.ends_object()? {
        fields.values.cursor.expect(b'"')?;
        read_string(&mut fields.values.cursor, &mut fields.values.scratch)?;
        fields.values.expect_colon()?;
        fields.skip()?;
    }
    fields.values.cursor.expect_end()
}
