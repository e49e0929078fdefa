//! The handle of a consumer.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::client::{Client, Purpose};
use crate::consumer::conductor::{coordinator, Channels, Command, Conductor};
use crate::consumer::event::{Claim, Commit, CommitError, Event, Start, StartError, Watermarks};
use crate::consumer::options::ConsumerOptions;
use crate::consumer::records::Records;
use crate::consumer::shared::Shared;
use crate::consumer::topics::{Subscribed, TopicTable};
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::topic_partition::TopicPartition;
use crate::wire::{ByTopic, CommitOffset, Isolation, OffsetAt, OffsetCommitRequest, OffsetCommitResponse};

/// Largest metadata of an offset, which is the broker's default. Longer metadata would be refused for its
/// partition, and taken for the others.
const MAX_METADATA_BYTES: usize = 4096;

/// A handle of a consumer. Cloning is cheap. When the last clone is dropped, the consumer leaves its group.
#[derive(Debug, Clone)]
pub struct Consumer {
    client: Client,
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    group: Arc<str>,
    group_instance_id: Option<Arc<str>>,
    isolation: Isolation,
}

/// The result of [`Consumer::join`].
#[derive(Debug)]
pub struct Joined {
    pub consumer: Consumer,
    /// Events of the consumer. The channel ends when the consumer has ended.
    pub events: mpsc::UnboundedReceiver<Event>,
    pub records: Records,
}

impl Consumer {
    /// Joins the group in the background. Events tell what becomes of that.
    ///
    /// # Errors
    /// Fails on options that can't be used: no topic, a wrong pattern, no group's name, or no assignor.
    pub fn join(client: Client, options: ConsumerOptions) -> Result<Joined, Error> {
        let topics = TopicTable::new(Subscribed::new(&options.topics)?);
        if options.assignors.is_empty() || options.group.is_empty() {
            return Err(Error::Options("A group without a name, or without an assignor, can't be joined".to_owned()));
        }
        let shared = Arc::new(Shared::new(options.fetch, options.max_prefetch_bytes));
        let (command, commands) = mpsc::unbounded_channel();
        let (event, events) = mpsc::unbounded_channel();
        let (record, receiver) = mpsc::unbounded_channel();
        let consumer = Consumer {
            client: client.clone(),
            shared: shared.clone(),
            commands: command,
            group: options.group.as_str().into(),
            group_instance_id: options.group_instance_id.as_deref().map(Arc::from),
            isolation: options.isolation,
        };
        let channels = Channels { commands, records: record, events: event };
        tokio::spawn(Conductor::new(client, options, topics, shared.clone(), channels).run());
        Ok(Joined { consumer, events, records: Records { receiver, shared } })
    }

    /// Begins to fetch, and returns the offset that fetching begins at. Records that were fetched before, and
    /// not yet taken, are dropped: a partition that was started before goes on from here.
    ///
    /// # Errors
    /// Fails where the partition is not ours any more, or its broker can't be asked for the offset or refuses it.
    pub async fn start(&self, claim: &Claim, start: Start) -> Result<i64, StartError> {
        if !self.owns(claim) {
            return Err(StartError::Lost);
        }
        let offset = self.offset_of(claim, start).await.map_err(|error| match error.is_retriable() {
            true => StartError::Passing(error),
            false => StartError::Refused(error),
        })?;
        match self.start_behind(claim, offset, -1) {
            true => Ok(offset),
            false => Err(StartError::Lost),
        }
    }

    /// Begins to fetch at an offset, like [`start`](Self::start), and returns false if the partition is not ours any
    /// more. `leader_epoch` is the epoch of the record before the offset. By it the leader is asked whether it has
    /// the records before. It is -1 if the epochs of the records that were read here are all that is known.
    pub fn start_behind(&self, claim: &Claim, offset: i64, leader_epoch: i32) -> bool {
        self.shared.start(claim, offset, Some(leader_epoch).filter(|epoch| *epoch >= 0))
    }

    /// Says whether the partition was not started again since the start of this number.
    pub fn is_started_as(&self, claim: &Claim, start: u64) -> bool {
        self.shared.is_started_as(claim, start)
    }

    /// Returns the epoch of the leader that wrote the record before this offset, or -1 if it is not known.
    pub fn leader_epoch(&self, claim: &Claim, offset: i64) -> i32 {
        self.shared.leader_epoch(claim, offset).unwrap_or(-1)
    }

    async fn offset_of(&self, claim: &Claim, start: Start) -> Result<i64, Error> {
        let named = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
        let at = match start {
            Start::At(offset) => return Ok(offset),
            Start::Earliest => OffsetAt::Earliest,
            Start::Latest => OffsetAt::Latest,
            Start::Time(timestamp_ms) => OffsetAt::TimestampMs(timestamp_ms),
        };
        self.client.list_offset_or_end(&named, self.isolation, at).await
    }

    /// Stops asking for records until the partition is resumed. An answer that is under way comes all the same.
    pub fn pause(&self, claim: &Claim) {
        self.shared.set_paused(claim, true);
    }

    pub fn resume(&self, claim: &Claim) {
        self.shared.set_paused(claim, false);
    }

