//! Header and rows.

use super::dialect::Dialect;
use super::field::Fields;
use crate::plan::ReadPlan;
use crate::read::layout::Layout;
use crate::read::outcome::{NotParsed, NotParsedReason, Parsed};
use crate::read::rows::Rows;
use crate::read::series::{Kept, Stopped};
use crate::settings::ReadSettings;

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The header before the first row.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Heading {
    /// No header, unless the first row looks like one.
    MaybeDetected,
    Names,
    NamesAndTypes,
}

pub(super) fn read_table<D: Dialect>(
    payload: &[u8],
    plan: &ReadPlan,
    dialect: D,
    heading: Heading,
) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, payload.len())?;
    let mut fields = Fields::new(payload, &plan.rules.settings, dialect);
    match read_all(&mut fields, &mut rows, heading, &mut None) {
        Ok(()) => rows.finish(),
        Err(reason) => Err(rows.not_parsed(reason)),
    }
}

/// Appends the rows of one more payload.
pub(super) fn append_table<'p, D: Dialect>(
    payload: &[u8],
    rows: &mut Rows<'p>,
    kept: &mut Kept,
    dialect: impl FnOnce(&'p ReadSettings) -> D,
    heading: Heading,
) -> Result<(), Stopped> {
    let settings = &rows.plan.rules.settings;
    let mut fields = Fields::new(payload, settings, dialect(settings));
    fields.scratch = std::mem::take(&mut kept.scratch);
    let outcome = read_all(&mut fields, rows, heading, &mut kept.table_layout);
    let at = fields.cursor.at;
    kept.scratch = fields.scratch;
    outcome.map_err(|reason| Stopped { reason, at })
}

#[inline(always)]
fn read_all<D: Dialect>(
    fields: &mut Fields<'_, '_, D>,
    rows: &mut Rows<'_>,
    heading: Heading,
    table_layout: &mut Option<Layout>,
) -> Result<(), NotParsedReason> {
    let has_mark = fields.cursor.eat_exactly(BYTE_ORDER_MARK);
    for _ in 0..fields.dialect.skipped_lines() {
        if fields.cursor.at_end() {
            break;
        }
        fields.skip_header_row()?;
    }
    let headed;
    let layout = match heading {
        // A mark is skipped before some first columns, and belongs to the value of others.
        Heading::MaybeDetected if has_mark => return Err(NotParsedReason::Syntax),
        Heading::MaybeDetected if fields.at_table_end() => return Ok(()),
        Heading::MaybeDetected if fields.dialect.detects_header() && fields.has_names(rows.plan)? => {
            headed = read_detected_names(fields, rows.plan)?;
            &headed
        }
        Heading::MaybeDetected => table_layout.get_or_insert_with(|| Layout::of_table(rows.plan)),
        Heading::Names | Heading::NamesAndTypes => {
            let layout = fields.read_names(rows.plan)?;
            headed = match heading {
                Heading::NamesAndTypes => fields.read_types(layout, rows.plan)?,
                _ => layout,
            };
            &headed
        }
    };
    while !fields.at_table_end() {
        read_row(fields, rows, layout)?;
    }
    Ok(())
}

fn read_detected_names<D: Dialect>(fields: &mut Fields<'_, '_, D>, plan: &ReadPlan) -> Result<Layout, NotParsedReason> {
    let layout = fields.read_names(plan)?;
    if !fields.cursor.at_end() && fields.may_have_types()? {
        return Err(NotParsedReason::Syntax);
    }
    Ok(layout)
}

#[inline]
fn read_row<D: Dialect>(
    fields: &mut Fields<'_, '_, D>,
    rows: &mut Rows<'_>,
    layout: &Layout,
) -> Result<(), NotParsedReason> {
    let is_variable = fields.dialect.has_variable_columns();
    for (index, column) in layout.fields.iter().enumerate() {
        if is_variable && fields.ends_row() {
            for column in layout.fields[index..].iter().flatten() {
                rows.give_default(*column)?;
            }
            break;
        }
        if index > 0 {
            if !fields.dialect.at_delimiter(&fields.cursor) {
                return Err(NotParsedReason::Syntax);
            }
            fields.cursor.at += 1;
        }
        match column {
            Some(column) => fields.read_field(rows, *column)?,
            None => fields.skip_field()?,
        }
    }
    while is_variable && !fields.ends_row() {
        if !fields.dialect.at_delimiter(&fields.cursor) {
            return Err(NotParsedReason::Syntax);
        }
        fields.cursor.at += 1;
        fields.skip_field()?;
    }
    fields.dialect.end_row(&mut fields.cursor)?;
    for column in &layout.missing {
        rows.give_default(*column)?;
    }
    rows.end_full_row();
    Ok(())
}
