//! The formats that results are written in.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    JsonEachRow,
    JsonCompactEachRow {
        names: bool,
        types: bool,
    },
    Json,
    JsonCompact,
    Csv {
        names: bool,
        types: bool,
    },
    TabSeparated {
        names: bool,
        types: bool,
    },
    TabSeparatedRaw {
        names: bool,
        types: bool,
    },
    Values,
    RowBinary {
        names: bool,
        types: bool,
    },
    Native,
    Arrow,
    ArrowStream,
    Parquet,
    /// A format that writes nothing at all.
    Null,
}

impl Format {
    /// Finds a format by ClickHouse's name, in any case, as ClickHouse does.
    pub fn from_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let (base, names, types) = match name.strip_suffix("withnamesandtypes") {
            Some(base) => (base, true, true),
            None => match name.strip_suffix("withnames") {
                Some(base) => (base, true, false),
                None => (name.as_str(), false, false),
            },
        };
        Some(match base {
            "csv" => Format::Csv { names, types },
            "tabseparated" | "tsv" => Format::TabSeparated { names, types },
            "tabseparatedraw" | "tsvraw" | "raw" => Format::TabSeparatedRaw { names, types },
            "jsoncompacteachrow" => Format::JsonCompactEachRow { names, types },
            "rowbinary" => Format::RowBinary { names, types },
            _ if names => return None,
            "jsoneachrow" | "jsonlines" | "ndjson" => Format::JsonEachRow,
            "json" => Format::Json,
            "jsoncompact" => Format::JsonCompact,
            "values" => Format::Values,
            "native" => Format::Native,
            "arrow" => Format::Arrow,
            "arrowstream" => Format::ArrowStream,
            "parquet" => Format::Parquet,
            "null" => Format::Null,
            _ => return None,
        })
    }

    /// Returns the answer's `Content-Type`, as ClickHouse has it.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Json | Format::JsonCompact => "application/json; charset=UTF-8",
            Format::JsonEachRow => "application/x-ndjson; charset=UTF-8",
            Format::Csv { names: true, .. } => "text/csv; charset=UTF-8; header=present",
            Format::Csv { names: false, .. } => "text/csv; charset=UTF-8; header=absent",
            Format::TabSeparated { .. } | Format::TabSeparatedRaw { .. } => "text/tab-separated-values; charset=UTF-8",
            Format::JsonCompactEachRow { .. } | Format::Values | Format::Null => "text/plain; charset=UTF-8",
            Format::RowBinary { .. } | Format::Native | Format::Arrow | Format::ArrowStream | Format::Parquet => {
                "application/octet-stream"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_all_their_names() {
        assert_eq!(Format::from_name("TSV"), Format::from_name("TabSeparated"));
        assert_eq!(Format::from_name("CSVWithNamesAndTypes"), Some(Format::Csv { names: true, types: true }));
        assert_eq!(Format::from_name("jsoneachrow"), Some(Format::JsonEachRow));
        for unknown in ["", "JSONWithNames", "WithNames", "Pretty", "Parquet2"] {
            assert_eq!(Format::from_name(unknown), None, "{unknown}");
        }
    }
}
