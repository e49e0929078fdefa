//! The reading of a range of a partition's offsets, no matter which member owns the partition.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use crate::batch::{end_offset, VisibleBatches};
use crate::client::{Backoff, Client, Purpose, Retry};
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::topic_partition::TopicPartition;
use crate::wire::{
    ByTopic, EpochQuery, FetchPartition, FetchRequest, FetchTopic, FetchedPartition, Isolation, OffsetAt,
    OffsetForLeaderEpochRequest, TopicId,
};

/// Time that a fetch may wait. Where no records come, the log may have ended; with a short wait, few requests
/// are needed.
const MAX_WAIT_MS: i32 = 500;

#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    pub isolation: Isolation,
    /// Bytes that one request asks for. A batch that is larger comes all the same.
    pub max_bytes: usize,
    /// Time for which brokers have to say the same until messages that they don't show count as gone. A
    /// broker that has just started, or a new leader, doesn't show all messages at once.
    pub gone_after_ms: u64,
    /// Epoch of the leader that wrote the range's last record, as it was read before, or -1 if it is not
    /// known. Records behind the place where the present leader's log has parted from that leader's are not
    /// those that were read: they count as gone.
    pub leader_epoch: i32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { isolation: Isolation::ReadCommitted, max_bytes: 4 << 20, gone_after_ms: 60_000, leader_epoch: -1 }
    }
}

