//! A reader of Arrow's IPC, file or stream: a file is a stream with a frame around it, and is read as one.

use std::collections::VecDeque;
use std::io::Read;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::SchemaRef;

use super::files::Input;
use super::{Source, SourceError};

const CHUNK_BYTES: usize = 4 << 20;
/// The bytes that a file begins with. A stream follows, behind as much padding as its writer likes.
const FILE_MAGIC: &[u8] = b"ARROW1\0\0";
const PADDING: &[u8] = &[0; 8];

pub(super) struct ArrowFile {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    decoder: StreamDecoder,
    schema: SchemaRef,
    ready: VecDeque<RecordBatch>,
    ended: bool,
    is_file: bool,
}

impl ArrowFile {
    pub(super) fn open(input: Input) -> Result<ArrowFile, SourceError> {
        let mut file = ArrowFile {
            path: input.path,
            reader: input.reader,
            decoder: StreamDecoder::new(),
            schema: SchemaRef::new(arrow_schema::Schema::empty()),
            ready: VecDeque::new(),
            ended: false,
            is_file: false,
        };
        let mut first = file.chunk(FILE_MAGIC.len())?;
        file.is_file = first == FILE_MAGIC;
        while file.is_file && !file.ended && (first == FILE_MAGIC || first == PADDING) {
            first = file.chunk(PADDING.len())?;
        }
        super::guarded::guarded(|| file.feed(first))?;
        while file.decoder.schema().is_none() && !file.ended {
            let chunk = file.chunk(CHUNK_BYTES)?;
            super::guarded::guarded(|| file.feed(chunk))?;
        }
        let schema = file.decoder.schema();
        file.schema = schema.ok_or_else(|| SourceError::in_file(&file.path, "it is no Arrow file or stream"))?;
        Ok(file)
    }

    fn chunk(&mut self, bytes: usize) -> Result<Vec<u8>, SourceError> {
        let mut chunk = Vec::with_capacity(bytes);
        let read = (&mut self.reader).take(bytes as u64).read_to_end(&mut chunk);
        read.map_err(|error| SourceError::in_file(&self.path, error))?;
        self.ended = chunk.len() < bytes;
        Ok(chunk)
    }

    fn feed(&mut self, chunk: Vec<u8>) -> Result<(), SourceError> {
        let damaged = |error| SourceError::in_file(&self.path, error);
        let mut rest = Buffer::from_vec(chunk);
        while !rest.is_empty() {
            match self.decoder.decode(&mut rest) {
                Ok(Some(batch)) => self.ready.push_back(batch),
                Ok(None) => break,
                // Behind the end of the stream a file has its index, which is not needed.
                Err(_) if self.is_file && self.decoder.finish().is_ok() => {
                    self.ended = true;
                    return Ok(());
                }
                Err(error) => return Err(damaged(error)),
            }
        }
        match self.ended {
            true => self.decoder.finish().map_err(damaged),
            false => Ok(()),
        }
    }
}

impl Source for ArrowFile {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            let chunk = self.chunk(CHUNK_BYTES)?;
            self.feed(chunk)?;
        }
    }
}
