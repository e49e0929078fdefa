//! The plan by which a pipeline reads messages into its table: the format with its schema, the mapping, and
//! every setting that affects reading.

use std::fmt;
use std::path::Path;

use crate::messages::{Mapping, MessageFormat, MessagePlan, PlanError, SchemaSource};
use windrow_columns::{ColumnSpec, Format, ReadSettings, SettingEffect};

use crate::pipeline::options::{FormatOptions, PipelineOptions};
use crate::pipeline::tables::TableDescription;

/// Largest schema file. A longer one is refused unread, since it can't be a schema.
const MAX_SCHEMA_BYTES: u64 = 4 << 20;

/// The cause why messages can't be read with a pipeline's options.
#[derive(Debug, Clone)]
pub enum PlanFault {
    Plan(PlanError),
    /// The schema's file can't be read.
    File {
        path: String,
        reason: String,
    },
    /// A setting of ClickHouse's has a value that is not supported here.
    Setting {
        name: String,
        value: String,
        of_profile: bool,
    },
    /// A column that was asked for has a type that is not written from here.
    ColumnType {
        column: String,
        type_name: String,
        reason: String,
    },
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanFault::Plan(error) => error.fmt(f),
            PlanFault::File { path, reason } => write!(f, "the schema {path} can't be read: {reason}"),
            PlanFault::Setting { name, value, of_profile: false } => {
                write!(f, "messages can't be read with the setting {name} = {value} of format_settings")
            }
            PlanFault::Setting { name, value, of_profile: true } => write!(
                f,
                "messages can't be read with the setting {name} = {value} that the profile of Windrow's account has; give another \
                 value in format_settings"
            ),
            PlanFault::ColumnType { column, type_name, reason } => {
                write!(f, "column `{column}` of type {type_name} can't be written from messages: {reason}")
            }
        }
    }
}

impl std::error::Error for PlanFault {}

/// Makes the plan. Columns whose types can't be written from here are left out, and get their defaults.
///
/// # Errors
/// Fails where the options name a column of such a type, the schema or a setting can't be used, or the
/// messages can't be read into the columns.
pub fn plan(options: &PipelineOptions, table: &TableDescription) -> Result<MessagePlan, PlanFault> {
    let columns = writable_columns(options, table)?;
    plan_for(&options.format, &options.columns, columns, table)
}

/// Makes a plan like [`plan`], for columns of the caller's choice.
pub(crate) fn plan_for(
    format: &FormatOptions,
    mapping: &[(String, String)],
    columns: Vec<ColumnSpec>,
    table: &TableDescription,
) -> Result<MessagePlan, PlanFault> {
    let text = format.schema_file.as_deref().map(schema_text).transpose()?;
    let schema = SchemaSource { text: text.as_deref(), message: format.message.as_deref() };
    let message_format = MessageFormat::new(&format.name, schema).map_err(PlanFault::Plan)?;
    let settings = read_settings(format, table)?;
    let mapping = Mapping { columns: mapping.to_vec(), null_asks_for_default: null_asks_for_default(table) };
    MessagePlan::new(message_format, columns, &mapping, settings).map_err(PlanFault::Plan)
}

/// Says whether NULL asks for a column's DEFAULT. In ClickHouse it does, unless the profile of the account
/// that stores the batches says otherwise.
fn null_asks_for_default(table: &TableDescription) -> bool {
    let is_off = |name: &str| {
        table.settings.iter().any(|(given, value)| given == name && !matches!(value.as_str(), "1" | "true"))
    };
    table.server_version.is_some()
        && !is_off("input_format_null_as_default")
        && !is_off("input_format_defaults_for_omitted_fields")
}

pub(crate) fn writable_columns(
    options: &PipelineOptions,
    table: &TableDescription,
) -> Result<Vec<ColumnSpec>, PlanFault> {
    let mut columns = Vec::with_capacity(table.columns.len());
    for column in &table.columns {
        let is_asked_for = options.columns.iter().any(|(name, field)| *name == column.name && !field.is_empty());
        match &column.data_type {
            Ok(data_type) => columns.push(ColumnSpec {
                name: column.name.clone(),
                data_type: data_type.clone(),
                default_kind: column.default_kind,
            }),
            Err(reason) if is_asked_for => {
                return Err(PlanFault::ColumnType {
                    column: column.name.clone(),
                    type_name: column.type_name.clone(),
                    reason: reason.clone(),
                });
            }
            Err(_) => {}
        }
    }
    Ok(columns)
}

fn schema_text(path: &Path) -> Result<String, PlanFault> {
    let fault = |reason: String| PlanFault::File { path: path.display().to_string(), reason };
    let length = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?.len();
    if length > MAX_SCHEMA_BYTES {
        return Err(fault(format!("it has {length} bytes, more than the {MAX_SCHEMA_BYTES} that a schema may have")));
    }
    std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))
}

/// Returns the server's own settings, overridden by those of the pipeline.
fn read_settings(format: &FormatOptions, table: &TableDescription) -> Result<ReadSettings, PlanFault> {
    let known = Format::named(&format.name).or_else(|| windrow_interchange::format(&format.name));
    let mut read = known.map(ReadSettings::of).unwrap_or_default();
    if let Some((major, minor)) = table.server_version {
        read.set_server_version(major, minor);
    }
    read.set_server_timezone(&table.time_zone);
    let given = |name: &str| format.settings.iter().any(|(given, _)| given == name);
    let of_profile = table.settings.iter().filter(|(name, _)| !given(name)).map(|setting| (setting, true));
    let of_pipeline = format.settings.iter().map(|setting| (setting, false));
    for ((name, value), of_profile) in of_profile.chain(of_pipeline) {
        let effect = read.set(name, value);
        // Those of a profile that have nothing to do with reading are many; in `format_settings` there is no reason for
        // any.
        let is_refused = match of_profile {
            true => effect == SettingEffect::NotParsed,
            false => effect != SettingEffect::Applied,
        };
        if is_refused {
            return Err(PlanFault::Setting { name: name.clone(), value: value.clone(), of_profile });
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::tables::tests::description;

    fn fault(settings: &[(&str, &str)], profile: &[(&str, &str)]) -> Option<String> {
        let pairs =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let format =
            FormatOptions { name: "JSONEachRow".to_owned(), settings: pairs(settings), ..FormatOptions::default() };
        let table = TableDescription { settings: pairs(profile), ..description(&[("a", "UInt8")]) };
        read_settings(&format, &table).err().map(|fault| fault.to_string())
    }

    #[test]
    fn settings_are_taken_or_named() {
        assert_eq!(fault(&[("input_format_skip_unknown_fields", "0")], &[("max_threads", "4")]), None);
        assert_eq!(
            fault(&[("max_threads", "4")], &[]).as_deref(),
            Some("messages can't be read with the setting max_threads = 4 of format_settings")
        );
        let odd = ("input_format_json_read_numbers_as_strings", "maybe");
        assert!(fault(&[], &[odd]).is_some_and(|text| text.contains("the profile of Windrow's account has")));
        assert_eq!(fault(&[("input_format_json_read_numbers_as_strings", "1")], &[odd]), None, "the pipeline's wins");
    }
}
