//! The plan that turns messages of one format into rows of one table. It is made once and shared by all partitions.

use std::sync::Arc;

use windrow_columns::{BlockBuilder, ColumnSpec, DataType, DefaultKind, NotParsedReason, ReadPlan, ReadSettings};
use windrow_interchange::{AvroDecoder, ProtobufPlan, ProtobufSchema};

use crate::messages::avro::Schemas;
use crate::messages::error::PlanError;
use crate::messages::format::{Kind, MessageFormat};
use crate::messages::mapping::{left_out, Mapping, Source};
use crate::messages::virtual_columns::VirtualColumn;

pub struct MessagePlan {
    pub(crate) format: MessageFormat,
    columns: Vec<ColumnSpec>,
    /// Columns with the types that they have in runs.
    written: Vec<ColumnSpec>,
    sources: Vec<Source>,
    /// The fields that the format reads, as columns with the names of the fields.
    pub(crate) fields: ReadPlan,
    /// Indexes of the table's columns that the format reads, in order.
    pub(crate) field_columns: Vec<usize>,
    pub(crate) virtual_columns: Vec<VirtualColumn>,
    /// The plan that blocks of virtual columns are checked against, if there are any.
    pub(crate) virtual_plan: Option<ReadPlan>,
    /// The plan of a Protobuf format.
    pub(crate) protobuf: Option<ProtobufPlan>,
    /// The schemas of AvroConfluent.
    pub(crate) schemas: Schemas,
    /// True for each of the format's fields that the user has named: messages must have these fields.
    named_fields: Vec<bool>,
}

/// A column as `windrow kafka check` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMapping {
    pub column: String,
    pub type_name: String,
    pub source: Source,
    pub default_kind: DefaultKind,
}

/// The request by which ClickHouse reads a message, where it isn't certain that the message is read here as
/// ClickHouse would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// ClickHouse's name of the format.
    pub format: &'static str,
    /// Columns of the answer, in this order. A column with a DEFAULT expression is asked for as Nullable:
    /// NULL says that the message left the column out.
    pub columns: Vec<ColumnSpec>,
    /// Settings that this request needs, beside those of the pipeline.
    pub settings: Vec<(String, String)>,
}

impl MessagePlan {
    /// Makes a plan. `columns` are the table's, in its order. `settings` are those that affect reading the
    /// format, with the server's time zone.
    ///
    /// # Errors
    /// Fails where a column can't take the source that the mapping names, the schema doesn't fit, or messages
    /// can't be read into these columns.
    pub fn new(
        format: MessageFormat,
        columns: Vec<ColumnSpec>,
        mapping: &Mapping,
        settings: ReadSettings,
    ) -> Result<MessagePlan, PlanError> {
        let mut sources = mapping.sources(&columns)?;
        if let Kind::Protobuf { schema, .. } = &format.kind {
            find_in_schema(schema, &columns, mapping, &mut sources)?;
        }
        let field_columns: Vec<usize> =
            (0..columns.len()).filter(|index| matches!(sources[*index], Source::Field(_))).collect();
        let as_null = mapping.null_asks_for_default && settings.null_as_default() && format.reads_absence_as_null();
        let mut written = columns.clone();
        for &index in field_columns.iter().filter(|_| as_null) {
            written[index] = asked(&columns[index]).unwrap_or_else(|| columns[index].clone());
        }
        let fields = field_specs(&format, &written, &sources, &field_columns)?;
        let virtual_columns = virtual_columns(&columns, &sources)?;
        let virtual_specs: Vec<_> = virtual_columns.iter().map(|column| columns[column.index].clone()).collect();
        let virtual_plan = (!virtual_specs.is_empty()).then(|| ReadPlan::new(virtual_specs, ReadSettings::default()));
        let names = field_columns.iter().map(|index| columns[*index].name.as_str());
        let fields = ReadPlan::of_fields(fields, names, settings);
        check(&fields)?;
        let protobuf = match &format.kind {
            Kind::Protobuf { schema, has_lengths } => {
                Some(ProtobufPlan::new(schema, &fields, *has_lengths).map_err(PlanError::Columns)?)
            }
            _ => None,
        };
        let is_named = |index: &usize| mapping.field(&columns[*index].name).is_some();
        let named_fields = field_columns.iter().map(is_named).collect();
        let schemas = Schemas::default();
        Ok(MessagePlan {
            format,
            columns,
            written,
            sources,
            fields,
            field_columns,
            virtual_columns,
            virtual_plan,
            protobuf,
            schemas,
            named_fields,
        })
    }

