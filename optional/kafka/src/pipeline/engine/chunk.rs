//! Messages that were read: chunks as they come, ranges of a batch, and the groups of rows that go to the
//! sink together.

use std::sync::{Arc, Mutex, PoisonError};

use crate::messages::{MessagePlan, Run};
use crate::TopicPartition;
use windrow_clickhouse::ErrorCode;
use windrow_columns::{Block, ColumnSpec, Present, Rows};
use windrow_engine::sink::{BatchId, Destination, NO_CASTS};

use crate::pipeline::latency::{wall_ms, Timing};
use crate::pipeline::options::PipelineOptions;
use crate::pipeline::record::Range;
use crate::pipeline::tables::TableDescription;

/// The plan by which messages are read, and the destinations of their rows, until the table changes.
pub(crate) struct Reading {
    pub(crate) plan: Arc<MessagePlan>,
    pub(crate) description: TableDescription,
    /// Destinations: one for each set of columns that messages have given, so there are few.
    targets: Mutex<Vec<(Present, Arc<Destination>)>>,
}

impl Reading {
    pub(crate) fn new(plan: Arc<MessagePlan>, description: TableDescription) -> Reading {
        Reading { plan, description, targets: Mutex::default() }
    }

    /// Says whether a repeated batch is recognised, which the options have to ask for and the table has to support.
    pub(crate) fn deduplicates(&self, options: &PipelineOptions) -> bool {
        options.exactly_once && self.description.destination.deduplicates
    }

    /// Says whether messages would become the same rows of the same columns.
    pub(crate) fn is_like(&self, other: &Reading) -> bool {
        self.description == other.description
    }

    fn target(&self, present: &Present) -> Arc<Destination> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, target)) = targets.iter().find(|(known, _)| known == present) {
            return target.clone();
        }
        let columns: Vec<&ColumnSpec> = present.iter().map(|index| &self.plan.written()[index]).collect();
        let mut target = self.description.destination(columns);
        if present.iter().any(|at| self.plan.written()[at].data_type != self.plan.columns()[at].data_type) {
            // NULL asks for a DEFAULT, which ClickHouse gives only where it may convert.
            target.settings.retain(|(name, _)| NO_CASTS.iter().all(|(no_cast, _)| name != no_cast));
        }
        let target = Arc::new(target);
        targets.push((present.clone(), target.clone()));
        target
    }

    /// Says whether all these rows were read with this plan, and for the table as it is now.
    pub(crate) fn has_read(&self, ranges: &[RangeRows]) -> bool {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = ranges.iter().flat_map(|range| &range.chunks).flat_map(|chunk| &chunk.rows);
        rows.all(|rows| targets.iter().any(|(_, target)| Arc::ptr_eq(target, &rows.target)))
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
    /// Code of the backend's error, or `OK` if the error is not the backend's.
    pub(crate) code: ErrorCode,
    pub(crate) error: String,
    /// True if the message could be read, and was refused in a batch.
    pub(crate) was_read: bool,
}

/// Messages of a partition that were read at once.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Offset where the next chunk begins.
    pub(crate) next_offset: i64,
    pub(crate) rows: Vec<TargetRows>,
    pub(crate) bad: Vec<BadMessage>,
    pub(crate) tombstones: u64,
    pub(crate) row_count: u64,
    /// Bytes of the messages' keys and values.
    pub(crate) bytes: u64,
    /// Bytes of the rows in memory.
    pub(crate) held_bytes: u64,
    pub(crate) timing: Timing,
    /// The message at `next_offset`, if it can't be stored and nothing behind it may be.
    pub(crate) stopped_by: Option<BadMessage>,
}

