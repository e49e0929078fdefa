//! Files from outside: good ones are read row for row in order, bad ones are an error with the file's name.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use windrow_appender::{fingerprint, needs_columns, open_files, Column, FileFormat, FileOptions, Source, SourceError};

/// A folder of one test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("windrow-appender-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rows(from: i64, to: i64) -> RecordBatch {
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    (from..to).for_each(|n| words.append_value(format!("word {}", n % 7)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    let halves: ArrayRef =
        Arc::new(Float64Array::from_iter((from..to).map(|n| (n % 3 != 0).then_some(n as f64 / 2.0))));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((from..to).map(|n| format!("text of {n}"))));
    let words: ArrayRef = Arc::new(words.finish());
    RecordBatch::try_from_iter_with_nullable([
        ("n", numbers, false),
        ("half", halves, true),
        ("text", texts, false),
        ("word", words, true),
    ])
    .unwrap()
}

fn write_parquet(path: &Path, batch: &RecordBatch, rows_per_group: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows_per_group)).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn arrow_stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn arrow_file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn read(paths: &[PathBuf], options: &FileOptions) -> Result<RecordBatch, SourceError> {
    let mut source = open_files(paths, options)?;
    let schema: SchemaRef = source.schema();
    let mut batches = Vec::new();
    while let Some(batch) = source.next_batch()? {
        batches.push(batch);
    }
    assert!(source.next_batch()?.is_none(), "the end stays the end");
    Ok(concat_batches(&schema, &batches).unwrap())
}

/// Checks that two batches have the same rows, whatever they are coded as.
fn assert_same(read: &RecordBatch, written: &RecordBatch) {
    assert_eq!(read.num_rows(), written.num_rows());
    for (column, expected) in read.columns().iter().zip(written.columns()) {
        assert_eq!(&arrow_cast::cast(column, &arrow_type(expected)).unwrap(), &plain(expected));
    }
}

fn arrow_type(column: &ArrayRef) -> arrow_schema::DataType {
    match column.data_type() {
        arrow_schema::DataType::Dictionary(_, values) => values.as_ref().clone(),
        other => other.clone(),
    }
}

fn plain(column: &ArrayRef) -> ArrayRef {
    arrow_cast::cast(column, &arrow_type(column)).unwrap()
}

fn columns() -> Option<Vec<Column>> {
    let column = |(name, data_type): (&str, &str)| Column { name: name.into(), data_type: data_type.into() };
    Some([("n", "Int64"), ("half", "Nullable(Float64)"), ("text", "String"), ("day", "Date")].map(column).into())
}

fn csv(text: &str) -> Result<RecordBatch, SourceError> {
    let folder = Folder::new(&format!("csv-{:x}", text.len() * 1000 + text.bytes().map(usize::from).sum::<usize>()));
    read(
        &[folder.write("a.csv", text.as_bytes())],
        &FileOptions { format: None, columns: columns(), ..FileOptions::default() },
    )
}

#[test]
fn parquet_files_are_read_in_order_whatever_their_row_groups() {
    let folder = Folder::new("parquet");
    for rows_per_group in [1000, 7000, 100_000] {
        let paths = [folder.0.join("a.parquet"), folder.0.join("b.parquet")];
        write_parquet(&paths[0], &rows(0, 60_000), rows_per_group);
        write_parquet(&paths[1], &rows(60_000, 90_000), rows_per_group);
        assert_same(&read(&paths, &FileOptions::default()).unwrap(), &rows(0, 90_000));
        // Who opens it again cuts it in the same places.
        let sizes = |mut source: Box<dyn Source>| -> Vec<usize> {
            std::iter::from_fn(|| source.next_batch().unwrap()).map(|batch| batch.num_rows()).collect()
        };
        let open = || open_files(&paths, &FileOptions::default()).unwrap();
        assert_eq!(sizes(open()), sizes(open()));
    }
}

#[test]
fn a_source_may_be_left_before_its_end() {
    let folder = Folder::new("left");
    let path = folder.0.join("a.parquet");
    write_parquet(&path, &rows(0, 50_000), 1000);
    let mut source = open_files(&[path], &FileOptions::default()).unwrap();
    assert!(source.next_batch().unwrap().is_some());
}