    /// Returns the table's columns, in its order.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// Returns the table's columns with the types that the blocks of runs have. A column with a DEFAULT
    /// expression may be Nullable here: NULL asks for the expression.
    pub fn written(&self) -> &[ColumnSpec] {
        &self.written
    }

    /// Adds a schema of the registry, in JSON, that was [missing](crate::messages::Unread::MissingSchema) for
    /// a message.
    ///
    /// # Errors
    /// Fails where the schema can't be read or does not fit the table. All messages of this schema are
    /// refused then, with the same text.
    pub fn add_schema(&self, id: u32, schema: &str) -> Result<(), PlanError> {
        let is_required = |field: usize| self.is_named_field(field);
        let known = AvroDecoder::new(schema.as_bytes(), &self.fields, &is_required).map(Arc::new);
        let outcome = known.as_ref().map(drop).map_err(|text| PlanError::Schema(format!("schema {id}: {text}")));
        self.schemas.add(id, known);
        outcome
    }

    /// Remembers that the registry has no schema of this id. Its messages are refused with this text.
    pub fn refuse_schema(&self, id: u32, reason: &str) {
        self.schemas.add(id, Err(reason.to_owned()));
    }

    pub(crate) fn is_named_field(&self, field: usize) -> bool {
        self.named_fields.get(field).copied().unwrap_or(false)
    }

    /// Returns the table's column that takes a field.
    pub(crate) fn column_of_field(&self, field: usize) -> Option<&ColumnSpec> {
        self.field_columns.get(field).map(|index| &self.columns[*index])
    }

    /// Returns the fields of the schema that no column takes, if there is one schema for all messages.
    pub fn unused_fields(&self) -> Option<Vec<String>> {
        let Kind::Protobuf { schema, .. } = &self.format.kind else { return None };
        Some(schema.fields_without(&self.taken_fields().collect::<Vec<_>>()))
    }

    /// Returns the fields that no column takes, if each message names its schema.
    pub fn unused_fields_of(&self, value: &[u8]) -> Option<Vec<String>> {
        let is_required = |_: usize| false;
        match &self.format.kind {
            Kind::Avro => windrow_interchange::avro_schema(value)
                .and_then(|schema| AvroDecoder::new(schema, &self.fields, &is_required).ok())
                .map(|decoder| decoder.unused().to_vec()),
            Kind::AvroConfluent => self.schemas.of(value)?.ok().map(|decoder| decoder.unused().to_vec()),
            _ => None,
        }
    }

    /// Returns the fields that columns take, with the columns' types.
    pub fn taken_fields(&self) -> impl Iterator<Item = (&str, &DataType)> {
        self.sources.iter().zip(&self.columns).filter_map(|(source, column)| match source {
            Source::Field(field) => Some((field.as_str(), &column.data_type)),
            _ => None,
        })
    }

    /// Says whether fields have no names, only an order.
    pub fn is_positional(&self) -> bool {
        self.format.is_positional()
    }

    pub fn explain(&self) -> Vec<ColumnMapping> {
        let explained = self.columns.iter().zip(&self.sources).map(|(column, source)| ColumnMapping {
            column: column.name.clone(),
            type_name: column.data_type.to_string(),
            source: source.clone(),
            default_kind: column.default_kind,
        });
        explained.collect()
    }

    /// Returns the request by which ClickHouse reads a message. It is `None` if the answer would not say
    /// which columns a message left out, or ClickHouse has no way to say where the fields are.
    pub fn question(&self) -> Option<Question> {
        if matches!(self.format.kind, Kind::Avro | Kind::AvroConfluent) {
            return None;
        }
        let columns = self.fields.columns().iter().map(asked).collect::<Option<Vec<_>>>()?;
        let mut settings = Vec::new();
        if let Kind::Protobuf { schema, .. } = &self.format.kind {
            if !schema.is_whole() {
                return None;
            }
            let values = [schema.text(), "string", schema.message_name()];
            let names = ["format_schema", "format_schema_source", "format_schema_message_name"];
            settings.extend(names.iter().zip(values).map(|(name, value)| (name.to_string(), value.to_owned())));
        }
        let dots = |field: &ColumnSpec| field.name.matches('.').count();
        let deepest = self.fields.columns().iter().map(dots).max().unwrap_or(0);
        match self.format.kind {
            Kind::Payload(_) if deepest > 1 => return None,
            Kind::Payload(_) if deepest > 0 => {
                settings.push(("input_format_import_nested_json".to_owned(), "1".to_owned()));
            }
            _ => {}
        }
        Some(Question { format: self.format.name(), columns, settings })
    }
}

