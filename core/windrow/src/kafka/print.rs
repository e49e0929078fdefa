//! The report of a check, for people and for machines.

use std::fmt::Write;

use serde_json::{json, Value};
use windrow_kafka::pipeline::{CheckReport, CheckedColumn, PipelineOptions, Sample, Verdict};
use windrow_settings::KafkaSettings;

use crate::sql_backend::values_as_text;

const SHOWN_VALUES: usize = 3;
const VALUE_CHARS: usize = 30;
/// The number of an error's characters that the report shows. More would break lines; the JSON has all of it.
const ERROR_CHARS: usize = 200;
const SHOWN_FIELDS: usize = 50;
const SHOWN_PARTITIONS: usize = 64;

pub(super) fn text(pipeline: &KafkaSettings, options: &PipelineOptions, report: &CheckReport) -> String {
    let mut out = String::new();
    line(
        &mut out,
        &format!(
            "pipeline {}: {} from {} into {}.{}, group {}",
            options.name,
            options.format.name,
            pipeline.brokers.join(","),
            options.database,
            options.table,
            options.group
        ),
    );
    topics(&mut out, report);
    columns(&mut out, report);
    unused_fields(&mut out, report);
    refused(&mut out, &report.sample);
    if let Some(guarantee) = report.guarantee {
        let why = report.not_exactly_once.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        line(&mut out, &format!("\nguarantee: {}{why}", guarantee.as_str()));
    }
    for (word, sentences) in [
        ("note", &report.notes),
        ("warning", &report.warnings),
        ("problem", &report.problems),
        ("could not ask", &report.unreachable),
    ] {
        sentences.iter().for_each(|sentence| line(&mut out, &format!("{word}: {}", one_line(sentence))));
    }
    line(&mut out, &verdict(report));
    out
}

fn verdict(report: &CheckReport) -> String {
    let tried = report.sample.messages - report.sample.tombstones;
    match report.verdict() {
        Verdict::Fits if tried == 0 => "\nIt fits, as far as can be said without a message to try.".to_owned(),
        Verdict::Fits => format!("\nIt fits: all of {tried} messages can be stored."),
        Verdict::DoesNotFit if report.sample.refused_messages > 0 => {
            format!("\nIt does not fit: {} of {tried} messages would be refused.", report.sample.refused_messages)
        }
        Verdict::DoesNotFit => "\nIt does not fit.".to_owned(),
        Verdict::Unknown => "\nIt could not be checked.".to_owned(),
    }
}

fn topics(out: &mut String, report: &CheckReport) {
    let mut rows = vec![["topic", "partition", "earliest", "latest", "committed", "lag"].map(str::to_owned)];
    let mut left_out = 0;
    for topic in &report.topics {
        for partition in &topic.partitions {
            if rows.len() > SHOWN_PARTITIONS {
                left_out += 1;
                continue;
            }
            rows.push([
                topic.name.clone(),
                partition.partition.to_string(),
                partition.earliest.to_string(),
                partition.latest.to_string(),
                partition.committed.map_or("-".to_owned(), |offset| offset.to_string()),
                partition.lag().to_string(),
            ]);
        }
    }
    if rows.len() > 1 {
        line(out, "");
        table(out, &rows);
    }
    if left_out > 0 {
        line(out, &format!("and {left_out} more partitions; {} messages are not stored in all", report.lag()));
    }
}

fn columns(out: &mut String, report: &CheckReport) {
    if report.columns.is_empty() {
        return;
    }
    let values = values(&report.sample);
    let mut rows = vec![["column", "type", "from", "sample"].map(str::to_owned)];
    for column in &report.columns {
        let shown = values.iter().find(|(name, _)| *name == column.name).map(|(_, values)| values.join(", "));
        rows.push([column.name.clone(), column.type_name.clone(), column.source.clone(), shown.unwrap_or_default()]);
    }
    line(out, "");
    table(out, &rows);
    for column in report.columns.iter().filter(|column| column.problem.is_some()) {
        line(out, &format!("column {}: {}", column.name, misfit(column)));
    }
}

fn misfit(column: &CheckedColumn) -> String {
    let messages = match column.refused_messages {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    };
    format!("{}; {messages}", one_line(column.problem.as_deref().unwrap_or_default()))
}

