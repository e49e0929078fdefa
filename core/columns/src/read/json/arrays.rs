//! Rows as arrays, whose values are in the table's order or in that of a header.

use super::Fields;
use crate::read::json_text::read_string;
use crate::read::layout::Layout;
use crate::read::nested::ValueReader;
use crate::read::outcome::NotParsedReason;

/// The header before the rows.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Head {
    None,
    Names,
    NamesAndTypes,
}

/// Reads arrays one after the other, with a comma between or behind them where somebody likes one.
pub(super) fn read_each_row<const STRINGS: bool>(
    mut fields: Fields<'_, '_, '_, STRINGS>,
    head: Head,
) -> Result<(), NotParsedReason> {
    fields.values.cursor.skip_space();
    let layout = read_head(&mut fields, head)?;
    while !matches!(fields.values.cursor.peek(), None | Some(b';')) {
        read_row(&mut fields, &layout)?;
        skip_separator(&mut fields)?;
    }
    fields.values.cursor.eat_final_semicolon()
}

/// Reads one array of rows.
pub(super) fn read_array<const STRINGS: bool>(
    fields: &mut Fields<'_, '_, '_, STRINGS>,
    layout: &Layout,
) -> Result<(), NotParsedReason> {
    fields.values.cursor.expect(b'[')?;
    fields.values.cursor.skip_space();
    if !fields.values.cursor.eat(b']') {
        loop {
            read_row(fields, layout)?;
            if fields.values.ends_list(b']')? {
                break;
            }
        }
    }
    Ok(())
}

fn read_head<const STRINGS: bool>(
    fields: &mut Fields<'_, '_, '_, STRINGS>,
    head: Head,
) -> Result<Layout, NotParsedReason> {
    let plan = fields.rows.plan;
    if head == Head::None {
        return Ok(Layout::of_table(plan));
    }
    let names = read_header_row(fields)?;
    let mut layout = Layout::of_names(names.iter().map(Vec::as_slice), plan)?;
    skip_separator(fields)?;
    if head == Head::NamesAndTypes {
        let types = read_header_row(fields)?;
        layout = layout.with_types(types.iter().map(Vec::as_slice), plan)?;
        skip_separator(fields)?;
    }
    Ok(layout)
}

fn skip_separator<const STRINGS: bool>(fields: &mut Fields<'_, '_, '_, STRINGS>) -> Result<(), NotParsedReason> {
    fields.values.cursor.skip_space();
    if fields.values.cursor.eat(b',') {
        fields.values.cursor.skip_space();
        if fields.values.cursor.peek() == Some(b';') {
            return Err(NotParsedReason::Syntax);
        }
    }
    Ok(())
}

/// Reads an array of strings, which is never empty.
fn read_header_row<const STRINGS: bool>(
    fields: &mut Fields<'_, '_, '_, STRINGS>,
) -> Result<Vec<Vec<u8>>, NotParsedReason> {
    let mut texts = Vec::new();
    fields.values.cursor.expect(b'[')?;
    fields.values.cursor.skip_space();
    loop {
        fields.values.cursor.expect(b'"')?;
        let text = read_string(&mut fields.values.cursor, &mut fields.values.scratch)?;
        texts.push(text.bytes(&fields.values.scratch).to_vec());
        if fields.values.ends_list(b']')? {
            return Ok(texts);
        }
    }
}

#[inline]
fn read_row<const STRINGS: bool>(
    fields: &mut Fields<'_, '_, '_, STRINGS>,
    layout: &Layout,
) -> Result<(), NotParsedReason> {
    fields.values.cursor.expect(b'[')?;
    for (index, column) in layout.fields.iter().enumerate() {
        if index > 0 {
            fields.values.cursor.skip_space();
            fields.values.cursor.expect(b',')?;
        }
        fields.values.cursor.skip_space();
        match column {
            Some(column) => fields.read(*column)?,
            None => fields.skip()?,
        }
    }
    fields.values.cursor.skip_space();
    fields.values.cursor.expect(b']')?;
    for column in &layout.missing {
        fields.rows.see(*column)?;
        fields.rows.give_default(*column)?;
    }
    fields.rows.end_row()
}