#[derive(Debug, Clone)]
pub enum RangeError {
    /// The topic was deleted, or made anew. The wanted records are gone.
    AnotherTopic {
        found: Option<TopicId>,
    },
    Client(Error),
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnotherTopic { found: None } => f.write_str("the topic was deleted"),
            Self::AnotherTopic { found: Some(id) } => {
                write!(f, "the topic was deleted and made anew, with the id {id}")
            }
            Self::Client(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for RangeError {}

impl From<Error> for RangeError {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

/// Some of the range's records, which follow those before without a gap in reading.
#[derive(Debug, Clone)]
pub struct RangePart {
    /// Batches of records. The caller has to leave out records before `from_offset` and behind the range's end.
    pub batches: VisibleBatches,
    pub from_offset: i64,
    pub next_offset: i64,
    pub high_watermark: i64,
}

#[derive(Debug, Clone, Copy)]
struct Leader {
    node_id: i32,
    epoch: i32,
}

#[derive(Debug)]
pub struct RangeReader {
    client: Client,
    partition: TopicPartition,
    topic_id: TopicId,
    options: ReadOptions,
    position: i64,
    last: i64,
    leader: Option<Leader>,
    /// Time since which brokers say that the rest, or the topic, isn't there.
    seems_gone_since: Option<Instant>,
    gaps: Vec<RangeInclusive<i64>>,
}

/// The result of one request.
enum Step {
    Part(RangePart),
    /// The position has moved over offsets that are no longer there.
    Skipped,
    /// No records came, and perhaps none ever will, for this reason.
    Nothing(Error),
    /// The log ends before the range does, unless its new leader doesn't know all of it yet.
    Ended,
    /// No broker knows the topic, but a broker that has just started may not know it yet.
    Unknown,
}

impl Client {
    /// Begins to read a range. `topic_id` is the id of the wanted topic; if it is unknown, any topic of the
    /// name is read.
    pub fn read_range(
        &self,
        partition: TopicPartition,
        topic_id: TopicId,
        offsets: RangeInclusive<i64>,
        options: ReadOptions,
    ) -> RangeReader {
        let (position, last) = offsets.into_inner();
        let client = self.clone();
        RangeReader {
            client,
            partition,
            topic_id,
            options,
            position,
            last,
            leader: None,
            seems_gone_since: None,
            gaps: Vec::new(),
        }
    }
}

impl RangeReader {
    /// Returns the next part, or `None` at the end of the range. Asks again while that can help, for as long
    /// as the client's options say. After an error it can be called again.
    ///
    /// # Errors
    /// Fails where the topic was deleted or made anew, or a broker refuses, or can't be asked within the time
    /// for retries.
    pub async fn next(&mut self) -> Result<Option<RangePart>, RangeError> {
        let options = self.client.options();
        let mut retry = Retry::new(options);
        let mut backoff = Backoff::new(options.min_backoff_ms, options.max_backoff_ms);
        while self.position <= self.last {
            let step = match self.step().await {
                Ok(step) => step,
                Err(RangeError::Client(error)) if error.is_retriable() => Step::Nothing(error),
                Err(RangeError::AnotherTopic { found: None }) => Step::Unknown,
                Err(error) => return Err(error),
            };
            if !matches!(step, Step::Ended | Step::Unknown) {
                self.seems_gone_since = None;
            }
            match step {
                Step::Part(part) => return Ok(Some(part)),
                Step::Skipped => {}
                Step::Nothing(error) => {
                    self.leader = None;
                    retry.after(error).await?;
                }
                Step::Ended if self.is_gone() => self.skip_to(self.last.saturating_add(1)),
                Step::Unknown if self.is_gone() => return Err(RangeError::AnotherTopic { found: None }),
                Step::Ended | Step::Unknown => tokio::time::sleep(backoff.next_delay()).await,
            }
        }
        Ok(None)
    }

    /// Returns offsets of the range that are no longer in the log: expired, or lost with a leader.
    pub fn gaps(&self) -> &[RangeInclusive<i64>] {
        &self.gaps
    }

    /// Says whether brokers have said for long enough that the rest is not there.
    fn is_gone(&mut self) -> bool {
        let since = *self.seems_gone_since.get_or_insert_with(Instant::now);
        since.elapsed() >= Duration::from_millis(self.options.gone_after_ms)
    }

    fn skip_to(&mut self, offset: i64) {
        let until = offset.min(self.last.saturating_add(1));
        if until > self.position {
            self.gaps.push(self.position..=until - 1);
            self.position = until;
        }
    }

    async fn step(&mut self) -> Result<Step, RangeError> {
        let leader = match self.leader {
            Some(leader) => leader,
            None => {
                let leader = self.find_leader().await?;
                self.check(leader).await?;
                leader
            }
        };
        self.leader = Some(leader);
        if self.position > self.last {
            return Ok(Step::Skipped);
        }
        let connection = self.client.connection(leader.node_id, Purpose::Read).await?;
        let answer = connection.call(&self.request(leader)).await?;
        let code = answer.error;
        let found = answer.topics.into_iter().flat_map(|topic| topic.partitions).next();
        let Some(fetched) = found.filter(|_| !code.is_error()) else { return Ok(Step::Nothing(self.refused(code))) };
        match fetched.error {
            KafkaErrorCode::NONE => Ok(self.take(fetched)),
            KafkaErrorCode::OFFSET_OUT_OF_RANGE => {
                let earliest = self.client.list_offset(&self.partition, Isolation::ReadUncommitted, OffsetAt::Earliest);
                let earliest = earliest.await?;
                if earliest <= self.position {
                    return Ok(Step::Ended);
                }
                self.skip_to(earliest);
                Ok(Step::Skipped)
            }
            code if code.is_retriable() => Ok(Step::Nothing(self.refused(code))),
            code => Err(self.refused(code).into()),
        }
    }

    fn take(&mut self, fetched: FetchedPartition) -> Step {
        let from_offset = self.position;
        match end_offset(&fetched.records, |_| {}).map(|end| end.max(from_offset)) {
            Some(next_offset) => {
                // Where there is no way past what can't be read, whoever reads the part is told.
                self.position = next_offset;
                Step::Part(RangePart {
                    batches: VisibleBatches::new(&fetched, self.options.isolation, from_offset),
                    from_offset,
                    next_offset,
                    high_watermark: fetched.high_watermark,
                })
            }
            None => {
                match fetched.high_watermark <= self.position {
                    true => Step::Ended,
                    // A transaction that is still open.
                    false => Step::Nothing(self.refused(KafkaErrorCode::OFFSET_NOT_AVAILABLE)),
                }
            }
        }
    }

    /// Asks a leader where its log has parted from the one that the range was in, like a consumer's `check.rs`.
    async fn check(&mut self, leader: Leader) -> Result<(), RangeError> {
        let leader_epoch = self.options.leader_epoch;
        if leader_epoch < 0 || leader.epoch < 0 || leader_epoch == leader.epoch {
            return Ok(());
        }
        let query =
            EpochQuery { partition: self.partition.partition, current_leader_epoch: leader.epoch, leader_epoch };
        let topics = vec![ByTopic { topic: self.partition.topic.clone(), partitions: vec![query] }];
        let connection = self.client.connection(leader.node_id, Purpose::Read).await?;
        let answer = match connection.call(&OffsetForLeaderEpochRequest { topics }).await {
            Ok(answer) => answer,
            // Nobody can say it.
            Err(Error::Unsupported { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let end = answer.topics.into_iter().flat_map(|topic| topic.partitions).next();
        match end {
            Some(end) if end.error.is_retriable() => Err(self.refused(end.error).into()),
            Some(end) if !end.error.is_error() && end.end_offset >= 0 => {
                self.end_at(end.end_offset);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends the range at this offset: the records behind it that are not read yet are gone.
    fn end_at(&mut self, offset: i64) {
        let first_gone = self.position.max(offset);
        if first_gone <= self.last {
            self.gaps.push(first_gone..=self.last);
            self.last = first_gone - 1;
        }
    }

    fn request(&self, leader: Leader) -> FetchRequest {
        let max_bytes = i32::try_from(self.options.max_bytes).unwrap_or(i32::MAX);
        // Nobody else than who was asked for the log.
        let current_leader_epoch = if self.options.leader_epoch < 0 { -1 } else { leader.epoch };
        let partition = FetchPartition {
            partition: self.partition.partition,
            current_leader_epoch,
            offset: self.position,
            max_bytes,
        };
        let topic = FetchTopic { name: self.partition.topic.clone(), id: self.topic_id };
        FetchRequest {
            max_wait_ms: MAX_WAIT_MS,
            min_bytes: 1,
            max_bytes,
            isolation: self.options.isolation,
            topics: vec![ByTopic { topic, partitions: vec![partition] }],
        }
    }

    async fn find_leader(&self) -> Result<Leader, RangeError> {
        let metadata = self.client.metadata(Some(vec![self.partition.topic.clone()])).await?;
        let topic = metadata.topics.into_iter().find(|topic| topic.name == self.partition.topic);
        let code = topic.as_ref().map_or(KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION, |topic| topic.error);
        let topic = match topic.filter(|_| !code.is_error()) {
            Some(topic) => topic,
            None if code == KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                return Err(RangeError::AnotherTopic { found: None })
            }
            None => return Err(self.refused(code).into()),
        };
        if topic.id.is_other(self.topic_id) {
            return Err(RangeError::AnotherTopic { found: Some(topic.id) });
        }
        let partition = topic.partitions.iter().find(|partition| partition.partition == self.partition.partition);
        match partition {
            Some(partition) if partition.leader_id >= 0 => {
                Ok(Leader { node_id: partition.leader_id, epoch: partition.leader_epoch })
            }
            Some(_) => Err(self.refused(KafkaErrorCode::LEADER_NOT_AVAILABLE).into()),
            None => Err(self.refused(KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION).into()),
        }
    }

    fn refused(&self, code: KafkaErrorCode) -> Error {
        Error::Refused { doing: format!("read {} from {}", self.partition, self.position), code, reason: None }
    }
}
