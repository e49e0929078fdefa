//! The cutter, which decides where one batch ends and the next begins.

use std::collections::VecDeque;

use arrow_array::RecordBatch;

use super::size::RowSizes;

/// The most bytes of a batch. A larger one would be refused, or spooled whole, by most gateways.
const MAX_BATCH_BYTES: u64 = 64 << 20;
/// The number of batches that a whole becomes that is known to be small, so that every connection has
/// something to do...
const PIECES_OF_A_SMALL_WHOLE: u64 = 8;
/// The least bytes of such a batch ... since a request has its price.
const SMALL_BATCH_BYTES: u64 = 1 << 20;

/// The options that decide, with the source, which rows a number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOptions {
    /// About how many bytes a batch has.
    pub batch_bytes: u64,
    /// The size of the whole, as [`Source::whole_bytes`](crate::Source::whole_bytes) tells.
    pub whole_bytes: Option<u64>,
}

impl Default for CutOptions {
    fn default() -> Self {
        CutOptions { batch_bytes: 4 << 20, whole_bytes: None }
    }
}

impl CutOptions {
    fn target_bytes(&self) -> u64 {
        let most = self.batch_bytes.clamp(1, MAX_BATCH_BYTES);
        match self.whole_bytes {
            Some(whole) => most.min(whole.div_ceil(PIECES_OF_A_SMALL_WHOLE).max(SMALL_BATCH_BYTES)),
            None => most,
        }
    }
}

/// The rows of one number. They share memory with the batches that were pushed.
#[derive(Debug, Clone)]
pub struct Cut {
    pub number: u64,
    pub rows: u64,
    /// About as many bytes as the batch will have when it is encoded.
    pub bytes: u64,
    /// Record batches: at least one, none of them empty.
    pub batches: Vec<RecordBatch>,
}

/// A cutter of pushed batches: takes small batches together and large ones apart.
pub struct Cutter {
    target_bytes: u64,
    next_number: u64,
    open: Vec<RecordBatch>,
    open_rows: u64,
    open_bytes: u64,
    ready: VecDeque<Cut>,
}

impl Cutter {
    pub fn new(options: CutOptions) -> Cutter {
        Cutter {
            target_bytes: options.target_bytes(),
            next_number: 0,
            open: Vec::new(),
            open_rows: 0,
            open_bytes: 0,
            ready: VecDeque::new(),
        }
    }

    pub fn push(&mut self, batch: RecordBatch) {
        let (sizes, rows) = (RowSizes::of(&batch), batch.num_rows());
        let mut from = 0;
        while from < rows {
            let room = self.target_bytes.saturating_sub(self.open_bytes);
            let mut end = sizes.end_within(from, rows, room);
            if end == from && self.open.is_empty() {
                // One row that is larger than a batch is a batch.
                end = from + 1;
            }
            if end > from {
                self.open.push(batch.slice(from, end - from));
                self.open_rows += (end - from) as u64;
                self.open_bytes += sizes.bytes(from, end);
            }
            if end < rows {
                self.close();
            }
            from = end;
        }
    }

    /// Returns a batch that is complete.
    pub fn take(&mut self) -> Option<Cut> {
        self.ready.pop_front()
    }

    /// Returns the batches that are left after the last push, behind all that [`take`](Cutter::take) returns.
    /// Call it until it returns `None`.
    pub fn finish(&mut self) -> Option<Cut> {
        if !self.open.is_empty() {
            self.close();
        }
        self.ready.pop_front()
    }

    /// Returns how many numbers have been given out or are ready: after the end, the number of batches.
    pub fn batches(&self) -> u64 {
        self.next_number
    }

    fn close(&mut self) {
        self.ready.push_back(Cut {
            number: self.next_number,
            rows: std::mem::take(&mut self.open_rows),
            bytes: std::mem::take(&mut self.open_bytes),
            batches: std::mem::take(&mut self.open),
        });
        self.next_number += 1;
    }
}
