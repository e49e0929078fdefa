//! Messages that were read: chunks as they come, ranges of a batch, and what of these goes to the sink together.

use std::sync::{Arc, Mutex, PoisonError};

use windrow_block::{Block, ColumnSpec, Present, Rows};
use windrow_kafka::TopicPartition;
use windrow_messages::{MessagePlan, Run};
use windrow_sink::{BatchId, Destination};

use crate::latency::Timing;
use crate::options::PipelineOptions;
use crate::record::Range;
use crate::tables::TableDescription;

/// How messages are read and where their rows go, until the table changes.
pub(crate) struct Reading {
    pub(crate) plan: Arc<MessagePlan>,
    pub(crate) description: TableDescription,
    /// Few: one for each set of columns that messages have given.
    targets: Mutex<Vec<(Present, Arc<Destination>)>>,
}

impl Reading {
    pub(crate) fn new(plan: Arc<MessagePlan>, description: TableDescription) -> Reading {
        Reading { plan, description, targets: Mutex::default() }
    }

    /// Whether a batch that comes again is recognised, and is to be.
    pub(crate) fn deduplicates(&self, options: &PipelineOptions) -> bool {
        options.exactly_once && self.description.destination.deduplicates
    }

    /// Whether messages would become the same rows of the same columns.
    pub(crate) fn is_like(&self, other: &Reading) -> bool {
        self.description == other.description
    }

    fn target(&self, present: &Present) -> Arc<Destination> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, target)) = targets.iter().find(|(known, _)| known == present) {
            return target.clone();
        }
        let columns: Vec<&ColumnSpec> = present.iter().map(|index| &self.plan.columns()[index]).collect();
        let target = Arc::new(self.description.destination(columns));
        targets.push((present.clone(), target.clone()));
        target
    }

    pub(crate) fn rows(&self, run: Run) -> TargetRows {
        TargetRows {
            target: self.target(&run.present),
            first_offset: run.first_offset,
            last_offset: run.last_offset,
            block: run.block,
        }
    }
}

/// Rows of messages that follow each other, for one destination.
#[derive(Debug)]
pub(crate) struct TargetRows {
    pub(crate) target: Arc<Destination>,
    pub(crate) first_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) block: Block,
}

/// A message that can't be stored, with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadMessage {
    pub(crate) offset: i64,
    pub(crate) timestamp_ms: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) value: Option<Vec<u8>>,
    /// Of the backend's error; 0 if the message could not even be read.
    pub(crate) code: i32,
    pub(crate) error: String,
}

/// What was read of a partition at once.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Where the next one begins.
    pub(crate) next_offset: i64,
    pub(crate) rows: Vec<TargetRows>,
    pub(crate) bad: Vec<BadMessage>,
    pub(crate) tombstones: u64,
    pub(crate) row_count: u64,
    /// Of the messages' keys and values.
    pub(crate) bytes: u64,
    /// Of the rows in memory.
    pub(crate) held_bytes: u64,
    pub(crate) timing: Timing,
    /// The message at `next_offset` can't be stored, and nothing behind it may be.
    pub(crate) stopped_by: Option<BadMessage>,
}

/// A range of a batch, with its rows.
#[derive(Debug)]
pub(crate) struct RangeRows {
    pub(crate) range: Range,
    pub(crate) chunks: Vec<Chunk>,
}

impl RangeRows {
    pub(crate) fn held_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.held_bytes).sum()
    }
}

/// Rows of a batch that are stored together: under one id, into one set of columns.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: BatchId,
    pub(crate) target: Arc<Destination>,
    pub(crate) members: Vec<GroupMember>,
}

/// What of one range is in a group. It is the same however the range was fetched.
#[derive(Debug)]
pub(crate) struct GroupMember {
    pub(crate) partition: TopicPartition,
    /// Of the messages that have rows here.
    pub(crate) first_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) rows: Vec<Rows>,
    pub(crate) oldest_fetched_ms: i64,
}

/// A range whose messages change between sets of columns more often than this is sorted by them: as many parts as there are changes would be
/// worse than to lose the order between rows that give different columns.
const MAX_SEGMENTS: usize = 8;

/// Takes the rows out of the ranges. Usually they are one group under the batch's own id. Where messages leave out different columns with DEFAULT
/// expressions, there are several, in the messages' order within each partition, with ids that follow from the batch's and from the messages alone.
pub(crate) fn groups(id: BatchId, ranges: &mut [RangeRows]) -> Vec<Group> {
    let mut levels: Vec<Vec<Group>> = Vec::new();
    for range in ranges {
        for (level, (target, member)) in segments(range).into_iter().enumerate() {
            levels.resize_with(levels.len().max(level + 1), Vec::new);
            match levels[level].iter_mut().find(|group| group.target == target) {
                Some(group) => group.members.push(member),
                None => levels[level].push(Group { id, target, members: vec![member] }),
            }
        }
    }
    if levels.iter().map(Vec::len).sum::<usize>() > 1 {
        for (level, groups) in levels.iter_mut().enumerate() {
            for group in groups {
                let columns = group.target.columns.join("\0");
                group.id = derived(id, &[b"columns", &(level as u64).to_le_bytes(), columns.as_bytes()]);
            }
        }
    }
    levels.into_iter().flatten().collect()
}

/// The rows of a range, cut where their columns change.
fn segments(range: &mut RangeRows) -> Vec<(Arc<Destination>, GroupMember)> {
    let partition = range.range.partition();
    let mut segments: Vec<(Arc<Destination>, GroupMember)> = Vec::new();
    for chunk in &mut range.chunks {
        for rows in std::mem::take(&mut chunk.rows) {
            let TargetRows { target, first_offset, last_offset, block } = rows;
            let rows = Rows::Typed(block);
            match segments.last_mut().filter(|(known, _)| *known == target) {
                Some((_, member)) => {
                    member.rows.push(rows);
                    member.last_offset = last_offset;
                }
                None => {
                    let oldest_fetched_ms = chunk.timing.fetched_ms;
                    let partition = partition.clone();
                    let rows = vec![rows];
                    let member = GroupMember { partition, first_offset, last_offset, rows, oldest_fetched_ms };
                    segments.push((target, member));
                }
            }
        }
    }
    if segments.len() <= MAX_SEGMENTS {
        return segments;
    }
    let mut sorted: Vec<(Arc<Destination>, GroupMember)> = Vec::new();
    for (target, member) in segments {
        match sorted.iter_mut().find(|(known, _)| *known == target) {
            Some((_, first)) => {
                first.last_offset = member.last_offset;
                first.rows.extend(member.rows);
            }
            None => sorted.push((target, member)),
        }
    }
    sorted
}

/// An id that follows from a batch's: FNV-1a, so that no library's version changes it. With the marks of a UUID of version 8.
pub(crate) fn derived(batch: BatchId, parts: &[&[u8]]) -> BatchId {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let lengths = parts.iter().map(|part| (part.len() as u64).to_le_bytes());
    let parts = lengths.zip(parts).flat_map(|(length, part)| length.into_iter().chain(part.iter().copied()));
    let bytes = batch.0.to_le_bytes().into_iter().chain(parts);
    let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    BatchId(hash & !(0xf << 76) & !(0x3 << 62) | (8 << 76) | (2 << 62))
}
