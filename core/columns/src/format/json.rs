//! Formats of JSON, and formats for one String.

use super::families::{HEADED, JSON, NONE};
use super::{Format, Lines};
use crate::plan::ReadPlan;
use crate::read::json::*;
use crate::read::raw::*;
use crate::read::{NotParsed, Parsed};

type Read = fn(&[u8], &ReadPlan) -> Result<Parsed, NotParsed>;

const OBJECTS: Lines = Lines::BeginWith(b'{');
const ARRAYS: Lines = Lines::BeginWith(b'[');

const fn rows(name: &'static str, lines: Lines, read: Read) -> Format {
    Format { name, aliases: &[], families: JSON, lines, read }
}

const fn headed(name: &'static str, read: Read) -> Format {
    Format { name, aliases: &[], families: JSON.and(HEADED), lines: Lines::Unknown, read }
}

const fn whole(name: &'static str, read: Read) -> Format {
    Format { name, aliases: &[], families: JSON, lines: Lines::Unknown, read }
}

pub(super) const FORMATS: &[Format] = &[
    Format {
        name: "JSONEachRow",
        aliases: &["JSONLines", "JSONL", "NDJSON"],
        families: JSON,
        lines: OBJECTS,
        read: read_json_each_row,
    },
    rows("JSONStringsEachRow", OBJECTS, read_json_strings_each_row),
    rows("JSONCompactEachRow", ARRAYS, read_json_compact_each_row),
    headed("JSONCompactEachRowWithNames", read_json_compact_each_row_with_names),
    headed("JSONCompactEachRowWithNamesAndTypes", read_json_compact_each_row_with_names_and_types),
    rows("JSONCompactStringsEachRow", ARRAYS, read_json_compact_strings_each_row),
    headed("JSONCompactStringsEachRowWithNames", read_json_compact_strings_each_row_with_names),
    headed("JSONCompactStringsEachRowWithNamesAndTypes", read_json_compact_strings_each_row_with_names_and_types),
    whole("JSONObjectEachRow", read_json_object_each_row),
    whole("JSONColumns", read_json_columns),
    whole("JSONCompactColumns", read_json_compact_columns),
    whole("JSONColumnsWithMetadata", read_json_columns_with_metadata),
    whole("JSON", read_json),
    whole("JSONCompact", read_json_compact),
    rows("JSONAsString", OBJECTS, read_json_as_string),
    Format { name: "LineAsString", aliases: &[], families: NONE, lines: Lines::Any, read: read_line_as_string },
    Format { name: "RawBLOB", aliases: &[], families: NONE, lines: Lines::Unknown, read: read_raw_blob },
];