/// Finds the fields that columns take by their own name, and leaves out columns without a field. Where a field is in
/// the schema but not in a message, ClickHouse stores zero, whatever the column's DEFAULT expression.
fn find_in_schema(
    schema: &ProtobufSchema,
    columns: &[ColumnSpec],
    mapping: &Mapping,
    sources: &mut [Source],
) -> Result<(), PlanError> {
    for (column, source) in columns.iter().zip(sources) {
        let Source::Field(field) = source else { continue };
        *source = match schema.field(field) {
            Some(found) => Source::Field(found),
            None if mapping.field(&column.name).is_some() => {
                let message = schema.message_name();
                let text = format!(
                    "column `{}` is to take {field}, but the schema's message {message} has no such field",
                    column.name
                );
                return Err(PlanError::Schema(text));
            }
            None => match schema.unknown_around(field) {
                Some((outer, type_name)) => {
                    let column = &column.name;
                    let text = format!(
                        "column `{column}` may be a field of {outer}, but of its type {type_name} nothing is known: types that are imported \
                         aren't read, nor are those that have themselves inside; leave the column out with columns = {{ \"{column}\" = \"\" }}"
                    );
                    return Err(PlanError::Schema(text));
                }
                None => left_out(column),
            },
        };
    }
    Ok(())
}

/// Returns a column with the type that ClickHouse is asked for.
fn asked(column: &ColumnSpec) -> Option<ColumnSpec> {
    let data_type = match (column.default_kind, &column.data_type) {
        (DefaultKind::None, data_type) => data_type.clone(),
        (_, DataType::LowCardinality(inner)) if !matches!(**inner, DataType::Nullable(_)) => {
            DataType::Nullable(inner.clone())
        }
        (_, DataType::Custom(_) | DataType::Interval(_)) => return None,
        (_, data_type) if data_type.fixed_width().is_some() || *data_type == DataType::String => {
            DataType::Nullable(Box::new(data_type.clone()))
        }
        _ => return None,
    };
    Some(ColumnSpec { name: column.name.clone(), data_type, default_kind: DefaultKind::None })
}

/// Returns the columns that the format reads, named as its fields.
fn field_specs(
    format: &MessageFormat,
    columns: &[ColumnSpec],
    sources: &[Source],
    field_columns: &[usize],
) -> Result<Vec<ColumnSpec>, PlanError> {
    let mut specs: Vec<ColumnSpec> = Vec::with_capacity(field_columns.len());
    for &index in field_columns {
        let (column, Source::Field(field)) = (&columns[index], &sources[index]) else { continue };
        if format.is_positional() && *field != column.name {
            return Err(PlanError::NoNames { format: format.name(), column: column.name.clone() });
        }
        if let Some(other) = specs.iter().position(|known| known.name == *field) {
            let columns = [columns[field_columns[other]].name.clone(), column.name.clone()];
            return Err(PlanError::SharedField { field: field.clone(), columns });
        }
        let default_kind = match format.kind {
            Kind::Protobuf { .. } => DefaultKind::None,
            _ => column.default_kind,
        };
        specs.push(ColumnSpec { name: field.clone(), default_kind, ..column.clone() });
    }
    Ok(specs)
}

fn virtual_columns(columns: &[ColumnSpec], sources: &[Source]) -> Result<Vec<VirtualColumn>, PlanError> {
    let mut built = Vec::new();
    for (index, (column, source)) in columns.iter().zip(sources).enumerate() {
        let Source::Virtual(source) = source else { continue };
        let made = VirtualColumn::new(index, source, &column.data_type).ok_or_else(|| PlanError::VirtualType {
            column: column.name.clone(),
            source: source.name(),
            type_name: column.data_type.to_string(),
        })?;
        built.push(made);
    }
    Ok(built)
}

/// Checks that messages can be read with these settings and columns at all.
fn check(fields: &ReadPlan) -> Result<(), PlanError> {
    let Err(refusal) = BlockBuilder::new(fields, 0) else { return Ok(()) };
    Err(PlanError::Unreadable(match refusal.reason {
        NotParsedReason::Setting => {
            "a setting in format_settings has a value that messages can't be read with here".into()
        }
        NotParsedReason::ColumnKind if fields.columns().is_empty() => {
            "no column of the table takes a field of the messages".into()
        }
        reason => format!("messages can't be read into this table ({})", reason.as_str()),
    }))
}
