#![no_main]
//! Writes results of any types and values in every format without a panic. Where rows are lines, each row is
//! one line.

use std::sync::Arc;

use arrow_array::types::{IntervalMonthDayNano, UInt8Type};
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Fields, Schema};
use libfuzzer_sys::fuzz_target;
use windrow_duckdb::results::{Encoder, Format, OutputSettings, Statistics};

const FORMATS: [&str; 15] = [
    "JSONEachRow",
    "JSONCompactEachRow",
    "JSON",
    "JSONCompact",
    "CSV",
    "CSVWithNamesAndTypes",
    "TSV",
    "TSVRaw",
    "Values",
    "RowBinary",
    "RowBinaryWithNamesAndTypes",
    "Native",
    "Arrow",
    "ArrowStream",
    "Parquet",
];
const MAX_DEPTH: usize = 4;

struct Input<'i>(&'i [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> i128 {
        let mut bytes = [0; 16];
        for byte in bytes.iter_mut().take(usize::from(self.0.first().unwrap_or(&0) % 17)) {
            *byte = self.byte();
        }
        i128::from_le_bytes(bytes)
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.byte() % 16).map(|_| self.byte()).collect()
    }

    fn each<T>(&mut self, rows: usize, value: impl Fn(&mut Self) -> T) -> Vec<Option<T>> {
        (0..rows).map(|_| (self.byte() % 4 != 0).then(|| value(self))).collect()
    }
}

fn text(input: &mut Input) -> String {
    String::from_utf8_lossy(&input.bytes()).into_owned()
}

fn array(input: &mut Input, rows: usize, depth: usize) -> ArrayRef {
    macro_rules! numbers {
        ($array:ty, $value:ty) => {
            Arc::new(<$array>::from(input.each(rows, |input| input.number() as $value)))
        };
    }
    match input.byte() % if depth < MAX_DEPTH { 24 } else { 20 } {
        0 => Arc::new(NullArray::new(rows)),
        1 => Arc::new(BooleanArray::from(input.each(rows, |input| input.byte() % 2 == 1))),
        2 => numbers!(Int8Array, i8),
        3 => numbers!(Int16Array, i16),
        4 => numbers!(Int32Array, i32),
        5 => numbers!(Int64Array, i64),
        6 => numbers!(UInt16Array, u16),
        7 => numbers!(UInt64Array, u64),
        8 => Arc::new(Float32Array::from(input.each(rows, |input| f32::from_bits(input.number() as u32)))),
        9 => Arc::new(Float64Array::from(input.each(rows, |input| f64::from_bits(input.number() as u64)))),
        10 => Arc::new(
            Decimal128Array::from(input.each(rows, Input::number))
                .with_data_type(arrow_schema::DataType::Decimal128(38, (input.byte() % 39) as i8)),
        ),
        11 => Arc::new(StringArray::from(input.each(rows, text))),
        12 => Arc::new(BinaryArray::from_iter(input.each(rows, Input::bytes))),
        13 => numbers!(Date32Array, i32),
        14 => numbers!(Time64MicrosecondArray, i64),
        15 => numbers!(TimestampSecondArray, i64),
        16 => numbers!(TimestampNanosecondArray, i64),
        17 => Arc::new(
            TimestampMicrosecondArray::from(input.each(rows, |input| input.number() as i64)).with_timezone("UTC"),
        ),
        18 => Arc::new(IntervalMonthDayNanoArray::from(input.each(rows, |input| {
            IntervalMonthDayNano::new(input.number() as i32, input.number() as i32, input.number() as i64)
        }))),
        19 => {
            let names: ArrayRef = Arc::new(StringArray::from_iter_values(["a", "it's", "\u{1F33E}"]));
            let keys = UInt8Array::from(input.each(rows, |input| input.byte() % 3));
            Arc::new(DictionaryArray::<UInt8Type>::new(keys, names))
        }
        20 | 21 => {
            let lengths: Vec<_> = (0..rows).map(|_| usize::from(input.byte() % 3)).collect();
            let values = array(input, lengths.iter().sum(), depth + 1);
            let item = Arc::new(Field::new("item", values.data_type().clone(), true));
            Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), values, None))
        }
        _ => {
            let columns: Vec<_> = (0..=input.byte() % 3).map(|_| array(input, rows, depth + 1)).collect();
            let field =
                |(at, column): (usize, &ArrayRef)| Field::new(format!("f{at}"), column.data_type().clone(), true);
            let fields: Fields = columns.iter().enumerate().map(field).collect();
            Arc::new(StructArray::new(fields, columns, None))
        }
    }
}

fn batch(input: &mut Input) -> Option<RecordBatch> {
    let rows = usize::from(input.byte() % 6);
    let columns: Vec<_> = (0..=input.byte() % 4).map(|_| array(input, rows, 0)).collect();
    let names: Vec<_> = columns.iter().map(|_| text(input)).collect();
    let field = |(name, column): (&String, &ArrayRef)| Field::new(name, column.data_type().clone(), true);
    let schema = Schema::new(names.iter().zip(&columns).map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns).ok()
}

fn write(format: &str, batch: &RecordBatch) -> Option<Vec<u8>> {
    let format = Format::from_name(format).expect("the format is one of the product's");
    let mut encoder = Encoder::new(format, batch.schema(), Some(batch), OutputSettings::default()).ok()?;
    let mut out = Vec::new();
    encoder.begin(&mut out);
    encoder.batch(batch, &mut out).ok()?;
    encoder.finish(&Statistics::default(), &mut out).ok()?;
    Some(out)
}

fuzz_target!(|input: &[u8]| {
    let Some(batch) = batch(&mut Input(input)) else { return };
    for format in FORMATS {
        let Some(out) = write(format, &batch) else { continue };
        if format.ends_with("EachRow") {
            let lines = out.iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(lines, batch.num_rows(), "{}", String::from_utf8_lossy(&out));
        }
    }
});
