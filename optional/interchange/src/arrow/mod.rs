//! Arrow's IPC formats: the stream, and the file, which is a stream between two marks with an index after it.
//!
//! `arrow-ipc` decodes the bytes, after `check` has checked what they announce. A file is also read from the
//! front, and only if its index agrees.

mod check;
mod columns;
mod schema;

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{root_as_footer, Block, DictionaryBatch, Endianness, MessageHeader, MetadataVersion};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::take::take;
use windrow_columns::{BlockBuilder, NotParsed, NotParsedReason, Parsed, ReadPlan};

use crate::budget::{Budget, MAX_EXPANDED_BYTES};
use crate::convert::Converter;
use crate::mapping::positions;
use check::{Framed, Messages};

pub use check::{check_arrow_stream, ArrowFault};

const FILE_START: &[u8] = b"ARROW1\0\0";
/// The most bytes of padding after the start mark, where messages lie at multiples of 64 bytes.
const MAX_PADDING: usize = 56;
const FILE_END: &[u8] = b"ARROW1";

pub(crate) fn read_stream(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    Reader::new(plan, payload.len())?.run(|reader| reader.messages(payload, 0, None).map(drop))
}

pub(crate) fn read_file(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    Reader::new(plan, payload.len())?.run(|reader| reader.file(payload))
}

/// Reads a batch that is in memory already.
///
/// # Errors
/// Fails where a column or a value of the batch does not fit the plan with certainty.
pub fn read_record_batch_of(batch: &RecordBatch, plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    Reader::new(plan, batch.get_array_memory_size())?.run(|reader| {
        let positions = reader.positions(batch.schema_ref())?;
        schema::as_read(batch.schema_ref(), false).ok_or(NotParsedReason::Value)?;
        let columns: Result<Vec<_>, _> = batch.columns().iter().map(whole).collect();
        let batch = RecordBatch::try_new(batch.schema(), columns.map_err(|_| BROKEN)?).map_err(|_| BROKEN)?;
        reader.batch(&batch, &positions)
    })
}

/// Copies nested arrays: a slice of lists still has the elements of all rows, and the copy has only its own.
fn whole(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type().is_nested() {
        true => take(array, &UInt32Array::from_iter_values(0..array.len() as u32), None),
        false => Ok(array.clone()),
    }
}

const BROKEN: NotParsedReason = NotParsedReason::Syntax;

struct Reader<'p> {
    plan: &'p ReadPlan,
    builder: BlockBuilder<'p>,
    converter: Converter<'p>,
    budget: Budget,
}

/// The place of a message: its offset, the bytes of its metadata, and those of its body.
type MessageAt = (i64, i32, i64);

impl<'p> Reader<'p> {
    fn new(plan: &'p ReadPlan, payload_bytes: usize) -> Result<Self, NotParsed> {
        Ok(Reader {
            plan,
            builder: BlockBuilder::new(plan, payload_bytes)?,
            converter: Converter::new(plan),
            budget: Budget::new(),
        })
    }

    /// Runs a reader. The decoder has assertions for damage that no check sees; after such a panic everything
    /// is thrown away.
    fn run(mut self, read: impl FnOnce(&mut Self) -> Result<(), NotParsedReason>) -> Result<Parsed, NotParsed> {
        match catch_unwind(AssertUnwindSafe(|| read(&mut self))).unwrap_or(Err(BROKEN)) {
            Ok(()) => self.builder.finish(),
            Err(reason) => Err(self.builder.not_parsed(reason)),
        }
    }

    fn positions(&self, schema: &Schema) -> Result<Vec<Option<usize>>, NotParsedReason> {
        positions(schema.fields().iter().map(|field| field.name().as_str()), self.plan)
    }

