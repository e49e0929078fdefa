//! The check of a pipeline's settings: it connects, reads a sample as the pipeline would, and reports what
//! fits and what doesn't. It joins no group, commits nothing and stores nothing. Of a table that would be
//! given a window it only says so.

mod fields;
mod misfit;
mod report;
mod sample;
#[cfg(test)]
mod tests;
mod topics;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::messages::{ColumnMapping, MessagePlan, Source};
use crate::{Client, Error};
use windrow_columns::DefaultKind;

pub use self::report::{
    CheckReport, CheckedColumn, CheckedPartition, CheckedTopic, RefusedMessage, Sample, SampledRows, UnusedField,
    Verdict,
};
use self::sample::SampledTopic;
use crate::pipeline::options::PipelineOptions;
use crate::pipeline::plan::plan;
use crate::pipeline::status::Guarantee;
use crate::pipeline::tables::{TableDescription, TableError, Tables};

/// Time for retries during a check. Somebody waits for it, so errors are reported earlier than a pipeline would.
const PATIENCE_MS: u64 = 5_000;
/// Number of messages that are tried, of all topics together.
const SAMPLE_MESSAGES: usize = 1_000;
/// Deviation of a clock that is not reported, since it does no harm.
const CLOCK_SLACK_MS: i64 = 5_000;

/// Checks the settings. After a failure, the check goes on with everything that can still be found out.
pub async fn check(options: &PipelineOptions, tables: &dyn Tables) -> CheckReport {
    let mut report = CheckReport::default();
    let (topics, table) =
        tokio::join!(look_at_topics(options), tables.describe(&options.database, &options.table, false));
    let sampled = match topics {
        Ok(Topics { checked, sampled, problems, notes }) => {
            report.topics = checked;
            report.problems.extend(problems);
            report.notes.extend(notes);
            sampled
        }
        Err(error) => {
            report.unreachable.push(error.to_string());
            Vec::new()
        }
    };
    match table {
        Ok(table) => check_table(&mut report, options, tables, &table, &sampled).await,
        Err(TableError::Refused(exception)) => report.problems.push(exception.line),
        Err(TableError::Unavailable(why)) => {
            report.unreachable.push(format!("the table's backend can't be asked: {why}"))
        }
    }
    report
}

struct Topics {
    checked: Vec<CheckedTopic>,
    sampled: Vec<SampledTopic>,
    problems: Vec<String>,
    notes: Vec<String>,
}

async fn look_at_topics(options: &PipelineOptions) -> Result<Topics, Error> {
    let mut client_options = options.client.clone();
    client_options.retry_for_ms = client_options.retry_for_ms.min(PATIENCE_MS);
    client_options.connect_timeout_ms = client_options.connect_timeout_ms.min(PATIENCE_MS);
    let client = Client::connect(client_options).await?;
    let found = topics::find(&client, &options.topics).await?;
    let mut topics = Topics { checked: Vec::new(), sampled: Vec::new(), problems: found.problems, notes: Vec::new() };
    for name in &found.names {
        let sample = client.sample(name.clone(), SAMPLE_MESSAGES.div_ceil(found.names.len())).await?;
        topics.checked.push(CheckedTopic {
            name: name.to_string(),
            partitions: sample
                .partitions
                .iter()
                .map(|known| CheckedPartition {
                    partition: known.partition,
                    earliest: known.earliest,
                    latest: known.latest,
                    committed: None,
                })
                .collect(),
        });
        topics.sampled.push(SampledTopic { name: name.clone(), records: sample.records });
    }
    match topics::committed(&client, &options.group, &mut topics.checked).await {
        Ok(()) => {}
        // Without this right a pipeline can't begin.
        Err(error) if error.kafka_code().is_some() => topics.problems.push(error.to_string()),
        Err(error) => return Err(error),
    }
    Ok(topics)
}

async fn check_table(
    report: &mut CheckReport,
    options: &PipelineOptions,
    tables: &dyn Tables,
    table: &TableDescription,
    sampled: &[SampledTopic],
) {
    guarantee(report, options, table);
    let plan = match plan(options, table) {
        Ok(plan) => plan,
        Err(fault) => {
            report.columns = without_plan(table);
            report.problems.push(fault.to_string());
            return;
        }
    };
    report.columns = columns(options, &plan, table);
    sample::read(report, options, tables, table, &plan, sampled).await;
    about_columns(report);
    about_fields(report);
    about_timestamps(report, sampled);
}

fn guarantee(report: &mut CheckReport, options: &PipelineOptions, table: &TableDescription) {
    let obstacle = match (options.exactly_once, &table.no_deduplication) {
        (false, _) => Some("exactly_once is false".to_owned()),
        (true, why) => why.clone(),
    };
    report.guarantee = Some(if obstacle.is_none() { Guarantee::ExactlyOnce } else { Guarantee::AtLeastOnce });
    report.not_exactly_once = obstacle;
}

