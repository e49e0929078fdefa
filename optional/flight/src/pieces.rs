//! Cuts batches into pieces of limited size.

use arrow_array::RecordBatch;
use windrow_append::Payload;

/// Returns the bytes of the values alone: batches that were read from one message share its memory.
pub(crate) fn batch_bytes(batch: &RecordBatch) -> usize {
    Payload::Batch(batch.clone()).size_bytes()
}

/// Returns all rows in their order, in pieces of roughly so many bytes.
pub(crate) fn pieces(batch: RecordBatch, piece_bytes: usize) -> impl Iterator<Item = RecordBatch> + Send {
    let rows = batch.num_rows();
    let of_piece = rows.div_ceil(batch_bytes(&batch).div_ceil(piece_bytes).max(1)).max(1);
    (0..rows).step_by(of_piece).map(move |at| batch.slice(at, of_piece.min(rows - at)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn large_batches_go_in_pieces_with_all_rows_in_order() {
        let batch = |rows: i64| {
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter(0..rows));
            RecordBatch::try_from_iter([("a", numbers.clone()), ("b", numbers)]).unwrap()
        };
        assert_eq!(pieces(batch(0), 8 * MIB).count(), 0);
        assert_eq!(pieces(batch(1000), 8 * MIB).count(), 1);
        let large = batch(2_000_001);
        let cut: Vec<_> = pieces(large.clone(), 8 * MIB).collect();
        assert_eq!(cut.len(), 4);
        let mut begin = 0;
        for piece in cut {
            assert_eq!(piece, large.slice(begin, piece.num_rows()));
            begin += piece.num_rows();
        }
        assert_eq!(begin, 2_000_001);
    }
}
