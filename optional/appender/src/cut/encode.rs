//! A cut as the body of a request: one Arrow IPC stream.

use arrow_array::RecordBatch;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_ipc::CompressionType;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;

use super::cutter::Cut;
use super::plain::{plain_batch, plain_schema};
use crate::source::SourceError;

/// The average size below which batches are joined before they are encoded: each would have a head of its own.
const SMALL_BYTES: u64 = 128 << 10;
/// The bytes that a stream has besides its rows, roughly, so that its memory is taken once.
const HEADS_BYTES: u64 = 16 << 10;

/// The compression of buffers within the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Lz4,
    Zstd,
}

/// An encoder that turns cuts of one source into bodies. It has no state: several threads may share it.
#[derive(Clone)]
pub struct Encoder {
    schema: SchemaRef,
    options: IpcWriteOptions,
}

impl Encoder {
    /// Makes an encoder for batches of this schema.
    ///
    /// # Errors
    /// Fails where a type is nested too deeply, or the compression is not supported.
    pub fn new(schema: &Schema, compression: Compression) -> Result<Encoder, SourceError> {
        let compression = match compression {
            Compression::None => None,
            Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
            Compression::Zstd => Some(CompressionType::ZSTD),
        };
        let options = IpcWriteOptions::default().try_with_compression(compression).map_err(SourceError::new)?;
        Ok(Encoder { schema: plain_schema(schema)?, options })
    }

    /// Returns the schema of the streams.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the cut as one Arrow IPC stream.
    ///
    /// # Errors
    /// Fails where a batch has other columns than the schema, or a value can't be cast to its plain type.
    pub fn encode(&self, cut: &Cut) -> Result<Bytes, SourceError> {
        let room = cut.bytes.saturating_add(cut.bytes / 16).saturating_add(HEADS_BYTES);
        let stream = Vec::with_capacity(usize::try_from(room).unwrap_or(0));
        let mut writer =
            StreamWriter::try_new_with_options(stream, &self.schema, self.options.clone()).map_err(SourceError::new)?;
        for batch in self.joined(cut)? {
            writer.write(&batch).map_err(SourceError::new)?;
        }
        Ok(Bytes::from(writer.into_inner().map_err(SourceError::new)?))
    }

    fn joined(&self, cut: &Cut) -> Result<Vec<RecordBatch>, SourceError> {
        let plain: Result<Vec<RecordBatch>, _> =
            cut.batches.iter().map(|batch| plain_batch(batch, &self.schema)).collect();
        let plain = plain?;
        if plain.len() < 2 || cut.bytes / plain.len() as u64 >= SMALL_BYTES {
            return Ok(plain);
        }
        concat_batches(&self.schema, &plain).map(|one| vec![one]).map_err(SourceError::new)
    }
}
