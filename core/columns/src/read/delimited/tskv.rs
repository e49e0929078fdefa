//! TSKV: every row names its columns, as `name=value` with tabs between and a line break behind.

use memchr::memchr3;

use super::field::Fields;
use super::table::BYTE_ORDER_MARK;
use super::tsv::Escaped;
use crate::plan::ReadPlan;
use crate::read::outcome::{NotParsed, NotParsedReason, Parsed};
use crate::read::rows::Rows;
use crate::read::series::{Kept, Stopped};

pub fn read_tskv(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, payload.len())?;
    match append(payload, &mut rows, &mut Kept::default()) {
        Ok(()) => rows.finish(),
        Err(stopped) => Err(rows.not_parsed(stopped.reason)),
    }
}

/// Appends the rows of one more payload.
pub(super) fn append(payload: &[u8], rows: &mut Rows<'_>, kept: &mut Kept) -> Result<(), Stopped> {
    let settings = &rows.plan.rules.settings;
    let delimited = &settings.delimited;
    // ClickHouse applies these to some of the values, or to none.
    if delimited.tsv_crlf || delimited.tsv_empty_as_default || delimited.tsv_skip_trailing_empty_lines {
        return Err(Stopped { reason: NotParsedReason::Setting, at: 0 });
    }
    let mut fields = Fields::new(payload, settings, Escaped::new(settings));
    fields.scratch = std::mem::take(&mut kept.scratch);
    let outcome = read_rows(&mut fields, rows);
    let at = fields.cursor.at;
    kept.scratch = fields.scratch;
    outcome.map_err(|reason| Stopped { reason, at })
}

fn read_rows(fields: &mut Fields<'_, '_, Escaped<'_>>, rows: &mut Rows<'_>) -> Result<(), NotParsedReason> {
    if fields.cursor.eat_exactly(BYTE_ORDER_MARK) && fields.cursor.at_end() {
        // ClickHouse wants a row behind it.
        return Err(NotParsedReason::Syntax);
    }
    while !fields.cursor.at_end() {
        // A line of nothing is a row of defaults.
        if !fields.cursor.eat(b'\n') {
            while read_member(fields, rows)? {}
        }
        rows.end_row()?;
    }
    Ok(())
}

/// Reads a name and its value; returns whether more of them follow.
fn read_member(fields: &mut Fields<'_, '_, Escaped<'_>>, rows: &mut Rows<'_>) -> Result<bool, NotParsedReason> {
    let rest = fields.cursor.rest();
    let length = memchr3(b'=', b'\t', b'\\', rest).ok_or(NotParsedReason::Syntax)?;
    let name = &rest[..length];
    if rest[length] != b'=' || name.contains(&b'\n') {
        return Err(NotParsedReason::Syntax);
    }
    fields.cursor.at += length + 1;
    let plan = rows.plan;
    match plan.position(name) {
        Some(column) => {
            rows.see(column)?;
            fields.read_field(rows, column)?;
        }
        None if !plan.rules.settings.skip_unknown_fields || plan.resembles_a_column(name) => {
            return Err(NotParsedReason::UnknownField)
        }
        None => fields.skip_field()?,
    }
    if fields.cursor.bytes[..fields.cursor.at].ends_with(b"\r") {
        return Err(NotParsedReason::Syntax);
    }
    let follows = fields.cursor.eat(b'\t');
    if !follows {
        fields.cursor.expect(b'\n')?;
    }
    Ok(follows)
}
