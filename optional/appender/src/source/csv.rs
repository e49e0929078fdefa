//! A reader of CSV files: a line of names, then rows. Types are those of the table's columns.
//!
//! An empty field is NULL where the column may be NULL, an empty string in a column of strings, and an error elsewhere.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_csv::reader::{BufReader as CsvReader, Format, ReaderBuilder};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::clickhouse_types::read_as;
use super::files::Input;
use super::{Column, Source, SourceError};

const MAX_HEADER_BYTES: u64 = 4 << 20;
const ROWS_PER_BATCH: usize = 16_384;
const READ_BYTES: usize = 1 << 20;

type Reader = BufReader<Box<dyn Read + Send>>;

pub(super) struct CsvFile {
    path: PathBuf,
    schema: SchemaRef,
    rows: CsvReader<Reader>,
    /// The number of lines before the next batch.
    lines: u64,
    header_lines: u64,
}

impl CsvFile {
    pub(super) fn open(input: Input, columns: &[Column], delimiter: u8) -> Result<CsvFile, SourceError> {
        let path = input.path;
        let unpacked = unpacked(&path, input.reader).map_err(|error| SourceError::in_file(&path, error))?;
        let mut reader = BufReader::with_capacity(READ_BYTES, unpacked);
        let header = read_header(&mut reader).map_err(|error| SourceError::in_file(&path, error))?;
        let header_lines = header.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let schema = Arc::new(schema(&path, &header, columns, delimiter)?);
        // Whether a field may be empty is asked below, where the answer has a line.
        let lenient = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let lenient = Arc::new(Schema::new(lenient.collect::<Vec<Field>>()));
        let rows =
            ReaderBuilder::new(lenient).with_header(false).with_batch_size(ROWS_PER_BATCH).with_delimiter(delimiter);
        let rows = rows.build_buffered(reader).map_err(|error| SourceError::in_file(&path, error))?;
        Ok(CsvFile { path, schema, rows, lines: header_lines, header_lines })
    }

    fn checked(&self, index: usize, column: &ArrayRef) -> Result<ArrayRef, SourceError> {
        let field = self.schema.field(index);
        if field.is_nullable() || column.null_count() == 0 {
            return Ok(column.clone());
        }
        if field.data_type() == &DataType::Utf8 {
            // What is NULL has no characters, so without the NULLs it is empty.
            let (offsets, characters, _) = column.as_string::<i32>().clone().into_parts();
            return Ok(Arc::new(StringArray::new(offsets, characters, None)));
        }
        let row = (0..column.len()).find(|&row| column.is_null(row)).unwrap_or(0) as u64;
        let text = format!("column '{}' can't be NULL, and its field is empty", field.name());
        Err(SourceError::in_line(&self.path, self.lines + row + 1, text))
    }

    /// Makes an error with the line of the file. The reader counts lines from the first that it sees: from 1
    /// where a line is not whole, from 0 where a value is wrong.
    fn explained(&self, error: &arrow_schema::ArrowError) -> SourceError {
        let text = error.to_string();
        let text = text.split_once("error: ").map_or(text.as_str(), |(_, text)| text);
        let line = [("at line ", 1), ("for line ", 0)].iter().find_map(|(before, first)| {
            let (_, after) = text.split_once(before)?;
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            after[..digits].parse::<u64>().ok()?.checked_add(*first)
        });
        match line {
            Some(line) => SourceError::in_line(&self.path, line.saturating_add(self.header_lines), without_line(text)),
            None => SourceError::in_file(&self.path, text),
        }
    }
}

impl Source for CsvFile {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        let batch = match self.rows.next() {
            None => return Ok(None),
            Some(Ok(batch)) => batch,
            Some(Err(error)) => return Err(self.explained(&error)),
        };
        let columns: Result<Vec<ArrayRef>, _> =
            batch.columns().iter().enumerate().map(|(index, column)| self.checked(index, column)).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns?)
            .map_err(|error| SourceError::in_file(&self.path, error))?;
        self.lines += batch.num_rows() as u64;
        Ok(Some(batch))
    }
}

/// Returns the reader's words without its own count of lines, which begins behind the header.
fn without_line(text: &str) -> String {
    let Some(at) = text.find("at line ").or_else(|| text.find("for line ")) else { return text.to_owned() };
    let rest = text[at..].trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches([',', '.', ':']);
    format!("{}:{rest}", text[..at].trim_end())
}

fn unpacked(path: &Path, packed: Box<dyn Read + Send>) -> std::io::Result<Box<dyn Read + Send>> {
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Some("zst") => Box::new(zstd::stream::read::Decoder::new(packed)?),
        _ => packed,
    })
}

/// Reads the first line; a line break within quotes doesn't end it.
fn read_header(reader: &mut Reader) -> std::io::Result<Vec<u8>> {
    let mut header = Vec::new();
    let mut limited = reader.take(MAX_HEADER_BYTES);
    while limited.read_until(b'\n', &mut header)? > 0 {
        if header.iter().filter(|&&byte| byte == b'"').count() % 2 == 0 {
            break;
        }
    }
    let mark = b"\xef\xbb\xbf";
    if header.starts_with(mark) {
        header.drain(..mark.len());
    }
    Ok(header)
}

/// Returns the columns in the file's order, in the table's types.
fn schema(path: &Path, header: &[u8], columns: &[Column], delimiter: u8) -> Result<Schema, SourceError> {
    let (names, _) = Format::default()
        .with_header(true)
        .with_delimiter(delimiter)
        .infer_schema(header, Some(0))
        .map_err(|error| SourceError::in_line(path, 1, error))?;
    if names.fields().is_empty() {
        return Err(SourceError::in_file(path, "it is empty: a CSV file begins with the names of its columns"));
    }
    let field = |named: &Arc<Field>| {
        let column = columns.iter().find(|column| &column.name == named.name());
        let unknown = || SourceError::in_line(path, 1, format!("the table has no column '{}'", named.name()));
        let read = read_as(&column.ok_or_else(unknown)?.data_type);
        Ok(Field::new(named.name(), read.data_type, read.nullable))
    };
    Ok(Schema::new(names.fields().iter().map(field).collect::<Result<Vec<Field>, _>>()?))
}