#[test]
fn arrow_files_and_streams_are_told_apart_by_what_is_in_them() {
    let folder = Folder::new("arrow");
    let batches = [rows(0, 5000), rows(5000, 5001), rows(5001, 20_000)];
    let whole = rows(0, 20_000);
    let plain: Vec<RecordBatch> = batches.iter().map(|batch| batch.project(&[0, 1, 2]).unwrap()).collect();
    for (name, bytes) in [("a.arrow", arrow_file(&plain)), ("a.arrows", arrow_stream(&plain))] {
        let read = read(&[folder.write(name, &bytes)], &FileOptions::default()).unwrap();
        assert_same(&read, &whole.project(&[0, 1, 2]).unwrap());
    }
    let path = folder.write("d.arrows", &arrow_stream(&batches));
    let mut source = open_files(&[path], &FileOptions::default()).unwrap();
    let mut at = 0;
    while let Some(batch) = source.next_batch().unwrap() {
        assert_same(&batch, &rows(at, at + batch.num_rows() as i64));
        at += batch.num_rows() as i64;
    }
    assert_eq!(at, 20_000);
}

#[test]
fn csv_is_read_by_the_tables_types_in_the_files_order_of_columns() {
    let read = csv("half,n,text\r\n1.5,1,\"a,\"\"b\"\"\nc\"\r\n,2,\r\n").unwrap();
    let expected = RecordBatch::try_from_iter_with_nullable([
        ("half", Arc::new(Float64Array::from(vec![Some(1.5), None])) as ArrayRef, true),
        ("n", Arc::new(Int64Array::from(vec![1, 2])), false),
        ("text", Arc::new(StringArray::from(vec!["a,\"b\"\nc", ""])), false),
    ]);
    assert_eq!(read, expected.unwrap());
    assert_eq!(csv("\u{feff}n\n7\n").unwrap().num_rows(), 1);
    assert_eq!(csv("n\n").unwrap().num_rows(), 0);
}

#[test]
fn errors_in_csv_name_file_and_line() {
    for (text, line, part) in [
        ("n,text\n1,a\nx,b\n", Some(3), "'x'"),
        ("n,text\n1,a\n2\n", Some(3), "expected 2"),
        ("n,text\n,a\n", Some(2), "column 'n' can't be NULL"),
        ("n,other\n1,a\n", Some(1), "the table has no column 'other'"),
        ("day\n2024-01-01\n2024-13-01\n", Some(3), "2024-13-01"),
        ("", None, "it is empty"),
    ] {
        let error = csv(text).unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error}");
        assert!(error.text.contains(part), "{text:?}: {error}");
        assert!(error.file.is_some(), "{text:?}: {error}");
    }
    let far = format!("n\n{}x\n", "1\n".repeat(40_000));
    assert_eq!(csv(&far).unwrap_err().line, Some(40_002));
}

#[test]
fn fields_may_stand_between_other_delimiters() {
    let folder = Folder::new("delimiter");
    for (delimiter, text) in [(b';', "text;n\n\"a;b\";1\nc,d;2\n"), (b'\t', "text\tn\na;b\t1\nc,d\t2\n")] {
        let options = FileOptions { columns: columns(), delimiter: Some(delimiter), ..FileOptions::default() };
        let read = read(&[folder.write("a.csv", text.as_bytes())], &options).unwrap();
        assert_eq!(read.column(0).as_ref(), &StringArray::from(vec!["a;b", "c,d"]));
        assert_eq!(read.column(1).as_ref(), &Int64Array::from(vec![1, 2]));
    }
}

#[test]
fn packed_csv_is_unpacked() {
    let folder = Folder::new("packed");
    let text = "n\n".to_owned() + &(0..10_000).map(|n| format!("{n}\n")).collect::<String>();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let zstd = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
    for (name, bytes) in [("a.csv.gz", gzip.finish().unwrap()), ("a.csv.zst", zstd)] {
        let path = folder.write(name, &bytes);
        let options = FileOptions { format: None, columns: columns(), ..FileOptions::default() };
        assert_eq!(read(std::slice::from_ref(&path), &options).unwrap().num_rows(), 10_000, "{name}");
        let cut = folder.write(name, &bytes[..bytes.len() / 2]);
        assert!(read(&[cut], &options).is_err(), "{name}");
    }
}

