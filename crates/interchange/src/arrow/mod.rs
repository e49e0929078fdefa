//! Arrow's IPC formats: the stream, and the file, which is a stream between two marks with an index behind it.
//!
//! Each message is a FlatBuffers table and a body of buffers. Record batches become columns as they come; dictionaries are
//! kept by id and looked up. A file is read from the front too, and only if its index says the same.

mod batch;
mod dictionary;
mod flatbuffer;
mod message;
mod schema;
mod verify;

use windrow_columns::{BlockBuilder, NotParsed, NotParsedReason, Parsed, ReadPlan};

use crate::budget::Budget;
use crate::convert::Converter;
use crate::input::Input;
use crate::mapping::positions;
use batch::Batch;
use dictionary::Dictionaries;
use flatbuffer::Table;
use message::{next_message, Block, Message};
use schema::Field;

const FILE_START: &[u8] = b"ARROW1\0\0";
const FILE_END: &[u8] = b"ARROW1";

pub(crate) fn read_stream(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut reader = Reader::new(plan, payload.len())?;
    let mut input = Input::new(payload);
    let read = reader.read_messages(&mut input, payload.len(), None).and_then(|_| match input.is_empty() {
        true => Ok(()),
        // ClickHouse reads the first stream of several only.
        false => Err(NotParsedReason::Syntax),
    });
    reader.finish(read)
}

pub(crate) fn read_file(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut reader = Reader::new(plan, payload.len())?;
    let read = reader.read_file(payload);
    reader.finish(read)
}

struct Reader<'p> {
    plan: &'p ReadPlan,
    builder: BlockBuilder<'p>,
    converter: Converter<'p>,
    budget: Budget,
    dictionaries: Dictionaries,
}

/// Where the messages of a file lie.
#[derive(Default, PartialEq)]
struct MessageOffsets {
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
}

impl<'p> Reader<'p> {
    fn new(plan: &'p ReadPlan, payload_bytes: usize) -> Result<Self, NotParsed> {
        Ok(Reader {
            plan,
            builder: BlockBuilder::new(plan, payload_bytes)?,
            converter: Converter::new(plan),
            budget: Budget::new(),
            dictionaries: Dictionaries::default(),
        })
    }

    fn finish(self, read: Result<(), NotParsedReason>) -> Result<Parsed, NotParsed> {
        match read {
            Ok(()) => self.builder.finish(),
            Err(reason) => Err(self.builder.not_parsed(reason)),
        }
    }

    /// Messages up to the mark that ends them. `payload_bytes` is where the whole input ends, `expected` the only schema
    /// that is taken.
    fn read_messages(
        &mut self,
        input: &mut Input<'_>,
        payload_bytes: usize,
        expected: Option<&[Field]>,
    ) -> Result<MessageOffsets, NotParsedReason> {
        let schema_message = next_message(input).ok_or(NotParsedReason::Syntax)?;
        let Some(Message { table, header_kind: message::SCHEMA, body: [], .. }) = schema_message else {
            return Err(NotParsedReason::Syntax);
        };
        let fields = schema::fields(&table).ok_or(NotParsedReason::Value)?;
        if expected.is_some_and(|expected| expected != fields) {
            return Err(NotParsedReason::Syntax);
        }
        let positions = positions(fields.iter().map(|field| field.name.as_str()), self.plan)?;
        let mut offsets = MessageOffsets::default();
        loop {
            let offset = payload_bytes - input.rest().len();
            let Some(message) = next_message(input).ok_or(NotParsedReason::Syntax)? else { return Ok(offsets) };
            let block = Block::of(&message, offset);
            match message.header_kind {
                message::DICTIONARY => {
                    offsets.dictionaries.push(block);
                    self.dictionaries.read(&message, &fields, &mut self.budget)?;
                }
                message::BATCH => {
                    offsets.batches.push(block);
                    self.read_batch(&message, &fields, &positions)?;
                }
                _ => return Err(NotParsedReason::Syntax),
            }
        }
    }

    fn read_batch(
        &mut self,
        message: &Message<'_>,
        fields: &[Field],
        positions: &[Option<usize>],
    ) -> Result<(), NotParsedReason> {
        let mut batch = Batch::new(&message.table, message.body, &mut self.budget)?;
        let rows = batch.rows();
        for (field, position) in fields.iter().zip(positions) {
            let column = batch.column(field, rows, &self.dictionaries)?;
            if let Some(position) = position {
                self.converter.put(&mut self.builder, *position, &column)?;
            }
        }
        batch.finish()?;
        self.builder.end_rows(rows)
    }

    fn read_file(&mut self, payload: &[u8]) -> Result<(), NotParsedReason> {
        let broken = NotParsedReason::Syntax;
        let messages = payload.strip_prefix(FILE_START).and_then(|rest| rest.strip_suffix(FILE_END)).ok_or(broken)?;
        let (messages, footer_bytes) = messages.split_last_chunk::<4>().ok_or(broken)?;
        let footer_bytes = u32::from_le_bytes(*footer_bytes) as usize;
        let footer_start = messages.len().checked_sub(footer_bytes).ok_or(broken)?;
        let (messages, footer) = messages.split_at(footer_start);
        let footer = Table::root(footer).filter(verify::is_sound_footer).ok_or(broken)?;
        let mut input = Input::new(messages);
        // ClickHouse takes the schema from here.
        let schema = footer.table(1).flatten().and_then(|schema| schema::fields(&schema)).ok_or(broken)?;
        let offsets = self.read_messages(&mut input, FILE_START.len() + messages.len(), Some(&schema))?;
        let listed = MessageOffsets {
            dictionaries: message::blocks(&footer, 2).ok_or(broken)?,
            batches: message::blocks(&footer, 3).ok_or(broken)?,
        };
        match input.is_empty() && listed == offsets {
            true => Ok(()),
            false => Err(broken),
        }
    }
}
