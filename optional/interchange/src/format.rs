//! The formats of this crate, in one table.

use windrow_columns::{families, Format, Lines};

use crate::{arrow, avro, parquet, protobuf};

const FORMATS: &[Format] = &[
    Format {
        name: "ArrowStream",
        aliases: &[],
        families: families::ARROW,
        lines: Lines::Unknown,
        read: arrow::read_stream,
    },
    Format { name: "Arrow", aliases: &[], families: families::ARROW, lines: Lines::Unknown, read: arrow::read_file },
    Format { name: "Parquet", aliases: &[], families: families::PARQUET, lines: Lines::Unknown, read: parquet::read },
    Format { name: "Avro", aliases: &[], families: families::AVRO, lines: Lines::Unknown, read: avro::read },
    Format {
        name: "Protobuf",
        aliases: &[],
        families: families::PROTOBUF,
        lines: Lines::Unknown,
        read: protobuf::read_many,
    },
    Format {
        name: "ProtobufSingle",
        aliases: &[],
        families: families::PROTOBUF,
        lines: Lines::Unknown,
        read: protobuf::read_single,
    },
];

/// Returns the format of this name, in any case.
pub fn format(name: &str) -> Option<&'static Format> {
    formats().find(|format| format.is_named(name))
}

pub fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter()
}