#[test]
fn files_must_fit_each_other_and_have_a_format() {
    let folder = Folder::new("fit");
    let (one, other) = (folder.0.join("a.parquet"), folder.0.join("b.parquet"));
    write_parquet(&one, &rows(0, 10), 10);
    write_parquet(&other, &rows(0, 10).project(&[0]).unwrap(), 10);
    let error = read(&[one.clone(), other.clone()], &FileOptions::default()).unwrap_err();
    assert_eq!(error.file.as_deref(), Some(other.as_path()));
    assert!(open_files(&[], &FileOptions::default()).is_err());
    assert!(open_files(&[folder.0.join("a.txt")], &FileOptions::default()).is_err());
    assert!(open_files(&[one.clone(), folder.0.join("a.csv")], &FileOptions::default()).is_err());
    assert!(open_files(&[folder.0.join("none.parquet")], &FileOptions::default()).is_err());
    assert!(open_files(
        &[PathBuf::from("-")],
        &FileOptions { format: Some(FileFormat::Parquet), ..FileOptions::default() }
    )
    .is_err());
    assert!(needs_columns(&[folder.0.join("A.CSV.GZ")], None).unwrap());
    assert!(!needs_columns(&[one], None).unwrap());
}

/// Reads damaged files: each is read to an error or to rows, and none causes a panic.
fn damage(name: &str, good: &[u8], every: usize) {
    let folder = Folder::new(&format!("damage-{name}"));
    let options = FileOptions { format: None, columns: columns(), ..FileOptions::default() };
    for length in (0..good.len()).step_by(every) {
        let path = folder.write(name, &good[..length]);
        let _ = read(&[path], &options);
    }
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = good.to_vec();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            // The ends of files hold their indexes.
            let at = if random.bool() { bytes.len() - 1 - at.min(bytes.len() - 1) / 8 } else { at };
            bytes[at] = random.u8(..);
        }
        let path = folder.write(name, &bytes);
        let _ = read(&[path], &options);
    }
}

#[test]
fn damaged_parquet_is_an_error() {
    let folder = Folder::new("good");
    let path = folder.0.join("a.parquet");
    write_parquet(&path, &rows(0, 300), 100);
    let good = std::fs::read(path).unwrap();
    damage("a.parquet", &good, 29);
    for length in (0..good.len()).rev().step_by(3) {
        let path = folder.write("cut.parquet", &good[..length]);
        assert!(read(&[path], &FileOptions::default()).is_err(), "{length} bytes of {}", good.len());
    }
}

#[test]
fn damaged_arrow_is_an_error() {
    damage("a.arrow", &arrow_file(&[rows(0, 50)]), 3);
    let stream = arrow_stream(&[rows(0, 20), rows(20, 40)].map(|batch| batch.project(&[0, 2]).unwrap()));
    damage("a.arrows", &stream, 1);
}

#[test]
fn damaged_csv_is_an_error_or_other_rows() {
    damage("a.csv", b"n,half,text\n1,2.5,\"a\"\n2,,b\n3,1,\"c,d\"\n", 1);
}

#[test]
fn files_may_have_their_columns_in_another_order() {
    let folder = Folder::new("order");
    let options = FileOptions { columns: columns(), ..FileOptions::default() };
    let later = rows(10, 20).project(&[2, 0, 3, 1]).unwrap();
    let parquet = [folder.0.join("a.parquet"), folder.0.join("b.parquet")];
    write_parquet(&parquet[0], &rows(0, 10), 10);
    write_parquet(&parquet[1], &later, 5);
    assert_same(&read(&parquet, &options).unwrap(), &rows(0, 20));
    let arrow = [
        folder.write("a.arrow", &arrow_file(&[rows(0, 10).project(&[0, 1, 2]).unwrap()])),
        folder.write("b.arrow", &arrow_file(&[later.project(&[3, 0, 1]).unwrap()])),
    ];
    assert_same(&read(&arrow, &options).unwrap(), &rows(0, 20).project(&[0, 1, 2]).unwrap());
    let csv = [folder.write("a.csv", b"n,text\n1,a\n"), folder.write("b.csv", b"text,n\nb,2\n")];
    let read_csv = read(&csv, &options).unwrap();
    assert_eq!(read_csv.column(0).as_ref(), &Int64Array::from(vec![1, 2]));
    assert_eq!(read_csv.column(1).as_ref(), &StringArray::from(vec!["a", "b"]));
}