/// Returns the columns as far as they are known, where messages can't be read into the table.
fn without_plan(table: &TableDescription) -> Vec<CheckedColumn> {
    table.columns.iter().map(|column| CheckedColumn::new(&column.name, &column.type_name, String::new())).collect()
}

fn columns(options: &PipelineOptions, plan: &MessagePlan, table: &TableDescription) -> Vec<CheckedColumn> {
    let mappings = plan.explain();
    let checked = table.columns.iter().map(|column| {
        let mapping = mappings.iter().find(|mapping| mapping.column == column.name);
        let source = match (mapping, &column.data_type) {
            (Some(mapping), _) => shown_source(mapping),
            (None, Err(reason)) => {
                format!("nothing, it gets its default: values can't be written from here ({reason})")
            }
            (None, Ok(_)) => "nothing, it gets its default".to_owned(),
        };
        let field = mapping.and_then(|mapping| match &mapping.source {
            Source::Field(field) => Some(field.clone()),
            _ => None,
        });
        let is_left_out = options.columns.iter().any(|(name, field)| *name == column.name && field.is_empty());
        let takes_nothing = !is_left_out
            && mapping.is_some_and(|mapping| {
                let is_written = matches!(mapping.default_kind, DefaultKind::None | DefaultKind::Default);
                is_written && matches!(mapping.source, Source::Default | Source::Absent)
            });
        CheckedColumn { field, takes_nothing, ..CheckedColumn::new(&column.name, &column.type_name, source) }
    });
    checked.collect()
}

fn shown_source(mapping: &ColumnMapping) -> String {
    match &mapping.source {
        Source::Field(field) => format!("the field {field}"),
        Source::Virtual(source) => source.name(),
        Source::Default => "nothing, it gets its DEFAULT".to_owned(),
        Source::Absent => format!("nothing, it gets {}", default_of(&mapping.type_name)),
    }
}

fn default_of(type_name: &str) -> String {
    match type_name.starts_with("Nullable(") || type_name.starts_with("LowCardinality(Nullable(") {
        true => "NULL".to_owned(),
        false => format!("the default of {type_name}"),
    }
}

/// Notes columns whose fields are in no message, and columns without a field: most often one of the two names
/// is wrong.
fn about_columns(report: &mut CheckReport) {
    if report.sample.messages == report.sample.tombstones && report.unused_fields.is_empty() {
        return;
    }
    let unused = &report.unused_fields;
    for column in &report.columns {
        let wanted = match &column.field {
            Some(field) if column.messages_with == Some(0) => field,
            None if column.takes_nothing => &column.name,
            _ => continue,
        };
        let alike = unused.iter().find(|unused| is_alike(&unused.name, wanted)).map(|unused| &unused.name);
        let name = &column.name;
        let what = match (&column.field, alike) {
            (Some(field), _) => format!("no message of the sample has the field {field} of the column {name}"),
            (None, Some(_)) => format!("no field of the messages is the column {name}"),
            // Many a column is meant to get its default.
            (None, None) => continue,
        };
        let hint = alike
            .map(|field| format!(" (did you mean columns = {{ {} = \"{field}\" }}?)", toml_key(name)))
            .unwrap_or_default();
        report.notes.push(format!("{what}, which gets its default{hint}"));
    }
}

/// Number of names in the warning. All of them are in the list.
const TOLD_FIELDS: usize = 5;

/// Warns of fields that are sent and stored nowhere, which would not be noticed later.
fn about_fields(report: &mut CheckReport) {
    let unused: Vec<&str> = report.unused_fields.iter().map(|field| field.name.as_str()).collect();
    let more = match unused.len() {
        0 => return,
        count if count > TOLD_FIELDS => format!(" and {} more", count - TOLD_FIELDS),
        _ => String::new(),
    };
    let told = unused.into_iter().take(TOLD_FIELDS).collect::<Vec<_>>().join(", ");
    report
        .warnings
        .push(format!("no column takes these fields of the messages, which are stored nowhere: {told}{more}"));
}

fn toml_key(name: &str) -> String {
    let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// Says whether two names are the same but for case and separators, or the last part of a field within others is.
fn is_alike(field: &str, wanted: &str) -> bool {
    let plain =
        |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect() };
    let last = field.rsplit('.').next().unwrap_or(field);
    plain(field) == plain(wanted) || plain(last) == plain(wanted)
}

/// Notes timestamps that are missing or wrong, since latency that is measured from them would be wrong, too.
fn about_timestamps(report: &mut CheckReport, sampled: &[SampledTopic]) {
    let newest = sampled.iter().flat_map(|topic| &topic.records).map(|record| record.timestamp_ms).max();
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    match newest {
        Some(newest) if newest < 0 => report.notes.push(
            "the messages have no timestamps: latency can't be measured, and max_latency counts from the fetch"
                .to_owned(),
        ),
        Some(newest) if newest > now_ms + CLOCK_SLACK_MS => report.notes.push(format!(
            "the newest message is stamped {} s in the future: the producer's clock is wrong, or this machine's",
            (newest - now_ms) / 1000
        )),
        _ => {}
    }
}
