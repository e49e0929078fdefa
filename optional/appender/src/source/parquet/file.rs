//! One Parquet file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use crate::cut::plain_schema;
use crate::source::SourceError;

/// The size of a batch. A batch is decoded column by column: of this size its columns are still in the
/// processor's cache when they are cut and encoded.
const BATCH_BYTES: i64 = 2 << 20;
const MIN_BATCH_ROWS: i64 = 1 << 10;
const MAX_BATCH_ROWS: i64 = 1 << 17;

pub(super) struct ParquetFile {
    path: PathBuf,
    bytes: FileBytes,
    metadata: ArrowReaderMetadata,
    rows_per_batch: usize,
}

impl ParquetFile {
    pub(super) fn open(path: &Path) -> Result<ParquetFile, SourceError> {
        let in_file = |error: &dyn std::fmt::Display| SourceError::in_file(path, error);
        if path.as_os_str() == "-" {
            return Err(SourceError::new("Parquet can't be read from standard input: its index stands at its end"));
        }
        let file = File::open(path).map_err(|error| in_file(&error))?;
        let length = file.metadata().map_err(|error| in_file(&error))?.len();
        let bytes = FileBytes { file: Arc::new(file), length };
        let metadata = load(&bytes).map_err(|error| in_file(&error))?;
        let rows_per_batch = rows_per_batch(&metadata);
        Ok(ParquetFile { path: path.to_owned(), bytes, metadata, rows_per_batch })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    pub(super) fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Returns the bytes before compression; values that are dictionary-coded in the file take more in memory.
    pub(super) fn whole_bytes(&self) -> u64 {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.map(|group| group.total_byte_size().max(0).unsigned_abs()).fold(0, u64::saturating_add)
    }

    pub(super) fn read_group(&self, index: usize) -> Result<ParquetRecordBatchReader, SourceError> {
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), self.metadata.clone())
            .with_row_groups(vec![index])
            .with_batch_size(self.rows_per_batch)
            .build()
            .map_err(|error| SourceError::in_file(&self.path, error))
    }
}

/// Loads the metadata. Strings are decoded as plain ones right away, whatever types the program had that
/// wrote the file.
fn load(bytes: &FileBytes) -> ParquetResult<ArrowReaderMetadata> {
    let as_written = ArrowReaderMetadata::load(bytes, ArrowReaderOptions::new())?;
    let plain = plain_schema(as_written.schema()).map_err(|error| ParquetError::General(error.text))?;
    if plain.fields() == as_written.schema().fields() {
        return Ok(as_written);
    }
    let options = ArrowReaderOptions::new().with_schema(plain);
    // A schema that the reader can't decode to is converted later.
    Ok(ArrowReaderMetadata::try_new(as_written.metadata().clone(), options).unwrap_or(as_written))
}

/// Returns the rows of a batch. They depend on the file alone, since the cut depends on them.
fn rows_per_batch(metadata: &ArrowReaderMetadata) -> usize {
    let groups = metadata.metadata().row_groups();
    let rows = groups.iter().map(|group| group.num_rows().max(0)).fold(0, i64::saturating_add);
    let bytes = groups.iter().map(|group| group.total_byte_size().max(0)).fold(0, i64::saturating_add);
    let bytes_per_row = bytes / rows.max(1);
    (BATCH_BYTES / bytes_per_row.max(1)).clamp(MIN_BATCH_ROWS, MAX_BATCH_ROWS) as usize
}

/// A file that several threads read at once, each at its own place. Places that a damaged index invents are
/// refused before memory is taken for them.
#[derive(Clone)]
struct FileBytes {
    file: Arc<File>,
    length: u64,
}

impl Length for FileBytes {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for FileBytes {
    type T = BufReader<Reading>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::with_capacity(64 << 10, Reading { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF("the file's index points behind its end".to_owned()));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A reader that begins at a place in the file.
struct Reading {
    file: Arc<File>,
    at: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}