#[test]
fn a_later_file_may_have_nulls_where_the_first_can_have_none() {
    let folder = Folder::new("nulls");
    let paths = [folder.0.join("a.parquet"), folder.0.join("b.parquet")];
    let column = |values: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let none = RecordBatch::try_from_iter_with_nullable([("n", column(vec![Some(1)]), false)]).unwrap();
    let some = RecordBatch::try_from_iter_with_nullable([("n", column(vec![None]), true)]).unwrap();
    write_parquet(&paths[0], &none, 10);
    write_parquet(&paths[1], &some, 10);
    let source = open_files(&paths, &FileOptions::default()).unwrap();
    assert!(source.schema().field(0).is_nullable());
}

#[test]
fn what_differs_between_files_is_named() {
    let folder = Folder::new("differs");
    let first = folder.write("a.csv", b"n,text\n1,a\n");
    for (text, says) in [
        ("n\n1\n", "b.csv: it has no column 'text', which the first file has"),
        ("n,text,half\n1,a,2\n", "b.csv: the first file has no column 'half'"),
    ] {
        let options = FileOptions { columns: columns(), ..FileOptions::default() };
        let error = read(&[first.clone(), folder.write("b.csv", text.as_bytes())], &options).unwrap_err();
        assert!(error.to_string().ends_with(says), "{error}");
    }
    let paths = [folder.0.join("a.parquet"), folder.0.join("b.parquet")];
    write_parquet(&paths[0], &rows(0, 1).project(&[0]).unwrap(), 10);
    let halves: ArrayRef = Arc::new(Float64Array::from(vec![1.5]));
    write_parquet(&paths[1], &RecordBatch::try_from_iter([("n", halves)]).unwrap(), 10);
    let error = read(&paths, &FileOptions::default()).unwrap_err();
    assert!(error.text.contains("its column 'n' is Float64, and Int64 in the first file"), "{error}");
}

#[test]
fn a_fingerprint_tells_files_by_their_content_and_not_by_their_names() {
    let folder = Folder::new("fingerprint");
    let of = |paths: &[PathBuf], batch_bytes| fingerprint(paths, None, batch_bytes).unwrap();
    let first = folder.write("a.csv", b"n\n1\n2\n");
    let before = of(std::slice::from_ref(&first), 1000);
    assert!(before.starts_with("csv files=1 bytes=6 digest="), "{before}");
    assert!(before.ends_with(" batch_bytes=1000"), "{before}");
    assert!(before.len() <= 128 && before.is_ascii());
    assert_eq!(of(&[folder.write("moved.csv", b"n\n1\n2\n")], 1000), before);
    let changed = [
        of(std::slice::from_ref(&first), 1001),
        of(&[first.clone(), first.clone()], 1000),
        of(&[folder.write("b.csv", b"n\n1\n3\n")], 1000),
        of(&[folder.write("c.csv", b"n\n1\n22\n")], 1000),
        fingerprint(std::slice::from_ref(&first), Some(FileFormat::Arrow), 1000).unwrap(),
    ];
    for other in &changed {
        assert_ne!(other, &before);
    }
    // The end of a long file counts as well as its begin.
    let mut long = vec![b'1'; 1 << 20];
    let long_before = of(&[folder.write("long.csv", &long)], 1000);
    *long.last_mut().unwrap() = b'2';
    assert_ne!(of(&[folder.write("long.csv", &long)], 1000), long_before);
    let missing = fingerprint(&[folder.0.join("none.csv")], None, 1000).unwrap_err();
    assert!(missing.to_string().contains("none.csv: No such file"), "{missing}");
    assert!(fingerprint(&["-".into()], Some(FileFormat::Csv), 1000).unwrap().starts_with("csv files=1 bytes=0"));
}
