//! Arrow's own formats, written by Arrow's library: with LZ4, as ClickHouse compresses them.

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::CompressionType;
use arrow_schema::{ArrowError, Schema};

use crate::error::ResultError;

pub(crate) enum ArrowWriter {
    Stream(StreamWriter<Vec<u8>>),
    File(FileWriter<Vec<u8>>),
}

impl ArrowWriter {
    pub(crate) fn stream(schema: &Schema) -> Result<ArrowWriter, ResultError> {
        Ok(ArrowWriter::Stream(StreamWriter::try_new_with_options(Vec::new(), schema, options()?).map_err(failed)?))
    }

    pub(crate) fn file(schema: &Schema) -> Result<ArrowWriter, ResultError> {
        Ok(ArrowWriter::File(FileWriter::try_new_with_options(Vec::new(), schema, options()?).map_err(failed)?))
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ResultError> {
        match self {
            ArrowWriter::Stream(writer) => writer.write(batch),
            ArrowWriter::File(writer) => writer.write(batch),
        }
        .map_err(failed)
    }

    pub(crate) fn finish(&mut self) -> Result<(), ResultError> {
        match self {
            ArrowWriter::Stream(writer) => writer.finish(),
            ArrowWriter::File(writer) => writer.finish(),
        }
        .map_err(failed)
    }

    /// Moves what was written to `out`.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        out.append(match self {
            ArrowWriter::Stream(writer) => writer.get_mut(),
            ArrowWriter::File(writer) => writer.get_mut(),
        });
    }
}

fn options() -> Result<IpcWriteOptions, ResultError> {
    IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).map_err(failed)
}

fn failed(error: ArrowError) -> ResultError {
    ResultError::Data(error.to_string())
}
