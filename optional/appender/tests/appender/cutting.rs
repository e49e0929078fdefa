//! The rows that a number stands for: nothing is lost, doubled or out of order, batches have the size that
//! was asked for, and the bodies can be read by any reader of Arrow's streams.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray, StructArray};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat_batches;
use windrow_appender::{batch_bytes, Compression, Cut, CutOptions, Cutter, Encoder};

fn numbers(from: i64, to: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

fn cut(batches: Vec<RecordBatch>, options: CutOptions) -> Vec<Cut> {
    let mut cutter = Cutter::new(options);
    let mut cuts = Vec::new();
    for batch in batches {
        cutter.push(batch);
        cuts.extend(std::iter::from_fn(|| cutter.take()));
    }
    cuts.extend(std::iter::from_fn(|| cutter.finish()));
    assert_eq!(cutter.batches(), cuts.len() as u64);
    cuts
}

/// Reads the bodies as a gateway does, in the order of their numbers.
fn read_back(cuts: &[Cut], compression: Compression) -> RecordBatch {
    let encoder = Encoder::new(&cuts[0].batches[0].schema(), compression).unwrap();
    let mut batches = Vec::new();
    for (number, cut) in cuts.iter().enumerate() {
        assert_eq!(cut.number, number as u64);
        let body = encoder.encode(cut).unwrap();
        let reader = StreamReader::try_new(Cursor::new(body), None).unwrap();
        let of_cut: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        assert_eq!(of_cut.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), cut.rows);
        batches.extend(of_cut);
    }
    concat_batches(encoder.schema(), &batches).unwrap()
}

#[test]
fn a_million_numbers_become_eight_batches() {
    let whole = numbers(0, 1_000_000);
    let cuts = cut(vec![whole.clone()], CutOptions { whole_bytes: Some(batch_bytes(&whole)), ..CutOptions::default() });
    assert_eq!(cuts.len(), 8);
    assert_eq!(read_back(&cuts, Compression::None), whole);
}

#[test]
fn a_whole_of_unknown_size_is_cut_by_the_size_asked_for() {
    let cuts = cut(vec![numbers(0, 1_000_000)], CutOptions::default());
    assert_eq!(cuts.iter().map(|cut| cut.rows).collect::<Vec<_>>(), [524_288, 475_712]);
}

#[test]
fn small_batches_are_sent_together_as_one() {
    let batches: Vec<RecordBatch> = (0..1000).map(|n| numbers(n * 10, n * 10 + 10)).collect();
    let cuts = cut(batches, CutOptions::default());
    assert_eq!(cuts.len(), 1);
    let encoder = Encoder::new(&cuts[0].batches[0].schema(), Compression::None).unwrap();
    let body = encoder.encode(&cuts[0]).unwrap();
    assert!(body.len() < 82_000, "{} bytes for 80,000 bytes of numbers", body.len());
    assert_eq!(read_back(&cuts, Compression::None), numbers(0, 10_000));
}

#[test]
fn a_row_larger_than_a_batch_is_a_batch_and_its_neighbours_are_not_with_it() {
    let texts = ["a".repeat(10), "b".repeat(5_000), "c".repeat(10), "d".repeat(10)];
    let column: ArrayRef = Arc::new(StringArray::from_iter_values(&texts));
    let batch = RecordBatch::try_from_iter([("s", column)]).unwrap();
    let cuts = cut(vec![batch.clone()], CutOptions { batch_bytes: 1000, whole_bytes: None });
    assert_eq!(cuts.iter().map(|cut| cut.rows).collect::<Vec<_>>(), [1, 1, 2]);
    assert_eq!(read_back(&cuts, Compression::None), batch);
}

#[test]
fn empty_sources_and_empty_batches_make_no_batch() {
    assert!(cut(vec![], CutOptions::default()).is_empty());
    assert!(cut(vec![numbers(0, 0), numbers(5, 5)], CutOptions::default()).is_empty());
}

#[test]
fn random_batches_come_back_row_for_row_whatever_the_size() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut at = 0;
        let mut batches = Vec::new();
        for _ in 0..random.usize(1..20) {
            let rows = random.i64(0..2000);
            let texts: ArrayRef = Arc::new(StringArray::from_iter(
                (0..rows).map(|_| random.bool().then(|| "x".repeat(random.usize(0..200)))),
            ));
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(at..at + rows));
            at += rows;
            batches
                .push(RecordBatch::try_from_iter_with_nullable([("n", numbers, false), ("s", texts, true)]).unwrap());
        }
        let options = CutOptions { batch_bytes: random.u64(1..100_000), whole_bytes: None };
        let whole = concat_batches(&batches[0].schema(), &batches).unwrap();
        let cuts = cut(batches.clone(), options);
        let again = cut(batches, options);
        if at == 0 {
            continue;
        }
        assert_eq!(read_back(&cuts, Compression::Lz4), whole, "seed {seed}");
        for (one, other) in cuts.iter().zip(&again) {
            assert_eq!(one.batches, other.batches, "seed {seed}: cut differently the second time");
            assert!(one.rows == 1 || one.bytes <= options.batch_bytes, "seed {seed}: {} bytes", one.bytes);
        }
    }
}

#[test]
fn dictionaries_and_views_go_as_plain_values_and_a_slice_carries_only_its_own() {
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    let mut lists = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
    for row in 0..10_000 {
        words.append_value(format!("a word of some length {}", row % 50));
        lists.values().append_value("again and again");
        lists.append(true);
    }
    let views: ArrayRef =
        Arc::new(StringViewArray::from_iter_values((0..10_000).map(|n| format!("a long view of {n:20}"))));
    let dictionary: ArrayRef = Arc::new(words.finish());
    let within =
        StructArray::from(vec![(Arc::new(Field::new("d", dictionary.data_type().clone(), true)), dictionary.clone())]);
    let batch = RecordBatch::try_from_iter([
        ("dictionary", dictionary),
        ("views", views),
        ("lists", Arc::new(lists.finish()) as ArrayRef),
        ("struct", Arc::new(within) as ArrayRef),
    ])
    .unwrap();
    let cuts = cut(vec![batch], CutOptions { batch_bytes: 20_000, whole_bytes: None });
    let encoder = Encoder::new(&cuts[0].batches[0].schema(), Compression::None).unwrap();
    let largest = cuts.iter().map(|cut| encoder.encode(cut).unwrap().len()).max().unwrap();
    assert!(largest < 60_000, "{largest} bytes for a batch of 20,000");
    let back = read_back(&cuts, Compression::Zstd);
    assert_eq!(back.column(0).data_type(), &DataType::Utf8);
    assert_eq!(back.column(1).data_type(), &DataType::Utf8);
    let expected = StringArray::from_iter_values((0..10_000).map(|row| format!("a word of some length {}", row % 50)));
    assert_eq!(back.column(0).as_ref(), &expected);
}

#[test]
fn metadata_of_the_writer_stays_behind_and_names_of_extension_types_go_along() {
    let mut strings = StringBuilder::new();
    strings.append_value("{}");
    let field = Field::new("j", DataType::Utf8, true).with_metadata(
        [("ARROW:extension:name", "arrow.json"), ("PARQUET:field_id", "1")]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    let schema = arrow_schema::Schema::new(vec![field]).with_metadata([("pandas".to_owned(), "x".repeat(9))]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(strings.finish())]).unwrap();
    let encoder = Encoder::new(&batch.schema(), Compression::None).unwrap();
    assert!(encoder.schema().metadata().is_empty());
    let kept: Vec<&String> = encoder.schema().field(0).metadata().keys().collect();
    assert_eq!(kept, ["ARROW:extension:name"]);
}
