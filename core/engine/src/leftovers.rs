//! Inserts that an earlier run left in the journal. They are found while the journal is opened, and given to
//! the tables when the gatherer starts.
//!
//! An insert is left if no record says that it is done. The latest piece that names an insert is the one that
//! it was last sent with, or was about to be: the insert goes again with that piece, under the same id.
//!
//! A piece is void when a later one has some of its inserts: the piece was cut up, since nothing of it was
//! stored, or since its repeat would not be recognised. Its other inserts go as if they had never been sent,
//! each run of them in its place between the pieces.

use std::collections::{BTreeMap, HashMap, VecDeque};

use windrow_log::{Committer, ContextKey, Disk, Log, LogOptions, OpenError, RecordId, Recovered};

use crate::backlog::{LeftPiece, Leftover};
use crate::insert::DedupKeys;
use crate::records;
use crate::sink::PhysicalTable;

/// An opened journal, and what an earlier run left in it.
pub struct OpenedJournal {
    pub(crate) log: Log,
    pub(crate) max_bytes: u64,
    pub(crate) scan: Scan,
}

impl OpenedJournal {
    /// Returns the log, for callers that drive the committer by hand, close the journal, or show what it
    /// takes.
    pub fn log(&self) -> Log {
        self.log.clone()
    }
}

/// Opens the journal of a folder, and looks through it. The call blocks. The committer has to run for as long
/// as the gatherer does.
///
/// # Errors
/// Fails where the disk fails, or the journal is damaged or was written by another version.
pub fn open_journal<D: Disk>(disk: D, options: LogOptions) -> Result<(OpenedJournal, Committer<D>), OpenError> {
    let mut scan = Scan::default();
    let (log, mut committer) = windrow_log::open(disk, options, &mut |record| scan.visit(&record))?;
    committer.keep_room_for_ends(records::MOST_END_BYTES);
    Ok((OpenedJournal { log, max_bytes: options.max_bytes, scan }, committer))
}

/// Records that were found in the journal, in their order.
#[derive(Default)]
pub(crate) struct Scan {
    tables: BTreeMap<PhysicalTable, Vec<Met>>,
    contexts: HashMap<ContextKey, Option<PhysicalTable>>,
    pieces: Vec<LeftPiece>,
    /// Deduplication keys of inserts, by the inserts' records.
    keys: HashMap<u64, DedupKeys>,
    done: IdSet,
    done_records: Vec<RecordId>,
    /// Sound records whose meaning is not known here.
    unreadable: Vec<RecordId>,
}

struct Met {
    id: RecordId,
    bytes: u32,
}

/// Records of the journal, sorted by what is to be done about them.
#[derive(Default)]
pub(crate) struct FoundRecords {
    pub(crate) tables: BTreeMap<PhysicalTable, Leftover>,
    /// Records that nobody needs any more, in the order in which they may be forgotten.
    pub(crate) dead: Vec<RecordId>,
    /// Inserts that are done, though no record says so.
    pub(crate) unsaid: Vec<RecordId>,
    pub(crate) unreadable: Vec<RecordId>,
}

impl Scan {
    fn visit(&mut self, record: &Recovered<'_>) {
        let understood = match record.kind {
            records::INSERT => self.visit_insert(record),
            records::PIECE => records::decode_piece(record.payload).ok().map(|piece| {
                self.pieces.push(LeftPiece { record: record.id, batch: piece.batch, members: piece.members });
            }),
            records::DONE => records::decode_done(record.payload).ok().map(|done| {
                done.inserts.into_iter().for_each(|id| self.done.insert(id.0));
                self.done_records.push(record.id);
            }),
            _ => None,
        };
        if understood.is_none() {
            self.unreadable.push(record.id);
        }
    }

    fn visit_insert(&mut self, record: &Recovered<'_>) -> Option<()> {
        let (key, context) = record.context?;
        let name = self.contexts.entry(key).or_insert_with(|| {
            let destination = records::decode_context(context).ok()?.destination;
            Some(destination.physical_table())
        });
        let head = records::decode_insert_head(record.payload).ok()?;
        let met = Met { id: record.id, bytes: u32::try_from(record.payload.len()).unwrap_or(u32::MAX) };
        if let Some(keys) = DedupKeys::decode(&head.dedup) {
            self.keys.insert(record.id.0, keys);
        }
        match self.tables.get_mut(name.as_ref()?) {
            Some(table) => table.push(met),
            None => drop(self.tables.insert(name.clone()?, vec![met])),
        }
        Some(())
    }

