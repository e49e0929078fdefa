//! One member's part in its group, as a state machine without I/O: it gets the time and the answers, and
//! returns what to do.
//!
//! ```text
//! Waiting -- topics are known --> Rejoining -- JoinGroup --> Joining --> (leader: Planning) --> Syncing --> Stable -- heartbeats -->
//!                                     ^                                                                       |
//!                                     +---------- rebalance, other topics, other partitions, errors ----------+
//! ```
//!
//! **Cooperative** (the rule that the group agreed on last decides): the member joins with its partitions and
//! goes on with them. The assignment says which it may keep. The missing ones are *revoked*: such a partition
//! still counts as owned until it was given up. Then the member joins once more, so that the partition can be
//! given to another. **Eager**: everything is revoked before the member joins.
//!
//! A member never joins while partitions are being revoked: an assignment could give back a partition that is
//! just being given up. The time for that is bounded by the rebalance timeout. Partitions that are not given
//! up by then are lost.
//!
//! Ownership ends in three ways: the partition was given up; the broker says that the group has gone on
//! without us (*lost*); the group ended for us. While the broker can't be reached nothing ends: without the
//! broker, nobody else can be given what we own, and a commit needs it too.

mod call;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) use call::{Action, Call, Input, Task};

use crate::client::Backoff;
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::group::assignor::{Assignor, Member};
use crate::group::subscription::{decode_assignment, encode_assignment, Subscription};
use crate::topic_partition::TopicPartition;
use crate::wire::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, MemberAssignment, SupportedProtocol,
    SyncGroupRequest, SyncGroupResponse,
};

const PROTOCOL_TYPE: &str = "consumer";

