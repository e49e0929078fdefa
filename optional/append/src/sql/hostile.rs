//! Payloads as nobody should send them.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, ListArray, ListViewArray, NullArray, RecordBatch,
    RunArray, StringArray, StringViewArray,
};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_ipc::CompressionType;
use arrow_schema::Field;
use windrow_clickhouse::ErrorCode;

use super::read::of_stream;
use super::unfolding::unfolded_bytes;
use crate::size::batch_bytes;

const MAX_BYTES: u64 = 1 << 20;

fn some_batch(rows: i64) -> RecordBatch {
    let texts = (0..rows).map(|row| (row % 3 > 0).then(|| "text ".repeat(row as usize % 4)));
    let lists = (0..rows).map(|row| (row % 4 > 0).then(|| (0..row % 5).map(|of| Some(of as i32))));
    let names: DictionaryArray<Int32Type> = (0..rows).map(|row| ["a", "bc", ""][row as usize % 3]).collect();
    let columns: [(&str, ArrayRef); 6] = [
        ("n", Arc::new(Int64Array::from_iter(0..rows))),
        ("s", Arc::new(texts.clone().collect::<StringArray>())),
        ("v", Arc::new(texts.collect::<StringViewArray>())),
        ("b", Arc::new((0..rows).map(|row| Some(row % 2 > 0)).collect::<BooleanArray>())),
        ("l", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
        ("d", Arc::new(names)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn stream(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn good_streams_are_read() {
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let batches = [some_batch(100), some_batch(7)];
        assert_eq!(of_stream(stream(&batches, compression).into(), MAX_BYTES).unwrap(), batches);
    }
}

#[test]
fn a_stream_that_is_cut_short_is_an_error_or_ends_between_batches() {
    for compression in [None, Some(CompressionType::LZ4_FRAME)] {
        let batches = [some_batch(20), some_batch(3)];
        let whole = stream(&batches, compression);
        for end in 0..whole.len() {
            if let Ok(read) = of_stream(whole[..end].to_vec().into(), MAX_BYTES) {
                assert!(read.iter().all(|batch| batch.num_rows() == 0) || read[..] == batches[..read.len()], "{end}");
            }
        }
    }
}

#[test]
fn damaged_streams_are_no_panic_and_take_no_memory() {
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let whole = stream(&[some_batch(40)], compression);
        for seed in 0..3000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut damaged = whole.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..damaged.len());
                let any = random.u8(..);
                damaged[at] = random.choice([0, 1, 0x7F, 0x80, 0xFF, any]).unwrap_or(0);
            }
            if let Ok(batches) = of_stream(damaged.into(), MAX_BYTES) {
                for batch in batches {
                    unfolded_bytes(&batch);
                }
            }
        }
    }
}

#[test]
fn what_unpacks_to_too_much_is_refused_before_it_does() {
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 1 << 18]));
    let batch = RecordBatch::try_from_iter([("n", zeros)]).unwrap();
    for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let packed = stream(std::slice::from_ref(&batch), Some(compression));
        assert!(packed.len() < 20_000);
        let error = of_stream(packed.clone().into(), MAX_BYTES).unwrap_err();
        assert_eq!((error.exception.code, error.status), (ErrorCode::QUERY_IS_TOO_LARGE, 413), "{error}");
        assert!(of_stream(packed.into(), 4 * MAX_BYTES).is_ok());
    }
}

#[test]
fn copies_of_long_values_are_counted() {
    let long = "x".repeat(1000);
    let names: DictionaryArray<Int32Type> = (0..500).map(|_| long.as_str()).collect();
    let nulls: ArrayRef = Arc::new(NullArray::new(500));
    let batch = RecordBatch::try_from_iter([("d", Arc::new(names) as ArrayRef), ("n", nulls)]).unwrap();
    assert!(unfolded_bytes(&batch) >= 500_000, "{}", unfolded_bytes(&batch));
}

fn runs(ends: Vec<i32>, values: ArrayRef) -> ArrayRef {
    Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(ends), values.as_ref()).unwrap())
}

fn views(offsets: Vec<i32>, sizes: Vec<i32>, values: ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    Arc::new(ListViewArray::try_new(item, offsets.into(), sizes.into(), values, None).unwrap())
}

#[test]
fn runs_and_views_take_what_their_rows_show() {
    let texts = |of: &[&str]| Arc::new(StringArray::from(of.to_vec())) as ArrayRef;
    let long = "x".repeat(1000);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(0..1000));
    let cases: [(ArrayRef, std::ops::RangeInclusive<u64>); 8] = [
        (runs(vec![1, 3], texts(&["a", "bc"])), 5..=40),
        (runs(vec![1, 1_000_000], texts(&["a", &long])), 1_000_000_000..=1_100_000_000),
        (runs(vec![1, 1_000_000], texts(&["a", &long])).slice(0, 1), 1..=20),
        (runs(vec![2_000_000], runs(vec![1], texts(&[&long]))), 2_000_000_000..=2_200_000_000),
        (views(vec![0, 1], vec![1, 1], texts(&["a", "bc"])), 3..=60),
        (views(vec![0; 5000], vec![1000; 5000], numbers.clone()), 40_000_000..=41_000_000),
        (views(vec![0; 5000], vec![0; 5000], numbers.clone()), 0..=41_000),
        (views(vec![0; 500], vec![2; 500], views(vec![0; 2], vec![1000; 2], numbers)), 8_000_000..=8_200_000),
    ];
    for (at, (array, expected)) in cases.into_iter().enumerate() {
        let bytes = unfolded_bytes(&RecordBatch::try_from_iter([("c", array)]).unwrap());
        assert!(expected.contains(&bytes), "case {at}: {bytes} is not in {expected:?}");
    }
}

#[test]
fn columns_of_one_message_are_not_counted_several_times() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(0..1000));
    let lists = (0..1000).map(|row| Some([Some(row)]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    let columns = (0..50).flat_map(|at| [(format!("n{at}"), numbers.clone()), (format!("l{at}"), lists.clone())]);
    let whole = stream(&[RecordBatch::try_from_iter(columns).unwrap()], None);
    let read = of_stream(whole.clone().into(), MAX_BYTES).unwrap().remove(0);
    for size in [batch_bytes(&read), unfolded_bytes(&read)] {
        assert!((600_000..=whole.len() as u64).contains(&size), "{size} of {}", whole.len());
    }
    let of_slice = unfolded_bytes(&read.slice(10, 100));
    assert!((60_000..80_000).contains(&of_slice), "{of_slice}");
}
