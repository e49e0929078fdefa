//! How messages of one format become rows of one table: worked out once, shared by all partitions.

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
    /// As runs have them.
    written: Vec<ColumnSpec>,
    sources: Vec<Source>,
    /// What the format reads, with columns that are named as its fields.
    pub(crate) fields: ReadPlan,
    /// Of the table's columns, those that the format reads, in order.
    pub(crate) field_columns: Vec<usize>,
    pub(crate) virtual_columns: Vec<VirtualColumn>,
    /// What the blocks of virtual columns are checked against, if there are any.
    pub(crate) virtual_plan: Option<ReadPlan>,
    /// Of that format.
    pub(crate) protobuf: Option<ProtobufPlan>,
    /// Of AvroConfluent.
    pub(crate) schemas: Schemas,
    /// Of the format's fields, those that the user has named: messages have to have them.
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

/// How ClickHouse is asked to read a message that isn't certain to be read here as it would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// ClickHouse's name.
    pub format: &'static str,
    /// The answer has a column for each, in this order. A column with a DEFAULT expression is asked for as Nullable:
    /// NULL says that the message left it out.
    pub columns: Vec<ColumnSpec>,
    /// Settings that this asks for, beside those of the pipeline.
    pub settings: Vec<(String, String)>,
}

impl MessagePlan {
    /// `columns` are the table's, in its order. `settings` are those that bear on reading the format, with the server's
    /// time zone.
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

    /// The table's, in its order.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// The same with the types that the blocks of runs have. A column with a DEFAULT expression may be Nullable here:
    /// NULL asks for the expression.
    pub fn written(&self) -> &[ColumnSpec] {
        &self.written
    }

    /// Gives a schema of the registry, in its JSON, which a message was [missing](crate::messages::Unread::MissingSchema). If it
    /// has no place in the table, all messages of this schema are refused, with the same text.
    pub fn add_schema(&self, id: u32, schema: &str) -> Result<(), PlanError> {
        let is_required = |field: usize| self.is_named_field(field);
        let known = AvroDecoder::new(schema.as_bytes(), &self.fields, &is_required).map(Arc::new);
        let outcome = known.as_ref().map(drop).map_err(|text| PlanError::Schema(format!("schema {id}: {text}")));
        self.schemas.add(id, known);
        outcome
    }

    /// Remembers that the registry has no schema of this id: its messages are refused, with this text.
    pub fn refuse_schema(&self, id: u32, reason: &str) {
        self.schemas.add(id, Err(reason.to_owned()));
    }

    pub(crate) fn is_named_field(&self, field: usize) -> bool {
        self.named_fields.get(field).copied().unwrap_or(false)
    }

    /// The table's column that takes a field.
    pub(crate) fn column_of_field(&self, field: usize) -> Option<&ColumnSpec> {
        self.field_columns.get(field).map(|index| &self.columns[*index])
    }

    /// Fields of the schema that no column takes, where there is one schema for all messages.
    pub fn unused_fields(&self) -> Option<Vec<String>> {
        let Kind::Protobuf { schema, .. } = &self.format.kind else { return None };
        Some(schema.fields_without(&self.taken_fields().collect::<Vec<_>>()))
    }

    /// The same where each message says what its schema is.
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

    /// What columns take, with their types.
    pub fn taken_fields(&self) -> impl Iterator<Item = (&str, &DataType)> {
        self.sources.iter().zip(&self.columns).filter_map(|(source, column)| match source {
            Source::Field(field) => Some((field.as_str(), &column.data_type)),
            _ => None,
        })
    }

    /// Whether fields have no names and are told by their order.
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

    /// Nothing if ClickHouse's answer would not say which columns a message left out, or has no words for where the
    /// fields are.
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

/// Finds the fields that columns take by their own name, and leaves out the columns that have none. Of a field that is
/// in the schema and not in a message ClickHouse stores the zero, whatever the column's DEFAULT expression.
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

/// A column as ClickHouse is asked for it.
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

/// The columns that the format reads, by the names of its fields.
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

/// Whether anything can be read at all.
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
