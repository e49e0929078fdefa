//! The reader that turns message after message into rows.

use windrow_columns::{Block, BlockBuilder, NotParsedReason, Parsed, Present};

use crate::messages::answer;
use crate::messages::error::{MessageError, Unread};
use crate::messages::fields::{FieldError, FieldRows};
use crate::messages::message::Message;
use crate::messages::plan::MessagePlan;
use crate::messages::refusal::refused;
use crate::messages::run::Run;
use crate::messages::virtual_columns::VirtualRows;

/// A reader of one partition's messages, in their order. Each piece of work makes its own reader, which is cheap.
pub struct MessageReader<'p> {
    plan: &'p MessagePlan,
    topic: &'p str,
    partition: i32,
    fields: FieldRows<'p>,
    virtual_rows: Vec<VirtualRows<'p>>,
    span: Option<Span>,
    runs: Vec<Run>,
    /// Bytes of the runs that are closed.
    bytes: usize,
}

/// Offsets, timestamps and number of the messages in the open run.
struct Span {
    first_offset: i64,
    last_offset: i64,
    messages: u32,
    min_timestamp_ms: i64,
    max_timestamp_ms: i64,
}

impl<'p> MessageReader<'p> {
    pub fn new(plan: &'p MessagePlan, topic: &'p str, partition: i32) -> Self {
        let virtual_rows = plan.virtual_columns.iter().map(|column| column.rows()).collect();
        let fields = FieldRows::new(plan);
        MessageReader { plan, topic, partition, fields, virtual_rows, span: None, runs: Vec::new(), bytes: 0 }
    }

    /// Reads one message and returns its number of rows.
    ///
    /// # Errors
    /// Fails where the message can't be read, or its schema is not known yet. Nothing of the message stays then.
    #[inline]
    pub fn read(&mut self, message: &Message<'_>) -> Result<u32, Unread> {
        let Some(value) = message.value.filter(|value| !value.is_empty()) else { return Ok(0) };
        let rows = match self.fields.read(value) {
            Ok(rows) => rows,
            Err(error) => self.read_again(value, error)?,
        };
        if rows > 0 {
            self.passed(message, rows);
        }
        Ok(u32::try_from(rows).expect("a row takes a byte, and a message has no 4 GiB"))
    }

    /// Reads a message again after an error. A message with other columns than those before it can be read in
    /// a run of its own.
    #[cold]
    fn read_again(&mut self, value: &[u8], error: FieldError) -> Result<usize, Unread> {
        let outcome = match &error {
            FieldError::Refused(refused) if refused.reason == NotParsedReason::MixedDefaults && self.span.is_some() => {
                self.close();
                self.fields.read(value)
            }
            _ => Err(error),
        };
        outcome.map_err(|error| match error {
            FieldError::Refused(error) => refused(self.plan, value, error),
            FieldError::Schema(text) => Unread::Refused(MessageError { text, row: 1, column: None, certain: true }),
            FieldError::MissingSchema(id) => Unread::MissingSchema(id),
        })
    }

    /// Takes ClickHouse's answer for a message whose error wasn't certain: the columns of the plan's
    /// [`question`](MessagePlan::question). Returns its number of rows.
    ///
    /// # Errors
    /// Fails where the answer has another number of columns, or only some rows have a value for a column with
    /// a DEFAULT expression.
    pub fn take_block(&mut self, answer: Block, message: &Message<'_>) -> Result<u32, Unread> {
        let fields = answer::fields(self.plan, answer)?;
        let rows = fields.block.rows();
        if rows > 0 {
            self.close();
            self.passed(message, rows);
            let span = self.span.take().expect("the message has just passed");
            self.end_run(fields, span);
        }
        Ok(u32::try_from(rows).unwrap_or(u32::MAX))
    }

    /// Returns the bytes of memory that the rows take, those of closed runs included. A small message may
    /// become many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes + self.fields.bytes() + self.virtual_rows.iter().map(VirtualRows::bytes).sum::<usize>()
    }

    /// Returns the runs that were read, in the order of the messages.
    pub fn finish(mut self) -> Vec<Run> {
        self.close();
        self.runs
    }

    /// Counts a message whose rows were read, and adds the values of the virtual columns for each of these rows.
    fn passed(&mut self, message: &Message<'_>, rows: usize) {
        for column in &mut self.virtual_rows {
            column.push(self.topic.as_bytes(), self.partition, message, rows);
        }
        match &mut self.span {
            Some(span) => span.add(message),
            none => *none = Some(Span::of(message)),
        }
    }

    /// Ends the open run.
    fn close(&mut self) {
        if let Some(span) = self.span.take() {
            let fields = self.fields.take();
            self.end_run(fields, span);
        }
    }

    fn end_run(&mut self, fields: Parsed, span: Span) {
        let rows = fields.block.rows();
        let (mut order, mut present) = (Vec::new(), Present::default());
        for (position, field) in fields.present.iter().enumerate() {
            order.push((self.plan.field_columns[field], 0, position));
        }
        let mut parts = vec![fields.block];
        if let Some(plan) = &self.plan.virtual_plan {
            parts.push(virtual_block(plan, &mut self.virtual_rows, rows));
            let columns = self.plan.virtual_columns.iter().enumerate();
            order.extend(columns.map(|(position, column)| (column.index, 1, position)));
        }
        order.sort_unstable();
        order.iter().for_each(|(column, ..)| present.insert(*column));
        let block = Block::beside(parts, order.iter().map(|(_, part, position)| (*part, *position)));
        self.bytes += block.bytes();
        self.runs.push(span.run(block, present));
    }
}

fn virtual_block(plan: &windrow_columns::ReadPlan, columns: &mut [VirtualRows<'_>], rows: usize) -> Block {
    let mut put = || {
        let mut builder = BlockBuilder::new(plan, 0).ok()?;
        for (index, column) in columns.iter_mut().enumerate() {
            builder.put(index, column.take(), rows).ok()?;
        }
        builder.end_rows(rows).ok()?;
        Some(builder.finish().ok()?.block)
    };
    put().expect("virtual columns have the layout of their types and a value for every row")
}

impl Span {
    fn of(message: &Message<'_>) -> Self {
        let mut span = Span {
            first_offset: message.offset,
            last_offset: message.offset,
            messages: 0,
            min_timestamp_ms: i64::MAX,
            max_timestamp_ms: -1,
        };
        span.add(message);
        span
    }

    #[inline]
    fn add(&mut self, message: &Message<'_>) {
        self.last_offset = message.offset;
        self.messages += 1;
        if message.timestamp_ms >= 0 {
            self.min_timestamp_ms = self.min_timestamp_ms.min(message.timestamp_ms);
            self.max_timestamp_ms = self.max_timestamp_ms.max(message.timestamp_ms);
        }
    }

    fn run(self, block: Block, present: Present) -> Run {
        let has_timestamp = self.max_timestamp_ms >= 0;
        Run {
            rows: block.rows(),
            block,
            present,
            first_offset: self.first_offset,
            last_offset: self.last_offset,
            messages: self.messages,
            min_timestamp_ms: has_timestamp.then_some(self.min_timestamp_ms),
            max_timestamp_ms: has_timestamp.then_some(self.max_timestamp_ms),
        }
    }
}