#[derive(Debug, Clone)]
pub(crate) struct MembershipOptions {
    pub group: String,
    pub group_instance_id: Option<String>,
    pub assignors: Vec<Assignor>,
    pub session_timeout_ms: u64,
    pub heartbeat_interval_ms: u64,
    pub rebalance_timeout_ms: u64,
    pub min_backoff_ms: u64,
    pub max_backoff_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Membership {
    options: MembershipOptions,
    state: State,
    /// Id that the broker has given, or empty before.
    member_id: String,
    /// The last generation whose assignment we have, or -1 before.
    generation: i32,
    /// The assignor that this generation agreed on.
    assignor: Option<Assignor>,
    is_leader: bool,
    topics: Vec<Arc<str>>,
    owned: BTreeSet<TopicPartition>,
    /// Owned partitions that have to be given up before `revoke_until_ms`.
    revoking: BTreeSet<TopicPartition>,
    revoke_until_ms: u64,
    /// True if the group has to be rebalanced.
    wants_to_join: bool,
    backoff: Backoff,
    last_call: Call,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Rejoining { not_before_ms: u64 },
    Joining { call: Call },
    Planning { call: Call, generation: i32, assignor: Assignor },
    Syncing { call: Call, generation: i32, assignor: Assignor },
    Stable { next_beat_ms: u64, beat: Option<Call> },
    Leaving { call: Call },
    Ended,
}

impl Membership {
    pub(crate) fn new(options: MembershipOptions) -> Self {
        Self {
            backoff: Backoff::new(options.min_backoff_ms, options.max_backoff_ms),
            options,
            state: State::Waiting,
            member_id: String::new(),
            generation: -1,
            assignor: None,
            is_leader: false,
            topics: Vec::new(),
            owned: BTreeSet::new(),
            revoking: BTreeSet::new(),
            revoke_until_ms: 0,
            wants_to_join: false,
            last_call: 0,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns when [`Input::Tick`] is due.
    pub(crate) fn wake_at_ms(&self) -> Option<u64> {
        let own = match self.state {
            State::Rejoining { not_before_ms } => Some(not_before_ms),
            State::Stable { next_beat_ms, beat: None } => Some(next_beat_ms),
            _ => None,
        };
        let revoke_until_ms = (!self.revoking.is_empty()).then_some(self.revoke_until_ms);
        own.into_iter().chain(revoke_until_ms).min()
    }

    /// Handles an input and returns what is to be done, in this order.
    pub(crate) fn handle(&mut self, now_ms: u64, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        let out = &mut actions;
        match input {
            Input::Tick => {}
            Input::Topics(topics) => self.subscribe(now_ms, topics),
            Input::PartitionsChanged => self.wants_to_join |= self.is_leader,
            Input::Joined(call, answer) if self.state == (State::Joining { call }) => self.joined(now_ms, answer, out),
            Input::Planned(call, plan) => self.planned(now_ms, call, plan, out),
            Input::Synced(call, answer) => self.synced(now_ms, call, answer, out),
            Input::Beaten(call, answer) => self.beaten(now_ms, call, answer, out),
            Input::GivenUp(partitions) => self.given_up(&partitions),
            Input::Refused { generation, code } => self.commit_refused(now_ms, generation, code, out),
            Input::Leave => self.leave(out),
            Input::Left(call) if self.state == (State::Leaving { call }) => self.state = State::Ended,
            Input::Joined(..) | Input::Left(_) => {}
        }
        self.go_on(now_ms, out);
        actions
    }

    fn subscribe(&mut self, now_ms: u64, topics: Vec<Arc<str>>) {
        if self.state == State::Waiting {
            self.state = State::Rejoining { not_before_ms: now_ms };
        }
        self.wants_to_join |= self.topics != topics;
        self.topics = topics;
    }

    /// Handles everything that has become due.
    fn go_on(&mut self, now_ms: u64, out: &mut Vec<Action>) {
        if !self.revoking.is_empty() && now_ms >= self.revoke_until_ms {
            let late = std::mem::take(&mut self.revoking);
            self.owned.retain(|partition| !late.contains(partition));
            out.push(Action::Lose(late.into_iter().collect()));
        }
        match self.state {
            State::Rejoining { not_before_ms } if now_ms >= not_before_ms => self.join(now_ms, out),
            State::Stable { .. } if self.wants_to_join && self.revoking.is_empty() => self.join(now_ms, out),
            State::Stable { next_beat_ms, beat: None } if now_ms >= next_beat_ms => {
                let call = self.next_call();
                self.state = State::Stable { next_beat_ms, beat: Some(call) };
                out.push(Action::Do(call, Task::Heartbeat(self.heartbeat())));
            }
            _ => {}
        }
    }

    fn next_call(&mut self) -> Call {
        self.last_call += 1;
        self.last_call
    }

    fn revoke(&mut self, now_ms: u64, partitions: BTreeSet<TopicPartition>, out: &mut Vec<Action>) {
        if partitions.is_empty() {
            return;
        }
        // The others' patience began when the broker told somebody first, which may be a heartbeat ago.
        let patience_ms = self.options.rebalance_timeout_ms;
        let patience_ms = patience_ms.saturating_sub(2 * self.options.heartbeat_interval_ms).max(patience_ms / 2);
        self.revoke_until_ms = now_ms + patience_ms;
        out.push(Action::Revoke(partitions.iter().cloned().collect()));
        self.revoking = partitions;
    }

    fn given_up(&mut self, partitions: &[TopicPartition]) {
        for partition in partitions {
            if self.revoking.remove(partition) {
                self.owned.remove(partition);
            }
        }
    }

    fn lose_everything(&mut self, out: &mut Vec<Action>) {
        self.revoking.clear();
        self.generation = -1;
        out.push(Action::Generation(None));
        let lost = std::mem::take(&mut self.owned);
        if !lost.is_empty() {
            out.push(Action::Lose(lost.into_iter().collect()));
        }
    }

    fn join(&mut self, now_ms: u64, out: &mut Vec<Action>) {
        let is_eager = self.assignor.is_some_and(|assignor| !assignor.is_cooperative());
        if is_eager && !self.owned.is_empty() {
            if matches!(self.state, State::Stable { .. }) {
                return self.revoke(now_ms, self.owned.clone(), out);
            }
            // The round has begun without us.
            self.lose_everything(out);
        }
        self.wants_to_join = false;
        let call = self.next_call();
        self.state = State::Joining { call };
        out.push(Action::Do(call, Task::Join(self.join_request())));
    }

    fn join_request(&self) -> JoinGroupRequest {
        let subscription = Subscription {
            topics: self.topics.clone(),
            owned: self.owned.iter().cloned().collect(),
            generation: self.generation,
        };
        let metadata = subscription.encode();
        let protocol =
            |assignor: &Assignor| SupportedProtocol { name: assignor.name().to_owned(), metadata: metadata.clone() };
        JoinGroupRequest {
            group: self.options.group.clone(),
            session_timeout_ms: milliseconds(self.options.session_timeout_ms),
            rebalance_timeout_ms: milliseconds(self.options.rebalance_timeout_ms),
            member_id: self.member_id.clone(),
            group_instance_id: self.options.group_instance_id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocols: self.options.assignors.iter().map(protocol).collect(),
        }
    }

    fn heartbeat(&self) -> HeartbeatRequest {
        HeartbeatRequest {
            group: self.options.group.clone(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.options.group_instance_id.clone(),
        }
    }

    fn joined(&mut self, now_ms: u64, answer: Result<JoinGroupResponse, Error>, out: &mut Vec<Action>) {
        let answer = match answer {
            Ok(answer) if answer.error == KafkaErrorCode::MEMBER_ID_REQUIRED => {
                self.member_id = answer.member_id;
                self.state = State::Rejoining { not_before_ms: now_ms };
                return;
            }
            Ok(answer) if !answer.error.is_error() => answer,
            Ok(answer) => return self.failed(now_ms, self.refused("join", answer.error), out),
            Err(error) => return self.failed(now_ms, error, out),
        };
        let Some(assignor) = Assignor::named(&answer.protocol_name) else {
            let doing =
                format!("join the group '{}', which has agreed on '{}'", self.options.group, answer.protocol_name);
            let code = KafkaErrorCode::INCONSISTENT_GROUP_PROTOCOL;
            return self.end(Error::Refused { doing, code, reason: None }, out);
        };
        if !assignor.is_cooperative() && !self.owned.is_empty() {
            // The group has changed over. The others don't know what we own, and are given it in this round.
            self.lose_everything(out);
        }
        let generation = answer.generation_id;
        self.is_leader = answer.leader == answer.member_id;
        self.member_id = answer.member_id;
        if !self.is_leader {
            return self.sync(generation, assignor, Vec::new(), out);
        }
        let call = self.next_call();
        self.state = State::Planning { call, generation, assignor };
        let mut members = Vec::with_capacity(answer.members.len());
        for member in answer.members {
            let subscription = Subscription::decode(&member.metadata).unwrap_or_else(|malformed| {
                // One that nobody understands gets nothing; the others needn't suffer for it.
                out.push(Action::Trouble(format!(
                    "What the member {} subscribes to can't be read: {malformed}",
                    member.member_id
                )));
                Subscription::default()
            });
            members.push(Member { id: member.member_id, instance_id: member.group_instance_id, subscription });
        }
        out.push(Action::Do(call, Task::Plan { assignor, members }));
    }

    fn planned(
        &mut self,
        now_ms: u64,
        call: Call,
        plan: Result<Vec<(String, Vec<TopicPartition>)>, Error>,
        out: &mut Vec<Action>,
    ) {
        let State::Planning { call: planning, generation, assignor } = self.state else { return };
        match plan {
            _ if call != planning => {}
            Ok(plan) => {
                let assignment = |(member_id, partitions): (String, Vec<TopicPartition>)| MemberAssignment {
                    member_id,
                    assignment: encode_assignment(&partitions),
                };
                self.sync(generation, assignor, plan.into_iter().map(assignment).collect(), out);
            }
            Err(error) => self.failed(now_ms, error, out),
        }
    }

    fn sync(&mut self, generation: i32, assignor: Assignor, assignments: Vec<MemberAssignment>, out: &mut Vec<Action>) {
        let call = self.next_call();
        self.state = State::Syncing { call, generation, assignor };
        let request = SyncGroupRequest {
            group: self.options.group.clone(),
            generation_id: generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.options.group_instance_id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocol_name: assignor.name().to_owned(),
            assignments,
        };
        out.push(Action::Do(call, Task::Sync(request)));
    }

    fn synced(&mut self, now_ms: u64, call: Call, answer: Result<SyncGroupResponse, Error>, out: &mut Vec<Action>) {
        let State::Syncing { call: syncing, generation, assignor } = self.state else { return };
        if call != syncing {
            return;
        }
        let given = match answer {
            Ok(answer) if answer.error.is_error() => {
                return self.failed(now_ms, self.refused("be given partitions by", answer.error), out);
            }
            Ok(answer) => decode_assignment(&answer.assignment),
            Err(error) => return self.failed(now_ms, error, out),
        };
        let given: BTreeSet<TopicPartition> = match given {
            Ok(given) => given.into_iter().collect(),
            Err(malformed) => {
                out.push(Action::Trouble(format!("What the group's leader has assigned can't be read: {malformed}")));
                return self.rejoin_later(now_ms);
            }
        };
        self.backoff.reset();
        (self.generation, self.assignor) = (generation, Some(assignor));
        self.state = State::Stable { next_beat_ms: now_ms + self.options.heartbeat_interval_ms, beat: None };
        out.push(Action::Generation(Some((generation, self.member_id.clone()))));
        let missing: BTreeSet<TopicPartition> = self.owned.difference(&given).cloned().collect();
        let added: Vec<TopicPartition> = given.difference(&self.owned).cloned().collect();
        self.owned.extend(given);
        self.wants_to_join |= !missing.is_empty();
        self.revoke(now_ms, missing, out);
        if !added.is_empty() {
            out.push(Action::Assign(added));
        }
    }

    fn beaten(&mut self, now_ms: u64, call: Call, answer: Result<KafkaErrorCode, Error>, out: &mut Vec<Action>) {
        match self.state {
            State::Stable { beat, .. } if beat == Some(call) => {}
            _ => return,
        }
        let next_beat_ms = now_ms + self.options.heartbeat_interval_ms;
        self.state = State::Stable { next_beat_ms, beat: None };
        match answer {
            Ok(KafkaErrorCode::NONE) => self.backoff.reset(),
            Ok(KafkaErrorCode::REBALANCE_IN_PROGRESS) => self.wants_to_join = true,
            Ok(code) => self.failed(now_ms, self.refused("stay in", code), out),
            Err(error) => self.failed(now_ms, error, out),
        }
    }

    fn commit_refused(&mut self, now_ms: u64, generation: i32, code: KafkaErrorCode, out: &mut Vec<Action>) {
        // While it joins, what becomes of it is said there.
        if generation == self.generation && matches!(self.state, State::Stable { .. }) {
            self.failed(now_ms, self.refused("commit offsets in", code), out);
        }
    }

    /// Handles a failed call: decides which partitions are lost, and how to go on.
    fn failed(&mut self, now_ms: u64, error: Error, out: &mut Vec<Action>) {
        match error.kafka_code() {
            Some(KafkaErrorCode::REBALANCE_IN_PROGRESS) => {
                self.wants_to_join = true;
                if !matches!(self.state, State::Stable { .. }) {
                    self.state = State::Rejoining { not_before_ms: now_ms };
                }
                return;
            }
            Some(code @ (KafkaErrorCode::UNKNOWN_MEMBER_ID | KafkaErrorCode::ILLEGAL_GENERATION)) => {
                if code == KafkaErrorCode::UNKNOWN_MEMBER_ID {
                    self.member_id.clear();
                }
                if !self.owned.is_empty() {
                    out.push(Action::Trouble(error.to_string()));
                }
                self.lose_everything(out);
                self.state = State::Rejoining { not_before_ms: now_ms };
                return;
            }
            _ if !error.is_retriable() => return self.end(error, out),
            _ => {}
        }
        out.push(Action::FindCoordinator);
        out.push(Action::Trouble(error.to_string()));
        match self.state {
            State::Stable { .. } => {
                // The session doesn't last longer for it.
                let next_beat_ms = now_ms + self.delay_ms().min(self.options.heartbeat_interval_ms);
                self.state = State::Stable { next_beat_ms, beat: None };
            }
            _ => self.rejoin_later(now_ms),
        }
    }

    fn rejoin_later(&mut self, now_ms: u64) {
        self.state = State::Rejoining { not_before_ms: now_ms + self.delay_ms() };
    }

    fn delay_ms(&mut self) -> u64 {
        self.backoff.next_delay().as_millis() as u64
    }

    fn refused(&self, doing: &str, code: KafkaErrorCode) -> Error {
        Error::Refused { doing: format!("{doing} the group '{}'", self.options.group), code, reason: None }
    }

    fn end(&mut self, error: Error, out: &mut Vec<Action>) {
        self.lose_everything(out);
        self.state = State::Ended;
        out.push(Action::End(error));
    }

    fn leave(&mut self, out: &mut Vec<Action>) {
        if matches!(self.state, State::Leaving { .. } | State::Ended) {
            return;
        }
        self.lose_everything(out);
        // A static member is expected to come back.
        if self.member_id.is_empty() || self.options.group_instance_id.is_some() {
            self.state = State::Ended;
            return;
        }
        let call = self.next_call();
        self.state = State::Leaving { call };
        let (group, member_id) = (self.options.group.clone(), self.member_id.clone());
        out.push(Action::Do(call, Task::Leave(LeaveGroupRequest { group, member_id, group_instance_id: None })));
    }
}

/// Converts a duration to the protocol's type. A duration that is too long for it becomes the longest one.
fn milliseconds(duration_ms: u64) -> i32 {
    i32::try_from(duration_ms).unwrap_or(i32::MAX)
}
