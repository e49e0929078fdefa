//! Tables as text: one row a line, fields with a delimiter between.
//!
//! The code that all these formats share is in `table` (rows, header) and `field` (one field into one
//! column); a [`Dialect`] tells them apart: how a field begins, how its text is written, where it ends.
//! Numbers are read where they stand; other values are first found by their end, which for most is a search
//! over few bytes.
//!
//! Even formats without a header may have one: ClickHouse takes a first row for it that consists of column
//! names, or has them all. Such a payload can't be cut into parts at line breaks, since a part could begin
//! with a row that looks like that.

mod bool_word;
mod csv;
mod dialect;
mod field;
mod header;
mod lenient;
mod scan;
mod table;
mod tskv;
mod tsv;

use self::csv::Csv;
use self::table::{append_table, read_table, Heading};
pub use self::tskv::read_tskv;
use self::tsv::{Escaped, Raw};
use super::outcome::{NotParsed, Parsed};
use super::series::Append;
use crate::plan::ReadPlan;

/// Returns the function that appends the rows of one more payload, for formats whose payloads may follow each
/// other.
pub(super) fn appender(format: &str) -> Option<Append> {
    Some(match format {
        "CSV" => |payload, rows, kept| append_table(payload, rows, kept, Csv::new, Heading::MaybeDetected),
        "CSVWithNames" => |payload, rows, kept| append_table(payload, rows, kept, Csv::new, Heading::Names),
        "CSVWithNamesAndTypes" => {
            |payload, rows, kept| append_table(payload, rows, kept, Csv::new, Heading::NamesAndTypes)
        }
        "TabSeparated" => |payload, rows, kept| append_table(payload, rows, kept, Escaped::new, Heading::MaybeDetected),
        "TabSeparatedWithNames" => {
            |payload, rows, kept| append_table(payload, rows, kept, Escaped::new, Heading::Names)
        }
        "TabSeparatedWithNamesAndTypes" => {
            |payload, rows, kept| append_table(payload, rows, kept, Escaped::new, Heading::NamesAndTypes)
        }
        "TabSeparatedRaw" => |payload, rows, kept| append_table(payload, rows, kept, Raw::new, Heading::MaybeDetected),
        "TSKV" => tskv::append,
        _ => return None,
    })
}

pub fn read_csv(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Csv::new(&plan.rules.settings), Heading::MaybeDetected)
}

pub fn read_csv_with_names(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Csv::new(&plan.rules.settings), Heading::Names)
}

pub fn read_csv_with_names_and_types(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Csv::new(&plan.rules.settings), Heading::NamesAndTypes)
}

pub fn read_tsv(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Escaped::new(&plan.rules.settings), Heading::MaybeDetected)
}

pub fn read_tsv_with_names(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Escaped::new(&plan.rules.settings), Heading::Names)
}

pub fn read_tsv_with_names_and_types(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Escaped::new(&plan.rules.settings), Heading::NamesAndTypes)
}

pub fn read_tsv_raw(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Raw::new(&plan.rules.settings), Heading::MaybeDetected)
}

pub fn read_tsv_raw_with_names(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Raw::new(&plan.rules.settings), Heading::Names)
}

pub fn read_tsv_raw_with_names_and_types(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read_table(payload, plan, Raw::new(&plan.rules.settings), Heading::NamesAndTypes)
}