    /// Sorts the records by what is to be done about them. `is_settled` is asked of each insert that is left,
    /// and says whether it has come to its end, though the journal doesn't say so.
    pub(crate) fn sort(mut self, is_settled: impl Fn(RecordId, Option<DedupKeys>) -> bool) -> FoundRecords {
        let mut found = FoundRecords { unreadable: self.unreadable, ..FoundRecords::default() };
        let mut last_piece = latest_pieces(&self.pieces, &self.done);
        let mut left_of_pieces: Vec<Vec<RecordId>> = self.pieces.iter().map(|_| Vec::new()).collect();
        let mut table_of_piece: Vec<Option<PhysicalTable>> = self.pieces.iter().map(|_| None).collect();
        for (name, met) in self.tables {
            let mut leftover = Leftover::default();
            for insert in met {
                if self.done.contains(insert.id.0) {
                    found.dead.push(insert.id);
                    continue;
                }
                if is_settled(insert.id, self.keys.remove(&insert.id.0)) {
                    last_piece.remove(&insert.id.0);
                    found.unsaid.push(insert.id);
                    continue;
                }
                leftover.count += 1;
                leftover.bytes += u64::from(insert.bytes);
                match last_piece.get(&insert.id.0) {
                    Some(&piece) => {
                        left_of_pieces[piece].push(insert.id);
                        table_of_piece[piece].get_or_insert_with(|| name.clone());
                    }
                    None => leftover.inserts.push(insert.id),
                }
            }
            if leftover.count > 0 {
                found.tables.insert(name, leftover);
            }
        }
        for ((piece, left), name) in self.pieces.into_iter().zip(left_of_pieces).zip(table_of_piece) {
            let Some(leftover) = name.and_then(|name| found.tables.get_mut(&name)) else {
                found.dead.push(piece.record);
                continue;
            };
            // In the order in which they were sent.
            let members = piece.members.iter().copied().filter(|id| left.binary_search(id).is_ok()).collect();
            leftover.pieces.push_back(LeftPiece { members, ..piece });
        }
        for leftover in found.tables.values_mut() {
            in_order(&mut leftover.pieces);
        }
        // Last: what says that others are done must not be forgotten before they are.
        found.dead.extend(self.done_records);
        found
    }
}

/// Finds the piece that each insert was last sent with. Returns the places of these pieces by insert, without
/// void pieces. Pieces of which nothing is left take no memory.
fn latest_pieces(pieces: &[LeftPiece], done: &IdSet) -> HashMap<u64, usize> {
    let is_left = |piece: &&LeftPiece| piece.members.iter().any(|member| !done.contains(member.0));
    let of_left = pieces.iter().filter(is_left).flat_map(|piece| &piece.members);
    let mut latest: HashMap<u64, usize> = of_left.map(|member| (member.0, 0)).collect();
    for (place, piece) in pieces.iter().enumerate() {
        for member in &piece.members {
            latest.entry(member.0).and_modify(|latest| *latest = place);
        }
    }
    // The next life writes a piece down again, under the same id.
    let is_void = |piece: &LeftPiece| {
        let mut last = piece.members.iter().filter_map(|member| latest.get(&member.0));
        last.any(|last| pieces[*last].batch != piece.batch)
    };
    let void: Vec<bool> = pieces.iter().map(is_void).collect();
    latest.retain(|_, place| !void[*place]);
    latest
}

/// Sorts pieces in the order of their inserts. Pieces of a batch that was narrowed down were written as they
/// were tried.
fn in_order(pieces: &mut VecDeque<LeftPiece>) {
    pieces.make_contiguous().sort_by_key(LeftPiece::first_member);
}

/// A set of numbers that mostly lie close together.
#[derive(Default)]
struct IdSet {
    words: HashMap<u64, u64>,
}

impl IdSet {
    fn insert(&mut self, id: u64) {
        *self.words.entry(id / 64).or_default() |= 1 << (id % 64);
    }

    fn contains(&self, id: u64) -> bool {
        self.words.get(&(id / 64)).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{BatchId, TableKey};

    /// Sorts a journal that has these inserts, of which `pieces` were sent in this order. Returns the pieces
    /// that are left, and the inserts that are in none.
    fn sorted(inserts: &[u64], done: &[u64], pieces: &[&[u64]]) -> (Vec<Vec<u64>>, Vec<u64>) {
        let mut scan = Scan::default();
        let name = TableKey { database: "d".into(), table: "t".into() };
        let met = inserts.iter().map(|id| Met { id: RecordId(*id), bytes: 1 }).collect();
        scan.tables.insert(PhysicalTable { name: name.clone(), shard: 0 }, met);
        scan.pieces = (100..)
            .zip(pieces)
            .map(|(record, members)| LeftPiece {
                record: RecordId(record),
                batch: BatchId(u128::from(record)),
                members: members.iter().copied().map(RecordId).collect(),
            })
            .collect();
        done.iter().for_each(|id| scan.done.insert(*id));
        let mut found = scan.sort(|_, _| false);
        let Leftover { pieces, mut inserts, .. } = found.tables.pop_first().expect("something is left").1;
        let numbers = |ids: Vec<RecordId>| ids.into_iter().map(|id| id.0).collect::<Vec<u64>>();
        let pieces = pieces.into_iter().map(|piece| numbers(piece.members)).collect();
        (pieces, std::iter::from_fn(|| inserts.pop()).map(|id| id.0).collect())
    }

    #[test]
    fn a_piece_goes_as_it_was_sent_last() {
        assert_eq!(sorted(&[1, 2, 3, 4], &[], &[&[2, 3]]), (vec![vec![2, 3]], vec![1, 4]));
        assert_eq!(sorted(&[1, 2, 3, 4], &[2], &[&[2, 3]]), (vec![vec![3]], vec![1, 4]));
    }

    #[test]
    fn what_is_left_of_a_piece_that_was_cut_up_goes_as_if_it_had_not_been_sent() {
        let whole: &[u64] = &[1, 2, 3, 4, 5, 6];
        assert_eq!(sorted(whole, &[], &[whole, &[3, 4]]), (vec![vec![3, 4]], vec![1, 2, 5, 6]));
        // What shows that it was is done.
        assert_eq!(sorted(whole, &[3, 4], &[whole, &[3, 4]]), (vec![], vec![1, 2, 5, 6]));
        assert_eq!(sorted(whole, &[3], &[whole, &[4, 5, 6], &[3], &[4]]), (vec![vec![4]], vec![1, 2, 5, 6]));
    }
}
