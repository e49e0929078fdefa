//! The sample: some of the latest messages, read as the pipeline would. ClickHouse is asked where the
//! pipeline would ask it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::messages::{Headers, Message, MessageError, MessagePlan, MessageReader, Run, Unread};
use crate::SampledRecord;
use bytes::Bytes;
use windrow_columns::{Block, ColumnSpec};

use super::fields::Fields;
use super::misfit::{Misfit, Misfits};
use super::report::{CheckReport, RefusedMessage, SampledRows, UnusedField};
use crate::pipeline::options::PipelineOptions;
use crate::pipeline::registry::{RegistryError, SchemaRegistry};
use crate::pipeline::tables::{AskError, FormatQuestion, TableDescription, Tables};

/// Refused messages that are reported one by one, and whose columns are searched for.
const MAX_TOLD: usize = 20;
const SHOWN_ROWS: usize = 5;

pub(super) struct SampledTopic {
    pub name: Arc<str>,
    pub records: Vec<SampledRecord>,
}

/// The services that can be asked about a message: the backend and the registry.
#[derive(Clone, Copy)]
pub(super) struct Ask<'c> {
    pub tables: &'c dyn Tables,
    /// ClickHouse's settings for reading.
    pub settings: &'c [(String, String)],
    /// The registry of the schemas that messages name.
    pub schemas: Option<&'c Schemas>,
}

/// A registry with its answers so far, since many plans ask for the same schemas.
pub(super) struct Schemas {
    registry: SchemaRegistry,
    said: Mutex<HashMap<u32, Result<String, RegistryError>>>,
}

impl Schemas {
    fn of(options: &PipelineOptions) -> Result<Option<Schemas>, String> {
        let Some(registry) = &options.format.registry else { return Ok(None) };
        SchemaRegistry::new(registry).map(|registry| Some(Schemas { registry, said: Mutex::default() }))
    }

    async fn schema(&self, id: u32) -> Result<String, RegistryError> {
        let known = self.said.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(known) = known {
            return known;
        }
        let said = self.registry.schema(id).await;
        self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(id, said.clone());
        said
    }
}

pub(super) fn message_of(record: &SampledRecord) -> Message<'_> {
    Message {
        offset: record.offset,
        timestamp_ms: record.timestamp_ms,
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers: Headers::Kept(&record.headers),
    }
}

fn is_tombstone(record: &SampledRecord) -> bool {
    record.value.as_deref().is_none_or(<[u8]>::is_empty)
}

pub(super) async fn read(
    report: &mut CheckReport,
    options: &PipelineOptions,
    tables: &dyn Tables,
    table: &TableDescription,
    plan: &MessagePlan,
    sampled: &[SampledTopic],
) {
    let schemas = match Schemas::of(options) {
        Ok(schemas) => schemas,
        Err(problem) => {
            report.problems.push(problem);
            return;
        }
    };
    let ask = Ask { tables, settings: &options.format.settings, schemas: schemas.as_ref() };
    let mut reading = Reading {
        report,
        plan,
        ask,
        misfits: Misfits { options, table, plan, ask },
        fields: Fields::new(plan.taken_fields()),
        unanswered: None,
    };
    for topic in sampled {
        reading.topic(topic).await;
    }
    let Reading { fields, unanswered, .. } = reading;
    report.unreachable.extend(unanswered.map(|why| format!("some messages could not be read: {why}")));
    if let Some(names) = plan.unused_fields() {
        let unused = names.into_iter().map(|name| UnusedField { name, messages: None, example: None });
        report.unused_fields = unused.collect();
    }
    report.sample.knows_fields = options.format.name.starts_with("JSON") && !plan.is_positional();
    if report.sample.knows_fields {
        for column in &mut report.columns {
            column.messages_with = column.field.as_ref().and_then(|field| fields.messages_with(field));
        }
    }
    if report.sample.knows_fields || options.format.name.starts_with("Avro") {
        report.unused_fields = fields.unused();
    }
}

struct Reading<'c> {
    report: &'c mut CheckReport,
    plan: &'c MessagePlan,
    ask: Ask<'c>,
    misfits: Misfits<'c>,
    fields: Fields,
    /// The cause why the backend or the registry could not be asked.
    unanswered: Option<String>,
}

/// The cause why a message became no rows.
struct Refusal {
    text: String,
    row: u64,
    column: Option<String>,
    /// True if it isn't known whether the message is bad, since the service that has to be asked can't be reached.
    is_unanswered: bool,
}

