//! The writer of one result, from its first batch to its end.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::results::arrow::ArrowWriter;
use crate::results::columns::Columns;
use crate::results::error::ResultError;
use crate::results::format::Format;
use crate::results::json;
use crate::results::native;
use crate::results::row_binary;
use crate::results::separated::{self, Dialect};
use crate::results::settings::OutputSettings;

/// Rows in a block, roughly. Batches are joined, since databases return smaller ones than clients like to read.
const BLOCK_ROWS: usize = 65_536;
const BLOCK_BYTES: usize = 4 << 20;

/// The statistics at the end of a JSON document.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    pub elapsed_seconds: f64,
    pub rows_read: u64,
    pub bytes_read: u64,
}

/// The writer of one result.
pub struct Encoder {
    format: Format,
    columns: Columns,
    schema: SchemaRef,
    settings: OutputSettings,
    rows: u64,
    arrow: Option<ArrowWriter>,
    /// Batches that wait to become a block.
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    waiting_bytes: usize,
}

impl Encoder {
    /// Makes the encoder of a result. `first` is its first batch, if it has one; it has to be given to
    /// [`batch`](Self::batch) as well.
    ///
    /// # Errors
    /// Fails where a column has a type that the format has nothing for.
    pub fn new(
        format: Format,
        schema: SchemaRef,
        first: Option<&RecordBatch>,
        settings: OutputSettings,
    ) -> Result<Encoder, ResultError> {
        let arrow = match format {
            Format::ArrowStream => Some(ArrowWriter::stream(&schema)?),
            Format::Arrow => Some(ArrowWriter::file(&schema)?),
            Format::Parquet => Some(ArrowWriter::parquet(&schema)?),
            _ => None,
        };
        // Arrow's own formats have all of Arrow's types, Parquet has its own, and nothing is written for Null.
        let columns = match format {
            Format::Arrow | Format::ArrowStream | Format::Null | Format::Parquet => Columns::none(),
            _ => Columns::of(&schema, first)?,
        };
        Ok(Encoder {
            format,
            columns,
            schema,
            settings,
            rows: 0,
            arrow,
            waiting: Vec::new(),
            waiting_rows: 0,
            waiting_bytes: 0,
        })
    }

    /// Writes the beginning of the result, before its rows.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        match self.format {
            Format::Csv { names, types } => separated::begin(out, &self.columns, Dialect::Csv, names, types),
            Format::TabSeparated { names, types } => separated::begin(out, &self.columns, Dialect::Tabs, names, types),
            Format::TabSeparatedRaw { names, types } => {
                separated::begin(out, &self.columns, Dialect::TabsRaw, names, types);
            }
            Format::JsonCompactEachRow { names, types } => {
                json::compact_heading(out, &self.columns, names, types, &self.settings);
            }
            Format::Json | Format::JsonCompact => json::begin(out, &self.columns, &self.settings),
            Format::RowBinary { names, types } => row_binary::begin(out, &self.columns, names, types),
            Format::Arrow | Format::ArrowStream | Format::Parquet => self.take_arrow(out),
            Format::JsonEachRow | Format::Values | Format::Native | Format::Null => {}
        }
    }

    /// Writes a batch's rows, or keeps them for the block that they become part of.
    ///
    /// # Errors
    /// Fails where the batch is not of the announced schema, or the library that encodes it fails.
    pub fn batch(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ResultError> {
        let rows_before = self.rows;
        self.rows += batch.num_rows() as u64;
        let (columns, settings, first) = (&self.columns, &self.settings, rows_before == 0);
        match self.format {
            _ if batch.num_rows() == 0 => Ok(()),
            Format::JsonEachRow => json::each_row(out, columns, batch, settings),
            Format::JsonCompactEachRow { .. } => json::compact_each_row(out, columns, batch, settings),
            Format::Json => json::rows(out, columns, batch, settings, false, first),
            Format::JsonCompact => json::rows(out, columns, batch, settings, true, first),
            Format::Csv { .. } => separated::batch(out, columns, batch, Dialect::Csv),
            Format::TabSeparated { .. } => separated::batch(out, columns, batch, Dialect::Tabs),
            Format::TabSeparatedRaw { .. } => separated::batch(out, columns, batch, Dialect::TabsRaw),
            Format::Values => separated::values(out, columns, batch, first),
            Format::RowBinary { .. } => row_binary::batch(out, columns, batch),
            Format::Native | Format::Arrow | Format::ArrowStream | Format::Parquet => self.gather(batch, out),
            Format::Null => Ok(()),
        }
    }

    fn gather(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ResultError> {
        self.waiting_rows += batch.num_rows();
        self.waiting_bytes += batch.get_array_memory_size();
        self.waiting.push(batch.clone());
        match self.waiting_rows >= BLOCK_ROWS || self.waiting_bytes >= BLOCK_BYTES {
            true => self.write_block(out),
            false => Ok(()),
        }
    }

    fn write_block(&mut self, out: &mut Vec<u8>) -> Result<(), ResultError> {
        let waiting = std::mem::take(&mut self.waiting);
        (self.waiting_rows, self.waiting_bytes) = (0, 0);
        let block = match &waiting[..] {
            [] => return Ok(()),
            [single] => single.clone(),
            several => arrow_select::concat::concat_batches(&self.schema, several)
                .map_err(|error| ResultError::Data(error.to_string()))?,
        };
        match &mut self.arrow {
            None => native::batch(out, &self.columns, &block, self.settings.native_revision),
            Some(writer) => {
                writer.write(&block)?;
                self.take_arrow(out);
                Ok(())
            }
        }
    }

    /// Writes the rows that wait, and the end of the result.
    ///
    /// # Errors
    /// Fails where rows that wait are not of the announced schema, or the library that encodes them fails.
    pub fn finish(&mut self, statistics: &Statistics, out: &mut Vec<u8>) -> Result<(), ResultError> {
        self.write_block(out)?;
        match self.format {
            Format::Json | Format::JsonCompact => json::finish(out, self.rows, statistics),
            Format::Arrow | Format::ArrowStream | Format::Parquet => {
                if let Some(writer) = &mut self.arrow {
                    writer.finish()?;
                }
                self.take_arrow(out);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns how many rows were given.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn take_arrow(&mut self, out: &mut Vec<u8>) {
        if let Some(writer) = &mut self.arrow {
            writer.take(out);
        }
    }
}
