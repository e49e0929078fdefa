//! Arrow's own formats and Parquet, written by Arrow's library. Arrow is compressed with LZ4, as ClickHouse does it.

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::CompressionType;
use arrow_schema::{ArrowError, Schema, SchemaRef};

use crate::results::error::ResultError;
use crate::results::parquet::ParquetWriter;

pub(crate) enum ArrowWriter {
    Stream(StreamWriter<Vec<u8>>),
    File(FileWriter<Vec<u8>>),
    Parquet(Box<ParquetWriter>),
}

impl ArrowWriter {
    pub(crate) fn stream(schema: &Schema) -> Result<ArrowWriter, ResultError> {
        Ok(ArrowWriter::Stream(StreamWriter::try_new_with_options(Vec::new(), schema, options()?).map_err(failed)?))
    }

    pub(crate) fn file(schema: &Schema) -> Result<ArrowWriter, ResultError> {
        Ok(ArrowWriter::File(FileWriter::try_new_with_options(Vec::new(), schema, options()?).map_err(failed)?))
    }

    pub(crate) fn parquet(schema: &SchemaRef) -> Result<ArrowWriter, ResultError> {
        Ok(ArrowWriter::Parquet(Box::new(ParquetWriter::new(schema)?)))
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ResultError> {
        match self {
            ArrowWriter::Stream(writer) => writer.write(batch),
            ArrowWriter::File(writer) => writer.write(batch),
            ArrowWriter::Parquet(writer) => return writer.write(batch),
        }
        .map_err(failed)
    }

    pub(crate) fn finish(&mut self) -> Result<(), ResultError> {
        match self {
            ArrowWriter::Stream(writer) => writer.finish(),
            ArrowWriter::File(writer) => writer.finish(),
            ArrowWriter::Parquet(writer) => return writer.finish(),
        }
        .map_err(failed)
    }

    /// Moves the bytes that were written to `out`.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        out.append(match self {
            ArrowWriter::Stream(writer) => writer.get_mut(),
            ArrowWriter::File(writer) => writer.get_mut(),
            ArrowWriter::Parquet(writer) => writer.written(),
        });
    }
}

fn options() -> Result<IpcWriteOptions, ResultError> {
    IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).map_err(failed)
}

fn failed(error: ArrowError) -> ResultError {
    ResultError::Data(error.to_string())
}
