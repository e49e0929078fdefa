//! The files that are read, and their format: by their names, or by what the user says.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::arrow::ArrowFile;
use super::columns::{for_all, Order};
use super::csv::CsvFile;
use super::guarded::Guarded;
use super::parquet::ParquetSource;
use super::{Column, Source, SourceError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Parquet, read by row groups, on several threads.
    Parquet,
    /// CSV with a line of names; `.gz` and `.zst` are unpacked on the way.
    Csv,
    /// Arrow's IPC, as a file or as a stream.
    Arrow,
}

impl FileFormat {
    /// Returns the format by the name's extension: `.parquet`, `.csv`, `.csv.gz`, `.csv.zst`, `.arrow`,
    /// `.arrows`, `.feather`, `.ipc`.
    pub fn of(path: &Path) -> Option<FileFormat> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        name.rsplit_once('.').and_then(|(_, extension)| extension.parse().ok())
    }
}

impl FromStr for FileFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<FileFormat, String> {
        match name.to_ascii_lowercase().as_str() {
            "parquet" => Ok(FileFormat::Parquet),
            "csv" => Ok(FileFormat::Csv),
            "arrow" | "arrows" | "feather" | "ipc" => Ok(FileFormat::Arrow),
            _ => Err(format!("'{name}' is no format of files that are appended; there are parquet, csv and arrow")),
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileFormat::Parquet => "parquet",
            FileFormat::Csv => "csv",
            FileFormat::Arrow => "arrow",
        })
    }
}

#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// The format of all files. `None`: each file's name tells its format; standard input has no name.
    pub format: Option<FileFormat>,
    /// The table's columns, whose types a CSV file's texts are read as. The other formats know their types.
    pub columns: Option<Vec<Column>>,
    /// The character between the fields of a CSV file, if not a comma.
    pub delimiter: Option<u8>,
}

/// Says whether these files can't be read without knowing the table's columns.
///
/// # Errors
/// Fails where no file is given, a name tells no format, or the files' formats differ.
pub fn needs_columns(paths: &[PathBuf], format: Option<FileFormat>) -> Result<bool, SourceError> {
    Ok(common_format(paths, format)? == FileFormat::Csv)
}

/// Opens all of the files, one after the other, as one source; they must be of one format and have the same
/// columns. `-` is standard input.
///
/// # Errors
/// Fails where the files have no common format, or the first file (of Parquet, any file) can't be read.
pub fn open_files(paths: &[PathBuf], options: &FileOptions) -> Result<Box<dyn Source>, SourceError> {
    let format = common_format(paths, options.format)?;
    if format == FileFormat::Parquet {
        return Ok(Box::new(Guarded::new(ParquetSource::open(paths)?)));
    }
    let files = Sequence::open(paths.to_vec(), format, options.clone())?;
    Ok(Box::new(Guarded::new(files)))
}

pub(super) fn common_format(paths: &[PathBuf], format: Option<FileFormat>) -> Result<FileFormat, SourceError> {
    let Some(first) = paths.first() else { return Err(SourceError::new("there is no file to append")) };
    if let Some(format) = format {
        return Ok(format);
    }
    let of = |path: &Path| {
        FileFormat::of(path).ok_or_else(|| SourceError::in_file(path, "its name tells no format; say which it has"))
    };
    let format = of(first)?;
    for path in paths {
        if of(path)? != format {
            return Err(SourceError::in_file(path, format!("is no {format} file, as {} is", first.display())));
        }
    }
    Ok(format)
}

/// The input that is read: a file, or standard input.
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) reader: Box<dyn Read + Send>,
}

impl Input {
    pub(super) fn open(path: &Path) -> Result<Input, SourceError> {
        let reader: Box<dyn Read + Send> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(std::fs::File::open(path).map_err(|error| SourceError::in_file(path, error))?),
        };
        Ok(Input { path: path.to_owned(), reader })
    }
}

/// Files that are read from their beginnings to their ends, each when its turn has come.
struct Sequence {
    schema: SchemaRef,
    format: FileFormat,
    options: FileOptions,
    current: Box<dyn Source>,
    order: Order,
    rest: std::vec::IntoIter<PathBuf>,
    whole_bytes: Option<u64>,
}

impl Sequence {
    fn open(paths: Vec<PathBuf>, format: FileFormat, options: FileOptions) -> Result<Sequence, SourceError> {
        let files = paths.len();
        let whole_bytes = paths.iter().map(|path| unpacked_bytes(path)).sum();
        let mut rest = paths.into_iter();
        let first = rest.next().ok_or_else(|| SourceError::new("there is no file to append"))?;
        let current = open_one(&first, format, &options)?;
        let schema = for_all(&current.schema(), files);
        Ok(Sequence { schema, format, options, current, order: Order::default(), rest, whole_bytes })
    }
}

impl Source for Sequence {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        loop {
            if let Some(batch) = self.current.next_batch()? {
                return self.order.apply(batch).map(Some);
            }
            let Some(path) = self.rest.next() else { return Ok(None) };
            self.current = open_one(&path, self.format, &self.options)?;
            self.order = Order::of(&path, &self.schema, &self.current.schema())?;
        }
    }

    fn whole_bytes(&self) -> Option<u64> {
        self.whole_bytes
    }
}

fn open_one(path: &Path, format: FileFormat, options: &FileOptions) -> Result<Box<dyn Source>, SourceError> {
    let input = Input::open(path)?;
    match (format, &options.columns) {
        (FileFormat::Arrow, _) => Ok(Box::new(ArrowFile::open(input)?)),
        (FileFormat::Csv, Some(columns)) => {
            Ok(Box::new(CsvFile::open(input, columns, options.delimiter.unwrap_or(b','))?))
        }
        (FileFormat::Csv, None) => Err(SourceError::in_file(path, "CSV is read by the types of the table's columns")),
        (FileFormat::Parquet, _) => Err(SourceError::in_file(path, "Parquet is not read from its beginning on")),
    }
}

/// Returns the file's size. Returns `None` for an input that is no file, or is packed: its size says nothing
/// of how large it is.
fn unpacked_bytes(path: &Path) -> Option<u64> {
    let packed = path.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
    let facts = std::fs::metadata(path).ok().filter(|facts| facts.is_file() && !packed)?;
    Some(facts.len())
}
