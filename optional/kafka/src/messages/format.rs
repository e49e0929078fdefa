//! The formats that messages are read in.

use windrow_columns::Format;
use windrow_interchange::ProtobufSchema;

use crate::messages::error::PlanError;

/// Formats that the option `format` may name, by ClickHouse's names. The error for an unknown format lists them.
pub(crate) const NAMES: &[&str] = &[
    "JSONEachRow",
    "Protobuf",
    "ProtobufSingle",
    "Avro",
    "AvroConfluent",
    "CSV",
    "CSVWithNames",
    "CSVWithNamesAndTypes",
    "TabSeparated (TSV)",
    "TabSeparatedWithNames",
    "TabSeparatedWithNamesAndTypes",
    "TSKV",
    "RowBinary",
    "RowBinaryWithDefaults",
    "RowBinaryWithNames",
    "RowBinaryWithNamesAndTypes",
    "MsgPack",
    "JSONStringsEachRow",
    "JSONCompactEachRow",
    "JSONAsString",
    "LineAsString",
    "RawBLOB",
    "Native",
    "Values",
];

/// A format, with the schema that it may need.
#[derive(Debug, Clone)]
pub struct MessageFormat {
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A message is a payload like that of an insert.
    Payload(&'static Format),
    Protobuf {
        schema: ProtobufSchema,
        /// True if a message holds many Protobuf messages, each behind its length.
        has_lengths: bool,
    },
    /// Messages are object container files.
    Avro,
    /// Messages are rows behind the id of their schema in a registry.
    AvroConfluent,
}

/// The schema that a format needs beside its name.
#[derive(Debug, Clone, Copy, Default)]
pub struct SchemaSource<'s> {
    /// Text of a `.proto` file.
    pub text: Option<&'s str>,
    /// Name of the Protobuf message, with the schema's package or without.
    pub message: Option<&'s str>,
}

impl MessageFormat {
    /// Finds a format by its name, in upper or lower case.
    ///
    /// # Errors
    /// Fails where the format is unknown, or a Protobuf format has no schema or one that can't be read.
    pub fn new(name: &str, schema: SchemaSource<'_>) -> Result<MessageFormat, PlanError> {
        let is_named = |known: &str| known.eq_ignore_ascii_case(name);
        if is_named("Protobuf") || is_named("ProtobufSingle") {
            let text =
                schema.text.ok_or_else(|| PlanError::Schema(format!("{name} needs a schema: name its .proto file")))?;
            let schema = ProtobufSchema::parse(text, schema.message).map_err(PlanError::Schema)?;
            return Ok(MessageFormat { kind: Kind::Protobuf { schema, has_lengths: is_named("Protobuf") } });
        }
        if is_named("Avro") || is_named("AvroConfluent") {
            return Ok(MessageFormat { kind: if is_named("Avro") { Kind::Avro } else { Kind::AvroConfluent } });
        }
        match Format::named(name).or_else(|| windrow_interchange::format(name)) {
            Some(format) => Ok(MessageFormat { kind: Kind::Payload(format) }),
            None => Err(PlanError::UnknownFormat(name.to_owned())),
        }
    }

    /// Returns ClickHouse's name of the format.
    pub fn name(&self) -> &'static str {
        match &self.kind {
            Kind::Payload(format) => format.name,
            Kind::Protobuf { has_lengths: true, .. } => "Protobuf",
            Kind::Protobuf { .. } => "ProtobufSingle",
            Kind::Avro => "Avro",
            Kind::AvroConfluent => "AvroConfluent",
        }
    }

    /// Says whether a field that is missing in a message can be read as NULL. It can't where the types of
    /// columns decide how values are written.
    pub(crate) fn reads_absence_as_null(&self) -> bool {
        match &self.kind {
            Kind::Payload(format) => {
                let is_typed = format.name.ends_with("AndTypes") || format.name.starts_with("RowBinary");
                !is_typed && !matches!(format.name, "Native" | "LineAsString" | "RawBLOB" | "JSONAsString")
            }
            // What isn't in its schema is left out by the plan; what is in it always has a value.
            Kind::Protobuf { .. } => false,
            Kind::Avro | Kind::AvroConfluent => true,
        }
    }

    /// Says whether fields have no names, only an order.
    pub(crate) fn is_positional(&self) -> bool {
        let name = self.name();
        let is_json = name.contains("JSON") && !name.contains("Compact") && !name.contains("AsString");
        let is_headed = name.contains("WithNames") || matches!(name, "TSKV" | "Native");
        !(is_json || is_headed || name.starts_with("Protobuf") || name.starts_with("Avro"))
    }
}
