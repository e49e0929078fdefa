use crate::format::families::{self, Families};

/// A format whose payloads may be joined.
#[derive(Debug)]
pub struct PassthroughFormat {
    /// The format's name as `system.formats` has it.
    pub name: &'static str,
    aliases: &'static [&'static str],
    pub(super) families: Families,
    pub(super) layout: Layout,
    /// Number of header rows, which name columns and types before the rows of values.
    pub(super) header_rows: usize,
}

/// The form of the format's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// JSON objects.
    Objects,
    /// JSON arrays.
    Arrays,
    /// Lines with fields.
    Delimited(Dialect),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Csv,
    Tsv,
    /// TSV without escapes.
    TsvRaw,
}

const CSV: Families = families::CSV.and(families::HEADED);
const TSV: Families = families::TSV.and(families::HEADED);
const JSON: Families = families::JSON;
const HEADED_JSON: Families = families::JSON.and(families::HEADED);

const fn format(
    name: &'static str,
    aliases: &'static [&'static str],
    families: Families,
    layout: Layout,
    header_rows: usize,
) -> PassthroughFormat {
    PassthroughFormat { name, aliases, families, layout, header_rows }
}

use Dialect::{Csv, Tsv, TsvRaw};
use Layout::{Arrays, Delimited, Objects};

const FORMATS: &[PassthroughFormat] = &[
    format("JSONEachRow", &["JSONLines", "JSONL", "NDJSON"], JSON, Objects, 0),
    format("JSONStringsEachRow", &[], JSON, Objects, 0),
    format("JSONAsObject", &[], JSON, Objects, 0),
    format("JSONCompactEachRow", &[], JSON, Arrays, 0),
    format("JSONCompactEachRowWithNames", &[], HEADED_JSON, Arrays, 1),
    format("JSONCompactEachRowWithNamesAndTypes", &[], HEADED_JSON, Arrays, 2),
    format("JSONCompactStringsEachRow", &[], JSON, Arrays, 0),
    format("JSONCompactStringsEachRowWithNames", &[], HEADED_JSON, Arrays, 1),
    format("JSONCompactStringsEachRowWithNamesAndTypes", &[], HEADED_JSON, Arrays, 2),
    format("CSV", &[], CSV, Delimited(Csv), 0),
    format("CSVWithNames", &[], CSV, Delimited(Csv), 1),
    format("CSVWithNamesAndTypes", &[], CSV, Delimited(Csv), 2),
    format("TabSeparated", &["TSV"], TSV, Delimited(Tsv), 0),
    format("TabSeparatedWithNames", &["TSVWithNames"], TSV, Delimited(Tsv), 1),
    format("TabSeparatedWithNamesAndTypes", &["TSVWithNamesAndTypes"], TSV, Delimited(Tsv), 2),
    format("TabSeparatedRaw", &["TSVRaw", "Raw"], TSV, Delimited(TsvRaw), 0),
    format("TabSeparatedRawWithNames", &["TSVRawWithNames", "RawWithNames"], TSV, Delimited(TsvRaw), 1),
    format(
        "TabSeparatedRawWithNamesAndTypes",
        &["TSVRawWithNamesAndTypes", "RawWithNamesAndTypes"],
        TSV,
        Delimited(TsvRaw),
        2,
    ),
];

impl PassthroughFormat {
    /// Returns the format of this name, in any case of its letters, as ClickHouse does.
    pub fn named(name: &str) -> Option<&'static PassthroughFormat> {
        let is_named = |known: &&str| known.eq_ignore_ascii_case(name);
        FORMATS.iter().find(|format| is_named(&format.name) || format.aliases.iter().any(is_named))
    }

    /// Returns the name of a format that rows passed through may be in: a format whose payloads may be
    /// joined, or Native, the format of the blocks in which ClickHouse itself has answered.
    pub fn name_of_rows(name: &str) -> Option<&'static str> {
        if name == PassthroughFormat::BLOCKS {
            return Some(PassthroughFormat::BLOCKS);
        }
        PassthroughFormat::named(name).map(|format| format.name)
    }

    /// The format of rows that ClickHouse was asked to read, if they have types that are not known here.
    pub const BLOCKS: &'static str = "Native";

    pub fn all() -> impl Iterator<Item = &'static PassthroughFormat> {
        FORMATS.iter()
    }
}
