//! The records of a segment, their sizes, and which of them are still needed. This takes a little more than a
//! byte for each record, since a backlog may have tens of millions of them.

/// The distance between two remembered offsets, in bytes. Between them, headers are followed from one to the
/// next.
const MARK_EVERY_BYTES: u32 = 64 << 10;

#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// Runs of ids that follow each other without a gap, ascending.
    runs: Vec<Run>,
    /// The rounded-up sizes of the records, by rank.
    sizes: Vec<SizeClass>,
    live: Bits,
    marks: Vec<Mark>,
    live_records: u64,
    live_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    first_id: u64,
    /// The number of records before the run's first one.
    first_rank: u32,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    rank: u32,
    offset: u32,
}

impl Contents {
    /// Adds a live record, with a higher id than all before.
    pub(crate) fn push(&mut self, id: u64, offset: u32, bytes: usize) {
        let rank = self.sizes.len() as u32;
        if self.runs.last().is_none_or(|run| run.first_id + u64::from(rank - run.first_rank) != id) {
            self.runs.push(Run { first_id: id, first_rank: rank });
        }
        if self.marks.last().is_none_or(|mark| offset - mark.offset >= MARK_EVERY_BYTES) {
            self.marks.push(Mark { rank, offset });
        }
        let size = SizeClass::of(bytes);
        self.sizes.push(size);
        self.live.push(true);
        self.live_records += 1;
        self.live_bytes += size.bytes();
    }

    pub(crate) fn records(&self) -> u64 {
        self.sizes.len() as u64
    }

    pub(crate) fn live_records(&self) -> u64 {
        self.live_records
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Says whether the segment has the record, live or not.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.rank(id).is_some()
    }

    /// Marks a record as not needed any more. Returns its bytes, if it was live.
    pub(crate) fn release(&mut self, id: u64) -> Option<u64> {
        let rank = self.rank(id)?;
        if !self.live.clear(rank) {
            return None;
        }
        let bytes = self.sizes[rank].bytes();
        self.live_records -= 1;
        self.live_bytes -= bytes;
        Some(bytes)
    }

    pub(crate) fn is_live(&self, id: u64) -> bool {
        self.rank(id).is_some_and(|rank| self.live.get(rank))
    }

    /// Returns the records that are live at this moment.
    pub(crate) fn live_ids(&self) -> LiveIds {
        LiveIds { runs: self.runs.clone(), live: self.live.clone() }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        let ends = self.runs.iter().skip(1).map(|run| run.first_rank).chain([self.sizes.len() as u32]);
        self.runs.iter().zip(ends).flat_map(|(run, end)| run.first_id..run.first_id + u64::from(end - run.first_rank))
    }

    /// Returns the offset of the record itself, or of one that stands less than the distance of two marks
    /// before it.
    pub(crate) fn near(&self, id: u64) -> Option<u32> {
        let rank = self.rank(id)? as u32;
        let after = self.marks.partition_point(|mark| mark.rank <= rank);
        Some(self.marks[after.checked_sub(1)?].offset)
    }

    fn rank(&self, id: u64) -> Option<usize> {
        rank(&self.runs, self.sizes.len(), id)
    }
}

/// The records that were live at some moment.
pub(crate) struct LiveIds {
    runs: Vec<Run>,
    live: Bits,
}

impl LiveIds {
    pub(crate) fn contains(&self, id: u64) -> bool {
        rank(&self.runs, self.live.count, id).is_some_and(|rank| self.live.get(rank))
    }
}

fn rank(runs: &[Run], records: usize, id: u64) -> Option<usize> {
    let after = runs.partition_point(|run| run.first_id <= id);
    let run = runs[..after].last()?;
    let end = runs.get(after).map_or(records, |next| next.first_rank as usize);
    let rank = usize::try_from(id - run.first_id).ok()?.checked_add(run.first_rank as usize)?;
    (rank < end).then_some(rank)
}

/// A record's size in one byte: three bits of the size and an exponent, in units of the records' alignment.
/// It is up to an eighth too large.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SizeClass(u8);

impl SizeClass {
    fn of(bytes: usize) -> SizeClass {
        let units = bytes.div_ceil(8) as u64;
        if units < 8 {
            return SizeClass(units as u8);
        }
        let exponent = 63 - units.leading_zeros() - 3;
        let rounded = (units + (1 << exponent) - 1) >> exponent;
        // Rounding may have carried over into the next power of two, which the sum expresses by itself.
        SizeClass((u64::from(exponent) * 8 + rounded) as u8)
    }

    fn bytes(self) -> u64 {
        let code = u64::from(self.0);
        if code < 16 {
            return code * 8;
        }
        let (exponent, bits) = (code / 8 - 1, code % 8 + 8);
        (bits << exponent) * 8
    }
}

#[derive(Clone, Debug, Default)]
struct Bits {
    words: Vec<u64>,
    count: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(64) {
            self.words.push(0);
        }
        self.words[self.count / 64] |= u64::from(bit) << (self.count % 64);
        self.count += 1;
    }

    fn get(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// Clears a bit. Returns whether it was set.
    fn clear(&mut self, at: usize) -> bool {
        let was = self.get(at);
        self.words[at / 64] &= !(1 << (at % 64));
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_by_an_eighth_at_most() {
        for bytes in (1..100_000).chain([1 << 20, (64 << 20) + 1, 1 << 30, (1 << 30) + 1000]) {
            let rounded = SizeClass::of(bytes).bytes();
            assert!(rounded >= bytes as u64, "{bytes} as {rounded}");
            assert!(rounded <= bytes as u64 + bytes as u64 / 8 + 8, "{bytes} as {rounded}");
        }
    }

    #[test]
    fn records_are_found_by_their_ids_and_released_once() {
        let mut contents = Contents::default();
        let ids: Vec<u64> = (10..20).chain([25]).chain(40..2000).collect();
        for (rank, id) in ids.iter().enumerate() {
            contents.push(*id, 96 + 104 * rank as u32, 104);
        }
        assert_eq!(contents.ids().collect::<Vec<u64>>(), ids);
        assert_eq!(contents.records(), ids.len() as u64);
        for (rank, id) in ids.iter().enumerate() {
            let offset = 96 + 104 * rank as u32;
            let near = contents.near(*id).unwrap();
            assert!(near <= offset && offset - near < MARK_EVERY_BYTES);
        }
        for id in [0, 9, 20, 24, 26, 39, 2000, u64::MAX] {
            assert_eq!((contents.is_live(id), contents.near(id), contents.release(id)), (false, None, None), "{id}");
        }
        let before = contents.live_bytes();
        assert_eq!(contents.release(25), Some(104));
        assert_eq!(contents.release(25), None);
        assert_eq!((contents.live_records(), contents.live_bytes()), (ids.len() as u64 - 1, before - 104));
        for id in &ids {
            contents.release(*id);
        }
        assert_eq!((contents.live_records(), contents.live_bytes()), (0, 0));
    }
}