    /// Reads all of a stream, which ends in its mark. `before` is its position in the payload, `expected` the
    /// only schema that is accepted. Returns the places of dictionaries and batches.
    fn messages(
        &mut self,
        stream: &[u8],
        before: usize,
        expected: Option<&Schema>,
    ) -> Result<[Vec<MessageAt>; 2], NotParsedReason> {
        let bytes = Buffer::from(stream);
        let mut messages = Messages::new(&bytes, MAX_EXPANDED_BYTES as u64);
        let mut next = || {
            messages.next().map_err(|fault| if fault == ArrowFault::TooLarge { NotParsedReason::Value } else { BROKEN })
        };
        let first = next()?.ok_or(BROKEN)?;
        let header = first.message.header_as_schema().filter(|_| first.body_bytes == 0).ok_or(BROKEN)?;
        let is_plain =
            header.endianness() == Endianness::Little && header.features().is_none_or(|some| some.is_empty());
        let schema = try_fb_to_schema(header).map_err(|_| NotParsedReason::Value)?;
        if expected.is_some_and(|expected| *expected != schema) {
            return Err(BROKEN);
        }
        let schema = schema::as_read(&schema, self.plan.settings().is_for_sql()).filter(|_| is_plain);
        let schema: SchemaRef = Arc::new(schema.ok_or(NotParsedReason::Value)?);
        let positions = self.positions(&schema)?;
        let (mut known, mut places) = (HashMap::new(), [Vec::new(), Vec::new()]);
        while let Some(framed) = next()? {
            let version = framed.message.version();
            if version != MetadataVersion::V4 && version != MetadataVersion::V5 {
                return Err(BROKEN);
            }
            let at = (before + framed.offset) as i64;
            let place = (at, framed.metadata_bytes as i32, framed.body_bytes as i64);
            let body = bytes.slice_with_length(framed.offset + framed.metadata_bytes, framed.body_bytes);
            match framed.message.header_type() {
                MessageHeader::DictionaryBatch => {
                    places[0].push(place);
                    dictionary(&framed, &body, &schema, &mut known)?;
                }
                MessageHeader::RecordBatch => {
                    places[1].push(place);
                    let header = framed.message.header_as_record_batch().ok_or(BROKEN)?;
                    let batch = read_record_batch(&body, header, schema.clone(), &known, None, &version);
                    self.batch(&batch.map_err(|_| BROKEN)?, &positions)?;
                }
                _ => return Err(BROKEN),
            }
        }
        // ClickHouse reads the first stream of several only.
        match messages.has_ended && messages.rest().is_empty() {
            true => Ok(places),
            false => Err(BROKEN),
        }
    }

    fn batch(&mut self, batch: &RecordBatch, positions: &[Option<usize>]) -> Result<(), NotParsedReason> {
        for ((array, field), position) in batch.columns().iter().zip(batch.schema_ref().fields()).zip(positions) {
            let column = columns::column(array, field, &mut self.budget)?;
            if let Some(position) = position {
                self.converter.put(&mut self.builder, *position, &column)?;
            }
        }
        self.builder.end_rows(batch.num_rows())
    }

    fn file(&mut self, payload: &[u8]) -> Result<(), NotParsedReason> {
        let messages = payload.strip_prefix(FILE_START).and_then(|rest| rest.strip_suffix(FILE_END)).ok_or(BROKEN)?;
        // Some writers begin messages at a multiple of more than eight bytes.
        let padding = messages.iter().take(MAX_PADDING).take_while(|byte| **byte == 0).count();
        let messages = &messages[padding..];
        let (messages, footer_bytes) = messages.split_last_chunk::<4>().ok_or(BROKEN)?;
        let footer_start = messages.len().checked_sub(u32::from_le_bytes(*footer_bytes) as usize).ok_or(BROKEN)?;
        let (messages, footer) = messages.split_at(footer_start);
        // Aligned, as the footer's reader wants it.
        let footer = Buffer::from(footer);
        let footer = root_as_footer(&footer).map_err(|_| BROKEN)?;
        // ClickHouse takes the schema from here.
        let schema = footer.schema().and_then(|schema| try_fb_to_schema(schema).ok()).ok_or(BROKEN)?;
        let places = self.messages(messages, FILE_START.len() + padding, Some(&schema))?;
        let place = |block: &Block| (block.offset(), block.metaDataLength(), block.bodyLength());
        let listed = [footer.dictionaries(), footer.recordBatches()]
            .map(|blocks| blocks.into_iter().flatten().map(place).collect::<Vec<_>>());
        if listed == places {
            Ok(())
        } else {
            Err(BROKEN)
        }
    }
}

/// Reads a dictionary. One that comes again under the same id, or adds to another, is left to ClickHouse.
fn dictionary(
    framed: &Framed<'_>,
    body: &Buffer,
    schema: &Schema,
    known: &mut HashMap<i64, ArrayRef>,
) -> Result<(), NotParsedReason> {
    let header: DictionaryBatch = framed.message.header_as_dictionary_batch().ok_or(BROKEN)?;
    if header.isDelta() || known.contains_key(&header.id()) {
        return Err(NotParsedReason::Value);
    }
    read_dictionary(body, header, schema, known, &framed.message.version()).map_err(|_| BROKEN)
}