impl Reading<'_> {
    async fn topic(&mut self, topic: &SampledTopic) {
        let mut by_partition: BTreeMap<i32, Vec<&SampledRecord>> = BTreeMap::new();
        for record in &topic.records {
            by_partition.entry(record.partition).or_default().push(record);
        }
        for (partition, records) in by_partition {
            let mut reader = MessageReader::new(self.plan, &topic.name, partition);
            for record in records {
                self.record(&mut reader, &topic.name, record).await;
            }
            let runs = reader.finish();
            self.show(runs);
        }
    }

    async fn record(&mut self, reader: &mut MessageReader<'_>, topic: &str, record: &SampledRecord) {
        self.report.sample.messages += 1;
        if is_tombstone(record) {
            self.report.sample.tombstones += 1;
            return;
        }
        let value = record.value.as_deref().unwrap_or_default();
        match self.ask.read(self.plan, reader, &message_of(record)).await {
            Ok(rows) => self.report.sample.rows += u64::from(rows),
            Err(refusal) if refusal.is_unanswered => self.unanswered = Some(refusal.text),
            Err(refusal) => self.refused(topic, record, refusal).await,
        }
        match self.plan.unused_fields_of(value) {
            Some(unused) => unused.into_iter().for_each(|name| self.fields.see_unused(name, String::new())),
            None => self.fields.see(value),
        }
    }

    async fn refused(&mut self, topic: &str, record: &SampledRecord, refusal: Refusal) {
        self.report.sample.refused_messages += 1;
        let is_told = self.report.sample.refused.len() < MAX_TOLD;
        let misfits = match refusal.column {
            _ if is_told => self.misfits.of(topic, record, refusal.row).await,
            Some(column) => vec![Misfit { column, value: None }],
            None => Vec::new(),
        };
        let place = format!("{topic}:{}:{}", record.partition, record.offset);
        for misfit in &misfits {
            let Some(column) = self.report.columns.iter_mut().find(|it| it.name == misfit.column) else { continue };
            column.refused_messages += 1;
            let value = misfit.value.as_deref().map_or("a value".to_owned(), |value| format!("the value {value}"));
            let how = format!("{} can't take {value} (at {place})", column.type_name);
            column.problem.get_or_insert(how);
        }
        if is_told {
            self.report.sample.refused.push(RefusedMessage {
                topic: topic.to_owned(),
                partition: record.partition,
                offset: record.offset,
                row: (refusal.row > 0).then_some(refusal.row),
                columns: misfits.into_iter().map(|misfit| misfit.column).collect(),
                error: refusal.text,
            });
        }
    }

    /// Keeps the first rows that were read.
    fn show(&mut self, runs: Vec<Run>) {
        let Some(run) = runs.into_iter().find(|run| run.rows > 0) else { return };
        if self.report.sample.rows_read.is_some() {
            return;
        }
        let columns: Vec<ColumnSpec> = run.present.iter().map(|at| self.plan.written()[at].clone()).collect();
        let mut block = run.block.clone();
        block.clear();
        block.append_range(&run.block, 0..run.rows.min(SHOWN_ROWS));
        self.report.sample.rows_read = Some(SampledRows { columns, block });
    }
}

impl Ask<'_> {
    /// Returns the blocks of one message.
    pub(super) async fn read_alone(
        &self,
        plan: &MessagePlan,
        topic: &str,
        record: &SampledRecord,
    ) -> Result<Vec<Block>, String> {
        let mut reader = MessageReader::new(plan, topic, record.partition);
        match self.read(plan, &mut reader, &message_of(record)).await {
            Ok(_) => Ok(reader.finish().into_iter().map(|run| run.block).collect()),
            Err(refusal) => Err(refusal.text),
        }
    }

    async fn read(
        &self,
        plan: &MessagePlan,
        reader: &mut MessageReader<'_>,
        message: &Message<'_>,
    ) -> Result<u32, Refusal> {
        match reader.read(message) {
            Ok(rows) => Ok(rows),
            Err(Unread::Refused(error)) if !error.certain => self.ask_clickhouse(plan, reader, message, error).await,
            Err(Unread::Refused(error)) => Err(Refusal::of(error)),
            Err(unread @ Unread::MissingSchema(id)) => {
                let refused = |text| Refusal { text, row: 0, column: None, is_unanswered: false };
                let Some(schemas) = self.schemas else { return Err(refused(unread.to_string())) };
                match schemas.schema(id).await {
                    // What is wrong with it is said of the messages that name it.
                    Ok(schema) => drop(plan.add_schema(id, &schema)),
                    Err(RegistryError::Refused(text)) => return Err(refused(text)),
                    Err(RegistryError::Unavailable(text)) => {
                        return Err(Refusal { is_unanswered: true, ..refused(text) });
                    }
                }
                reader.read(message).map_err(|unread| match unread {
                    Unread::Refused(error) => Refusal::of(error),
                    unread => refused(unread.to_string()),
                })
            }
        }
    }

    async fn ask_clickhouse(
        &self,
        plan: &MessagePlan,
        reader: &mut MessageReader<'_>,
        message: &Message<'_>,
        error: MessageError,
    ) -> Result<u32, Refusal> {
        let Some(question) = plan.question() else { return Err(Refusal::of(error)) };
        let settings: Vec<(String, String)> = self.settings.iter().chain(&question.settings).cloned().collect();
        let asked = FormatQuestion {
            format: question.format,
            columns: &question.columns,
            settings: &settings,
            payload: Bytes::copy_from_slice(message.value.unwrap_or_default()),
        };
        match self.tables.ask_format(asked).await {
            Ok(block) => reader.take_block(block, message).map_err(|unread| match unread {
                Unread::Refused(error) => Refusal::of(error),
                unread => Refusal { text: unread.to_string(), row: 0, column: None, is_unanswered: false },
            }),
            Err(AskError::Refused(exception)) => Err(Refusal { text: exception.line, ..Refusal::of(error) }),
            Err(AskError::Unavailable(text)) => Err(Refusal { text, row: 0, column: None, is_unanswered: true }),
            Err(AskError::Nobody) => Err(Refusal::of(error)),
        }
    }
}

impl Refusal {
    fn of(error: MessageError) -> Refusal {
        Refusal { text: error.text, row: error.row, column: error.column, is_unanswered: false }
    }
}
