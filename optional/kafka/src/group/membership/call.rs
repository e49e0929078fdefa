//! What the machine is told, and what it wants to be done.

use std::sync::Arc;

use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::group::assignor::{Assignor, Member};
use crate::topic_partition::TopicPartition;
use crate::wire::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, SyncGroupRequest, SyncGroupResponse,
};

/// Counts what was asked for, so that an answer that comes too late is known.
pub(crate) type Call = u64;

#[derive(Debug, Clone)]
pub(crate) enum Input {
    Tick,
    /// What to subscribe to.
    Topics(Vec<Arc<str>>),
    /// A topic has other partitions than when they were shared out.
    PartitionsChanged,
    Joined(Call, Result<JoinGroupResponse, Error>),
    Planned(Call, Result<Vec<(String, Vec<TopicPartition>)>, Error>),
    Synced(Call, Result<SyncGroupResponse, Error>),
    Beaten(Call, Result<KafkaErrorCode, Error>),
    GivenUp(Vec<TopicPartition>),
    /// A commit of this generation was.
    Refused {
        generation: i32,
        code: KafkaErrorCode,
    },
    Leave,
    /// Whatever was answered.
    Left(Call),
}

#[derive(Debug)]
pub(crate) enum Action {
    Do(Call, Task),
    /// What is known of it is out of date.
    FindCoordinator,
    /// In whose name, generation and member, offsets are committed from now on.
    Generation(Option<(i32, String)>),
    Assign(Vec<TopicPartition>),
    /// To be answered with [`Input::GivenUp`].
    Revoke(Vec<TopicPartition>),
    Lose(Vec<TopicPartition>),
    /// Something is tried again.
    Trouble(String),
    End(Error),
}

#[derive(Debug)]
pub(crate) enum Task {
    Join(JoinGroupRequest),
    /// Find the partitions of all the members' topics, and let the assignor decide.
    Plan {
        assignor: Assignor,
        members: Vec<Member>,
    },
    Sync(SyncGroupRequest),
    Heartbeat(HeartbeatRequest),
    Leave(LeaveGroupRequest),
}