impl Chunk {
    /// Makes a chunk that says that there is nothing more before that offset.
    pub(crate) fn without_messages(next_offset: i64) -> Chunk {
        let now_ms = wall_ms();
        let timing = Timing { messages: 0, oldest_ms: now_ms, newest_ms: now_ms, fetched_ms: now_ms, read_ms: now_ms };
        Chunk {
            next_offset,
            rows: Vec::new(),
            bad: Vec::new(),
            tombstones: 0,
            row_count: 0,
            bytes: 0,
            held_bytes: 0,
            timing,
            stopped_by: None,
        }
    }
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

/// Rows of one range in a group. They are the same however the range was fetched.
#[derive(Debug)]
pub(crate) struct GroupMember {
    pub(crate) partition: TopicPartition,
    /// Offset of the first message that has rows here.
    pub(crate) first_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) rows: Vec<Rows>,
    pub(crate) oldest_fetched_ms: i64,
}

/// Largest number of segments of a range. If its messages change more often between sets of columns, the rows
/// are sorted by these sets. As many parts as there are changes would be worse than to lose the order between
/// rows that give different columns.
const MAX_SEGMENTS: usize = 8;

/// Takes the rows out of the ranges. Usually they are one group under the batch's own id. Where messages
/// leave out different columns with DEFAULT expressions, there are several groups, in the messages' order
/// within each partition. Their ids follow from the batch's id and from the messages alone.
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
                group.id = id.derived((level as u64).to_le_bytes().into_iter().chain(columns.into_bytes()));
            }
        }
    }
    levels.into_iter().flatten().collect()
}