    /// Returns the ends of the partition, or `None` before its broker has said them. They are about a second
    /// old if the partition isn't being fetched.
    pub fn watermarks(&self, claim: &Claim) -> Option<Watermarks> {
        self.shared.watermarks(claim)
    }

    /// Says whether the partition is ours, which it is also while it is being revoked.
    pub fn owns(&self, claim: &Claim) -> bool {
        self.shared.owns(claim)
    }

    /// Commits all of these offsets with one request, which is one step at the coordinator.
    ///
    /// # Errors
    /// Fails where a partition is not ours any more, the metadata is too long, or the coordinator can't be
    /// reached or refuses an offset.
    pub async fn commit(&self, commits: &[Commit]) -> Result<(), CommitError> {
        if commits.is_empty() {
            return Ok(());
        }
        let request = self.commit_request(commits)?;
        let answer = self.send_commit(&request).await.map_err(|error| self.failed(error))?;
        let codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|partition| partition.error);
        let fences =
            [KafkaErrorCode::UNKNOWN_MEMBER_ID, KafkaErrorCode::ILLEGAL_GENERATION, KafkaErrorCode::FENCED_INSTANCE_ID];
        let errors: Vec<KafkaErrorCode> = codes.filter(KafkaErrorCode::is_error).collect();
        let Some(code) = errors.iter().find(|code| fences.contains(code)).or(errors.first()).copied() else {
            self.shared.forget_epochs_before(commits);
            return Ok(());
        };
        if fences.contains(&code) {
            self.be_fenced(request.generation_id, code).await;
            if commits.iter().any(|commit| !self.owns(&commit.claim)) {
                return Err(CommitError::Fenced);
            }
            // The group is just going on, with us.
            return Err(CommitError::Passing(self.refused(code)));
        }
        match code {
            KafkaErrorCode::REBALANCE_IN_PROGRESS => Err(CommitError::Passing(self.refused(code))),
            code => Err(self.failed(self.refused(code))),
        }
    }

    /// Builds the request. Ownership and generation are read under one lock: after a partition was lost, no
    /// later generation is used for it.
    fn commit_request(&self, commits: &[Commit]) -> Result<OffsetCommitRequest, CommitError> {
        if let Some(commit) = commits.iter().find(|commit| commit.metadata.len() > MAX_METADATA_BYTES) {
            let bytes = commit.metadata.len();
            let text = format!("The metadata of an offset has {bytes} bytes, and may have {MAX_METADATA_BYTES}");
            return Err(CommitError::Refused(Error::Options(text)));
        }
        let mut state = self.shared.state();
        if commits.iter().any(|commit| state.of(&commit.claim).is_none()) {
            return Err(CommitError::Fenced);
        }
        let Some((generation_id, member_id)) = state.generation.clone() else {
            return Err(CommitError::Passing(self.refused(KafkaErrorCode::REBALANCE_IN_PROGRESS)));
        };
        let offsets = commits.iter().map(|commit| {
            let leader_epoch = state.of(&commit.claim).and_then(|partition| partition.epochs.before(commit.offset));
            let offset = CommitOffset {
                partition: commit.claim.partition,
                offset: commit.offset,
                leader_epoch: leader_epoch.unwrap_or(-1),
                metadata: commit.metadata.clone(),
            };
            (commit.claim.topic.clone(), offset)
        });
        let topics = ByTopic::collect(offsets);
        drop(state);
        Ok(OffsetCommitRequest {
            group: self.group.to_string(),
            generation_id,
            member_id,
            group_instance_id: self.group_instance_id.as_deref().map(str::to_owned),
            topics,
        })
    }

    async fn send_commit(&self, request: &OffsetCommitRequest) -> Result<OffsetCommitResponse, Error> {
        coordinator(&self.client, &self.shared, &self.group, Purpose::Commit).await?.call(request).await
    }

    async fn be_fenced(&self, generation: i32, code: KafkaErrorCode) {
        let (seen, is_seen) = oneshot::channel();
        let _ = self.commands.send(Command::Refused { generation, code, seen });
        // Without a conductor nothing is ours any more.
        let _ = is_seen.await;
    }

    fn failed(&self, error: Error) -> CommitError {
        match error.is_retriable() {
            true => {
                if !matches!(error.kafka_code(), Some(code) if !code.means_stale_coordinator()) {
                    self.shared.state().coordinator = None;
                }
                CommitError::Passing(error)
            }
            false => CommitError::Refused(error),
        }
    }

    fn refused(&self, code: KafkaErrorCode) -> Error {
        Error::Refused { doing: format!("commit offsets of the group '{}'", self.group), code, reason: None }
    }

    /// Answers [`Event::Revoking`]: all work on these partitions is committed or dropped.
    pub fn given_up(&self, claims: &[Claim]) {
        let _ = self.commands.send(Command::GivenUp(claims.to_vec()));
    }

    /// Leaves the group, so that others get the partitions at once. Work that is under way should be
    /// committed before.
    pub async fn leave(&self) {
        let (left, has_left) = oneshot::channel();
        let _ = self.commands.send(Command::Leave(left));
        let _ = has_left.await;
    }
}