/// Returns some values of the sample for each column.
fn values(sample: &Sample) -> Vec<(String, Vec<String>)> {
    let Some(rows) = &sample.rows_read else { return Vec::new() };
    let shown = rows.columns.iter().zip(values_as_text(&rows.columns, &rows.block));
    let shown = shown.map(|(column, values)| {
        let values = values.unwrap_or_default().into_iter().take(SHOWN_VALUES);
        (column.name.clone(), values.map(|value| shortened(&one_line(&value), VALUE_CHARS)).collect())
    });
    shown.collect()
}

fn unused_fields(out: &mut String, report: &CheckReport) {
    if report.unused_fields.is_empty() {
        return;
    }
    let mut rows = vec![["no column takes", "messages", "such as"].map(str::to_owned)];
    for field in report.unused_fields.iter().take(SHOWN_FIELDS) {
        rows.push([
            one_line(&field.name),
            field.messages.map(|messages| messages.to_string()).unwrap_or_default(),
            one_line(field.example.as_deref().unwrap_or_default()),
        ]);
    }
    line(out, "");
    table(out, &rows);
    if report.unused_fields.len() > SHOWN_FIELDS {
        line(out, &format!("and {} more", report.unused_fields.len() - SHOWN_FIELDS));
    }
}

fn refused(out: &mut String, sample: &Sample) {
    if sample.refused.is_empty() {
        return;
    }
    let mut rows = vec![["would be refused", "row", "columns", "error"].map(str::to_owned)];
    for message in &sample.refused {
        rows.push([
            format!("{}:{}:{}", message.topic, message.partition, message.offset),
            message.row.map(|row| row.to_string()).unwrap_or_default(),
            message.columns.join(", "),
            shortened(&one_line(&message.error), ERROR_CHARS),
        ]);
    }
    line(out, "");
    table(out, &rows);
    let told = sample.refused.len() as u64;
    if sample.refused_messages > told {
        line(out, &format!("and {} more", sample.refused_messages - told));
    }
}

/// Writes cells under each other; the first row has the heads of the columns.
fn table<const N: usize>(out: &mut String, rows: &[[String; N]]) {
    let widths: Vec<usize> =
        (0..N).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        line(out, cells.join("  ").trim_end());
    }
}

fn line(out: &mut String, text: &str) {
    // Writing to a String never fails.
    let _ = writeln!(out, "{text}");
}

fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Replaces control characters: a producer's text may hold anything, also commands that a terminal would
/// obey.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

pub(super) fn json(pipeline: &KafkaSettings, options: &PipelineOptions, report: &CheckReport) -> Value {
    let sample = &report.sample;
    let values = values(sample);
    let topics = report.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|it| {
            json!({ "partition": it.partition, "earliest": it.earliest, "latest": it.latest,
                "committed": it.committed, "lag": it.lag() })
        });
        json!({ "topic": topic.name, "partitions": partitions.collect::<Vec<_>>() })
    });
    let columns = report.columns.iter().map(|column| {
        let values = values.iter().find(|(name, _)| *name == column.name).map(|(_, values)| values);
        json!({ "column": column.name, "type": column.type_name, "from": column.source, "field": column.field,
            "messages_with_field": column.messages_with, "sample": values, "refused_messages": column.refused_messages,
            "problem": column.problem })
    });
    let refused = sample.refused.iter().map(|it| {
        json!({ "topic": it.topic, "partition": it.partition, "offset": it.offset, "row": it.row,
            "columns": it.columns, "error": it.error })
    });
    let unused = report
        .unused_fields
        .iter()
        .map(|it| json!({ "field": it.name, "messages": it.messages, "example": it.example }));
    json!({
        "pipeline": options.name,
        "brokers": pipeline.brokers,
        "group": options.group,
        "database": options.database,
        "table": options.table,
        "format": options.format.name,
        "verdict": report.verdict().as_str(),
        "guarantee": report.guarantee.map(|guarantee| guarantee.as_str()),
        "not_exactly_once": report.not_exactly_once,
        "lag_messages": report.lag(),
        "topics": topics.collect::<Vec<_>>(),
        "columns": columns.collect::<Vec<_>>(),
        "unused_fields": unused.collect::<Vec<_>>(),
        "messages": sample.messages,
        "rows": sample.rows,
        "tombstones": sample.tombstones,
        "refused_messages": sample.refused_messages,
        "refused": refused.collect::<Vec<_>>(),
        "notes": report.notes,
        "warnings": report.warnings,
        "problems": report.problems,
        "unreachable": report.unreachable,
    })
}