/// Returns the rows of a range in segments, which end where the columns change.
fn segments(range: &mut RangeRows) -> Vec<(Arc<Destination>, GroupMember)> {
    let partition = range.range.partition();
    let mut segments: Vec<(Arc<Destination>, GroupMember)> = Vec::new();
    for chunk in &mut range.chunks {
        for rows in std::mem::take(&mut chunk.rows) {
            let TargetRows { target, first_offset, last_offset, block } = rows;
            let rows = Rows::Parsed(block);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Headers, Message, MessageReader};
    use crate::pipeline::options::FormatOptions;
    use crate::pipeline::plan::plan_for;
    use crate::pipeline::tables::tests::description;
    use crate::TopicId;
    use windrow_columns::{DataType, DefaultKind};

    const BATCH: BatchId = BatchId(77);

    fn target(columns: &str) -> Arc<Destination> {
        let column = |name: &str| ColumnSpec {
            name: name.to_owned(),
            data_type: DataType::String,
            default_kind: DefaultKind::None,
        };
        let columns: Vec<ColumnSpec> = columns.split(',').map(column).collect();
        Arc::new(description(&[]).destination(&columns))
    }

    /// Makes a range of chunks that follow each other. Each message is given by the columns that it has.
    fn range(partition: i32, chunks: &[&[&str]]) -> RangeRows {
        let mut next_offset = 0;
        let chunks: Vec<Chunk> = chunks
            .iter()
            .map(|messages| {
                let first_offset = next_offset;
                next_offset += messages.len() as i64;
                let rows = messages.iter().zip(first_offset..).map(|(columns, offset)| TargetRows {
                    target: target(columns),
                    first_offset: offset,
                    last_offset: offset,
                    block: Block::default(),
                });
                Chunk { rows: rows.collect(), ..Chunk::without_messages(next_offset) }
            })
            .collect();
        let topic_id = TopicId::default();
        let (topic, last_offset) = ("t".into(), next_offset - 1);
        let range = Range { topic, partition, topic_id, first_offset: 0, last_offset, leader_epoch: -1 };
        RangeRows { range, chunks }
    }

    fn reading(has_views: bool) -> Reading {
        let mut description = description(&[("a", "UInt8")]);
        description.destination.has_views = has_views;
        let format = FormatOptions { name: "JSONEachRow".to_owned(), ..FormatOptions::default() };
        let columns = vec![ColumnSpec {
            name: "a".to_owned(),
            data_type: DataType::parse("UInt8").unwrap(),
            default_kind: DefaultKind::None,
        }];
        let plan = plan_for(&format, &[], columns, &description).unwrap();
        Reading::new(Arc::new(plan), description)
    }

    fn read_by(reading: &Reading) -> RangeRows {
        let mut reader = MessageReader::new(&reading.plan, "t", 0);
        let value = Some(br#"{"a": 1}"#.as_slice());
        let headers = Headers::Kept(&[]);
        reader.read(&Message { offset: 0, timestamp_ms: 0, key: None, value, headers }).unwrap();
        let mut read = range(0, &[&[]]);
        read.chunks[0].rows = reader.finish().into_iter().map(|run| reading.rows(run)).collect();
        assert_eq!(read.chunks[0].rows.len(), 1);
        read
    }

    /// Tests a table that has changed, for example by a new view: the destination is another one, though the
    /// columns are the same.
    #[test]
    fn rows_that_were_read_before_the_table_changed_are_known() {
        let (before, now) = (reading(false), reading(true));
        let (old, new) = (read_by(&before), read_by(&now));
        assert!(before.has_read(std::slice::from_ref(&old)));
        assert!(now.has_read(std::slice::from_ref(&new)));
        assert!(!now.has_read(std::slice::from_ref(&old)));
        assert!(!now.has_read(&[new, old]));
        assert!(now.has_read(&[range(0, &[&[]])]), "what has no rows is as good as any");
    }

    /// The id and the columns of each group, and its members as partition, first and last offset.
    type Shape = Vec<(BatchId, String, Vec<(i32, i64, i64)>)>;

    fn shape(mut ranges: Vec<RangeRows>) -> Shape {
        let member = |member: &GroupMember| (member.partition.partition, member.first_offset, member.last_offset);
        let shape = |group: Group| {
            (group.id, group.target.columns.join(","), group.members.iter().map(member).collect::<Vec<_>>())
        };
        groups(BATCH, &mut ranges).into_iter().map(shape).collect()
    }

    #[test]
    fn rows_of_the_same_columns_are_one_member_for_each_range_under_the_batchs_id() {
        let ranges = vec![range(0, &[&["a", "a"], &["a"]]), range(3, &[&["a"]])];
        assert_eq!(shape(ranges), [(BATCH, "a".to_owned(), vec![(0, 0, 2), (3, 0, 0)])]);
    }

    #[test]
    fn what_is_stored_together_does_not_depend_on_how_it_was_fetched() {
        let at_once = vec![range(0, &[&["a", "a,b", "a"]]), range(1, &[&["a,b", "a"]])];
        let bit_by_bit = vec![range(0, &[&["a"], &["a,b"], &["a"]]), range(1, &[&["a,b"], &["a"]])];
        let found = shape(at_once);
        assert_eq!(found, shape(bit_by_bit));
        let members: Vec<_> =
            found.iter().map(|(_, columns, members)| (columns.as_str(), members.as_slice())).collect();
        // Within a level, columns stand in the order of the ranges.
        type Members<'m> = &'m [(i32, i64, i64)];
        let expected: [(&str, Members); 5] = [
            ("a", &[(0, 0, 0)]),
            ("a,b", &[(1, 0, 0)]),
            ("a,b", &[(0, 1, 1)]),
            ("a", &[(1, 1, 1)]),
            ("a", &[(0, 2, 2)]),
        ];
        assert_eq!(members, expected);
        let mut ids: Vec<u128> = found.iter().map(|(id, ..)| id.0).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), found.len(), "every group has an id of its own");
    }

    #[test]
    fn columns_that_change_with_every_message_do_not_make_a_part_of_every_message() {
        let messages: Vec<&str> = (0..100).map(|index| if index % 2 == 0 { "a" } else { "a,b" }).collect();
        let found = shape(vec![range(0, &[&messages])]);
        let members: Vec<_> = found.into_iter().map(|(_, columns, members)| (columns, members)).collect();
        assert_eq!(members, [("a".to_owned(), vec![(0, 0, 98)]), ("a,b".to_owned(), vec![(0, 1, 99)])]);
    }
}
