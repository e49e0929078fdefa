//! CSV, TabSeparated and their kin. None of them is read in parts: a part might begin with a row that looks like a
//! header.

use super::families::{Families, CSV, HEADED, TSV};
use super::{Format, Lines};
use crate::plan::ReadPlan;
use crate::read::delimited;
use crate::read::{NotParsed, Parsed};

type Read = fn(&[u8], &ReadPlan) -> Result<Parsed, NotParsed>;

const fn format(name: &'static str, aliases: &'static [&'static str], families: Families, read: Read) -> Format {
    Format { name, aliases, families, lines: Lines::Unknown, read }
}

pub(super) const FORMATS: &[Format] = &[
    format("CSV", &[], CSV, delimited::read_csv),
    format("CSVWithNames", &[], CSV.and(HEADED), delimited::read_csv_with_names),
    format("CSVWithNamesAndTypes", &[], CSV.and(HEADED), delimited::read_csv_with_names_and_types),
    format("TabSeparated", &["TSV"], TSV, delimited::read_tsv),
    format("TabSeparatedWithNames", &["TSVWithNames"], TSV.and(HEADED), delimited::read_tsv_with_names),
    format(
        "TabSeparatedWithNamesAndTypes",
        &["TSVWithNamesAndTypes"],
        TSV.and(HEADED),
        delimited::read_tsv_with_names_and_types,
    ),
    format("TabSeparatedRaw", &["TSVRaw", "Raw"], TSV, delimited::read_tsv_raw),
    format(
        "TabSeparatedRawWithNames",
        &["TSVRawWithNames", "RawWithNames"],
        TSV.and(HEADED),
        delimited::read_tsv_raw_with_names,
    ),
    format(
        "TabSeparatedRawWithNamesAndTypes",
        &["TSVRawWithNamesAndTypes", "RawWithNamesAndTypes"],
        TSV.and(HEADED),
        delimited::read_tsv_raw_with_names_and_types,
    ),
    format("TSKV", &[], TSV, delimited::read_tskv),
];
