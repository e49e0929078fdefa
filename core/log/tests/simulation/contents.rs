//! The bytes of one file: the part that a crash leaves of them, and the state that readers see until then.

use fastrand::Rng;

const SECTOR_BYTES: u64 = 512;

#[derive(Default)]
pub(super) struct Contents {
    /// Bytes that are there after a crash, whatever happens.
    kept: Vec<u8>,
    /// Bytes that readers see.
    seen: Vec<u8>,
    /// Changes that the next sync has to keep, oldest first.
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Resize(u64),
    Write { offset: u64, bytes: Vec<u8> },
}

/// The part of unsynced changes that a crash loses. It is drawn anew for each crash, so that pure cases are
/// as common as mixed ones.
enum Loss {
    All,
    None,
    /// The disk was writing in order when the power failed.
    AfterSome,
    /// The disk wrote sectors in any order.
    Scattered,
}

impl Loss {
    fn any(random: &mut Rng) -> Loss {
        match random.u32(0..10) {
            0..=1 => Loss::All,
            2..=3 => Loss::None,
            4..=6 => Loss::AfterSome,
            _ => Loss::Scattered,
        }
    }
}

impl Contents {
    pub(super) fn len(&self) -> u64 {
        self.seen.len() as u64
    }

    pub(super) fn resize(&mut self, bytes: u64) {
        self.change(Change::Resize(bytes));
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.change(Change::Write { offset, bytes: bytes.to_vec() });
    }

    fn change(&mut self, change: Change) {
        apply(&change, &mut self.seen);
        self.unsynced.push(change);
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.seen.get(offset..)).unwrap_or_default();
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        bytes
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&change, &mut self.kept);
        }
    }

    /// Simulates a sync that fails: some of the changes are kept. The others may be gone from the cache too,
    /// and count as synced from now on.
    pub(super) fn fail_to_sync(&mut self, random: &mut Rng) {
        self.keep_some(random);
        if random.bool() {
            self.seen = self.kept.clone();
        }
    }

    pub(super) fn crash(&mut self, random: &mut Rng) {
        self.keep_some(random);
        self.seen = self.kept.clone();
    }

    fn keep_some(&mut self, random: &mut Rng) {
        let changes = std::mem::take(&mut self.unsynced);
        match Loss::any(random) {
            Loss::All => {}
            Loss::None => changes.iter().for_each(|change| apply(change, &mut self.kept)),
            Loss::AfterSome => self.keep_first(&changes, random),
            Loss::Scattered => self.keep_scattered(&changes, random),
        }
    }

    fn keep_first(&mut self, changes: &[Change], random: &mut Rng) {
        let whole = random.usize(0..=changes.len());
        changes[..whole].iter().for_each(|change| apply(change, &mut self.kept));
        if let Some(Change::Write { offset, bytes }) = changes.get(whole) {
            let torn = bytes[..random.usize(0..=bytes.len())].to_vec();
            apply(&Change::Write { offset: *offset, bytes: torn }, &mut self.kept);
        }
    }

    fn keep_scattered(&mut self, changes: &[Change], random: &mut Rng) {
        for change in changes {
            let Change::Write { offset, bytes } = change else {
                if random.bool() {
                    apply(change, &mut self.kept);
                }
                continue;
            };
            for mut piece in sectors(*offset, bytes) {
                if random.bool() {
                    if random.u32(0..8) == 0 {
                        piece.bytes.truncate(random.usize(0..=piece.bytes.len()));
                    }
                    apply(&Change::Write { offset: piece.offset, bytes: piece.bytes }, &mut self.kept);
                }
            }
        }
    }

    /// Flips a bit that was synced, as a disk that goes bad does.
    pub(super) fn rot(&mut self, offset: usize, bit: u8) {
        for bytes in [&mut self.kept, &mut self.seen] {
            if let Some(byte) = bytes.get_mut(offset) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}

struct Piece {
    offset: u64,
    bytes: Vec<u8>,
}

/// Cuts a write where the disk's sectors end.
fn sectors(mut offset: u64, mut bytes: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let room = (SECTOR_BYTES - offset % SECTOR_BYTES) as usize;
        let (piece, rest) = bytes.split_at(room.min(bytes.len()));
        pieces.push(Piece { offset, bytes: piece.to_vec() });
        offset += piece.len() as u64;
        bytes = rest;
    }
    pieces
}

fn apply(change: &Change, to: &mut Vec<u8>) {
    match change {
        Change::Resize(bytes) => to.resize(*bytes as usize, 0),
        Change::Write { offset, bytes } => {
            let (start, end) = (*offset as usize, *offset as usize + bytes.len());
            if to.len() < end {
                to.resize(end, 0);
            }
            to[start..end].copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_keeps_what_was_synced_and_shows_each_degree_of_loss_of_the_rest() {
        let mut random = Rng::with_seed(1);
        let mut lost = Vec::new();
        for _ in 0..300 {
            let mut file = Contents::default();
            file.resize(4096);
            file.write(0, &[1; 700]);
            file.sync();
            file.write(700, &[2; 2000]);
            file.crash(&mut random);
            let mut bytes = [0; 4096];
            assert_eq!(file.read(0, &mut bytes), 4096);
            assert_eq!(bytes[..700], [1; 700]);
            lost.push(bytes[700..2700].iter().filter(|byte| **byte == 0).count());
        }
        for (what, range) in [("nothing", 0..1), ("some", 1..2000), ("all", 2000..2001)] {
            assert!(lost.iter().any(|bytes| range.contains(bytes)), "no crash lost {what}");
        }
    }

    #[test]
    fn what_a_failed_sync_lost_stays_lost_when_the_next_one_succeeds() {
        let mut random = Rng::with_seed(2);
        let (mut still_seen, mut kept) = (0, 0);
        for _ in 0..200 {
            let mut file = Contents::default();
            file.write(0, &[7; 100]);
            file.fail_to_sync(&mut random);
            let mut bytes = [0; 100];
            still_seen += usize::from(file.read(0, &mut bytes) == 100);
            file.sync();
            file.crash(&mut random);
            kept += usize::from(file.read(0, &mut bytes) == 100);
        }
        assert!(kept > 20 && still_seen > kept + 20, "seen {still_seen}, kept {kept}");
    }
}
