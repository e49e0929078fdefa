//! The inputs that the state machine of a member gets, and the actions that it wants.

use std::sync::Arc;

use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::group::assignor::{Assignor, Member};
use crate::topic_partition::TopicPartition;
use crate::wire::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, SyncGroupRequest, SyncGroupResponse,
};

/// The number of a request, which shows whether an answer is too late.
pub(crate) type Call = u64;

#[derive(Debug, Clone)]
pub(crate) enum Input {
    Tick,
    /// The topics to subscribe to.
    Topics(Vec<Arc<str>>),
    /// A topic has other partitions than at the last assignment.
    PartitionsChanged,
    Joined(Call, Result<JoinGroupResponse, Error>),
    Planned(Call, Result<Vec<(String, Vec<TopicPartition>)>, Error>),
    Synced(Call, Result<SyncGroupResponse, Error>),
    Beaten(Call, Result<KafkaErrorCode, Error>),
    GivenUp(Vec<TopicPartition>),
    /// A commit of this generation was refused.
    Refused {
        generation: i32,
        code: KafkaErrorCode,
    },
    Leave,
    /// The request to leave has ended, with whatever answer.
    Left(Call),
}

#[derive(Debug)]
pub(crate) enum Action {
    Do(Call, Task),
    /// The known coordinator is out of date and has to be looked up again.
    FindCoordinator,
    /// Generation and member id with which offsets are committed from now on.
    Generation(Option<(i32, String)>),
    Assign(Vec<TopicPartition>),
    /// Partitions to give up. The answer has to be [`Input::GivenUp`].
    Revoke(Vec<TopicPartition>),
    Lose(Vec<TopicPartition>),
    /// An error text. The failed step is tried again.
    Trouble(String),
    End(Error),
}

#[derive(Debug)]
pub(crate) enum Task {
    Join(JoinGroupRequest),
    /// Finds the partitions of all the members' topics, and lets the assignor decide.
    Plan {
        assignor: Assignor,
        members: Vec<Member>,
    },
    Sync(SyncGroupRequest),
    Heartbeat(HeartbeatRequest),
    Leave(LeaveGroupRequest),
}
