//! The formats of payloads, in one table with all that is known of each.

mod delimited;
pub mod families;
mod json;

use std::fmt::{self, Debug, Formatter};

use crate::plan::ReadPlan;
use crate::read::{
    read_msgpack, read_native, read_row_binary, read_row_binary_with_defaults, read_row_binary_with_names,
    read_row_binary_with_names_and_types, read_row_binary_with_names_and_types_and_defaults, read_values, NotParsed,
    Parsed,
};

pub use families::Families;

/// A format whose payloads are parsed here.
pub struct Format {
    /// The format's name as `system.formats` has it.
    pub name: &'static str,
    /// Other names of exactly the same format.
    pub aliases: &'static [&'static str],
    /// The groups of settings that change how the format is read.
    pub families: Families,
    pub lines: Lines,
    pub read: fn(&[u8], &ReadPlan) -> Result<Parsed, NotParsed>,
}

/// The way in which rows can be told apart at line breaks, so that parts of a payload can be read side by
/// side. A line break need not end a row: then the parts can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    Unknown,
    /// Any line may begin a row.
    Any,
    /// Rows begin with this byte. A line that begins otherwise may be read on its own, but as something else:
    /// a whole array of rows.
    BeginWith(u8),
}

const FORMATS: &[Format] = &[
    Format { name: "MsgPack", aliases: &[], families: families::MSGPACK, lines: Lines::Unknown, read: read_msgpack },
    Format { name: "Native", aliases: &[], families: families::NATIVE, lines: Lines::Unknown, read: read_native },
    Format {
        name: "RowBinary",
        aliases: &[],
        families: families::ROW_BINARY,
        lines: Lines::Unknown,
        read: read_row_binary,
    },
    Format {
        name: "RowBinaryWithDefaults",
        aliases: &[],
        families: families::ROW_BINARY,
        lines: Lines::Unknown,
        read: read_row_binary_with_defaults,
    },
    Format {
        name: "RowBinaryWithNames",
        aliases: &[],
        families: families::ROW_BINARY.and(families::HEADED),
        lines: Lines::Unknown,
        read: read_row_binary_with_names,
    },
    Format {
        name: "RowBinaryWithNamesAndTypes",
        aliases: &[],
        families: families::ROW_BINARY.and(families::HEADED),
        lines: Lines::Unknown,
        read: read_row_binary_with_names_and_types,
    },
    Format {
        name: "RowBinaryWithNamesAndTypesAndDefaults",
        aliases: &[],
        families: families::ROW_BINARY.and(families::HEADED),
        lines: Lines::Unknown,
        read: read_row_binary_with_names_and_types_and_defaults,
    },
    Format { name: "Values", aliases: &[], families: families::VALUES, lines: Lines::Unknown, read: read_values },
];

impl Format {
    /// Returns the format of this name, in any case of its letters, as ClickHouse does.
    pub fn named(name: &str) -> Option<&'static Format> {
        Format::all().find(|format| format.is_named(name))
    }

    pub fn all() -> impl Iterator<Item = &'static Format> {
        FORMATS.iter().chain(json::FORMATS).chain(delimited::FORMATS)
    }

    /// Says whether this is one of the format's names.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }
}

impl Debug for Format {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn names_are_found_in_any_case_and_are_there_once() {
        assert_eq!(Format::named("ndjson").map(|format| format.name), Some("JSONEachRow"));
        assert!(Format::named("Pretty").is_none());
        for format in Format::all() {
            for name in format.aliases.iter().chain([&format.name]) {
                assert_eq!(Format::all().filter(|other| other.is_named(name)).count(), 1, "{name}");
            }
        }
    }
}
