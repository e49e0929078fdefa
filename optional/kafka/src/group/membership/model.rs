//! A small group coordinator for tests, which behaves as Kafka's own.

use std::collections::{BTreeMap, BTreeSet};

use crate::error_code::KafkaErrorCode;
use crate::wire::{
    GroupMember, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse,
};

/// The number of a request that waits for its answer.
pub(super) type ReplyTo = u64;

#[derive(Debug, Clone)]
pub(super) enum Reply {
    Joined(JoinGroupResponse),
    Synced(SyncGroupResponse),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Empty,
    Preparing { until_ms: u64 },
    Completing,
    Stable,
}

#[derive(Debug)]
struct Known {
    request: JoinGroupRequest,
    last_seen_ms: u64,
    waits_for_join: Option<ReplyTo>,
    waits_for_sync: Option<ReplyTo>,
    assignment: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Coordinator {
    pub generation: i32,
    phase: Phase,
    leader: String,
    protocol: String,
    members: BTreeMap<String, Known>,
    promised_ids: BTreeSet<String>,
    last_id: u64,
    pub replies: Vec<(ReplyTo, Reply)>,
}

impl Coordinator {
    pub(super) fn new() -> Self {
        Self {
            generation: 0,
            phase: Phase::Empty,
            leader: String::new(),
            protocol: String::new(),
            members: BTreeMap::new(),
            promised_ids: BTreeSet::new(),
            last_id: 0,
            replies: Vec::new(),
        }
    }

    /// Says whether a commit with this generation and member id would be accepted.
    pub(super) fn takes_commits_of(&self, generation: i32, member_id: &str) -> bool {
        let settled = matches!(self.phase, Phase::Stable | Phase::Preparing { .. });
        settled && generation == self.generation && self.members.contains_key(member_id)
    }

    pub(super) fn join(&mut self, now_ms: u64, request: JoinGroupRequest, reply_to: ReplyTo) {
        if request.member_id.is_empty() {
            self.last_id += 1;
            let member_id = format!("member-{}", self.last_id);
            self.promised_ids.insert(member_id.clone());
            return self.refuse_join(reply_to, KafkaErrorCode::MEMBER_ID_REQUIRED, member_id);
        }
        let id = request.member_id.clone();
        let is_new = self.promised_ids.remove(&id);
        if !is_new && !self.members.contains_key(&id) {
            return self.refuse_join(reply_to, KafkaErrorCode::UNKNOWN_MEMBER_ID, id);
        }
        let metadata = request.protocols[0].metadata.clone();
        let before = self.members.get(&id).map(|known| known.request.protocols[0].metadata.clone());
        let is_the_same = before == Some(metadata);
        let known = self.members.entry(id.clone()).or_insert_with(|| Known {
            request: request.clone(),
            last_seen_ms: now_ms,
            waits_for_join: None,
            waits_for_sync: None,
            assignment: Vec::new(),
        });
        known.request = request;
        known.last_seen_ms = now_ms;
        match self.phase {
            Phase::Completing if is_the_same => self.answer_join(&id, reply_to),
            Phase::Stable if is_the_same && id != self.leader => self.answer_join(&id, reply_to),
            _ => {
                known.waits_for_join = Some(reply_to);
                self.prepare(now_ms);
            }
        }
        self.complete_if_due(now_ms);
    }

    pub(super) fn sync(&mut self, now_ms: u64, request: SyncGroupRequest, reply_to: ReplyTo) {
        let code = self.check(&request.member_id, request.generation_id);
        if code.is_error() {
            return self.answer_sync(reply_to, code, Vec::new());
        }
        let known = self.members.get_mut(&request.member_id).unwrap();
        known.last_seen_ms = now_ms;
        match self.phase {
            Phase::Preparing { .. } => self.answer_sync(reply_to, KafkaErrorCode::REBALANCE_IN_PROGRESS, Vec::new()),
            Phase::Completing => {
                known.waits_for_sync = Some(reply_to);
                if request.member_id == self.leader {
                    self.share_out(now_ms, request);
                }
            }
            Phase::Stable => {
                let assignment = known.assignment.clone();
                self.answer_sync(reply_to, KafkaErrorCode::NONE, assignment);
            }
            Phase::Empty => unreachable!("there is a member"),
        }
    }

    pub(super) fn heartbeat(&mut self, now_ms: u64, request: &HeartbeatRequest) -> KafkaErrorCode {
        let code = self.check(&request.member_id, request.generation_id);
        if code.is_error() {
            return code;
        }
        self.members.get_mut(&request.member_id).unwrap().last_seen_ms = now_ms;
        match self.phase {
            Phase::Preparing { .. } => KafkaErrorCode::REBALANCE_IN_PROGRESS,
            _ => KafkaErrorCode::NONE,
        }
    }

    pub(super) fn remove(&mut self, now_ms: u64, member_id: &str) {
        if self.members.remove(member_id).is_some() {
            self.prepare(now_ms);
            self.complete_if_due(now_ms);
        }
    }

    pub(super) fn tick(&mut self, now_ms: u64) {
        let silent = self.members.iter().filter(|(_, known)| {
            let waits = known.waits_for_join.is_some() || known.waits_for_sync.is_some();
            !waits && known.last_seen_ms + (known.request.session_timeout_ms as u64) < now_ms
        });
        for id in silent.map(|(id, _)| id.clone()).collect::<Vec<String>>() {
            self.remove(now_ms, &id);
        }
        self.complete_if_due(now_ms);
    }

    fn check(&self, member_id: &str, generation: i32) -> KafkaErrorCode {
        match self.members.contains_key(member_id) {
            false => KafkaErrorCode::UNKNOWN_MEMBER_ID,
            true if generation != self.generation => KafkaErrorCode::ILLEGAL_GENERATION,
            true => KafkaErrorCode::NONE,
        }
    }

    fn prepare(&mut self, now_ms: u64) {
        if matches!(self.phase, Phase::Preparing { .. }) {
            return;
        }
        let waiting: Vec<ReplyTo> = self.members.values_mut().filter_map(|known| known.waits_for_sync.take()).collect();
        for reply_to in waiting {
            self.answer_sync(reply_to, KafkaErrorCode::REBALANCE_IN_PROGRESS, Vec::new());
        }
        let patience = self.members.values().map(|known| known.request.rebalance_timeout_ms as u64).max();
        self.phase = Phase::Preparing { until_ms: now_ms + patience.unwrap_or_default() };
    }

    fn complete_if_due(&mut self, now_ms: u64) {
        let Phase::Preparing { until_ms } = self.phase else { return };
        if now_ms < until_ms && self.members.values().any(|known| known.waits_for_join.is_none()) {
            return;
        }
        self.members.retain(|_, known| known.waits_for_join.is_some());
        self.generation += 1;
        if self.members.is_empty() {
            self.phase = Phase::Empty;
            return;
        }
        self.phase = Phase::Completing;
        if !self.members.contains_key(&self.leader) {
            self.leader = self.members.keys().next().unwrap().clone();
        }
        let everybody = |name: &str| {
            self.members.values().all(|known| known.request.protocols.iter().any(|protocol| protocol.name == name))
        };
        let protocols = &self.members.values().next().unwrap().request.protocols;
        self.protocol = protocols.iter().find(|protocol| everybody(&protocol.name)).unwrap().name.clone();
        let waiting: Vec<(String, ReplyTo)> = self
            .members
            .iter_mut()
            .filter_map(|(id, known)| known.waits_for_join.take().map(|reply_to| (id.clone(), reply_to)))
            .collect();
        for (id, reply_to) in waiting {
            self.members.get_mut(&id).unwrap().last_seen_ms = now_ms;
            self.answer_join(&id, reply_to);
        }
    }

    fn share_out(&mut self, now_ms: u64, request: SyncGroupRequest) {
        for known in self.members.values_mut() {
            known.assignment.clear();
        }
        for given in request.assignments {
            if let Some(known) = self.members.get_mut(&given.member_id) {
                known.assignment = given.assignment;
            }
        }
        self.phase = Phase::Stable;
        let waiting: Vec<(ReplyTo, Vec<u8>)> = self
            .members
            .values_mut()
            .filter_map(|known| {
                known.last_seen_ms = now_ms;
                known.waits_for_sync.take().map(|reply_to| (reply_to, known.assignment.clone()))
            })
            .collect();
        for (reply_to, assignment) in waiting {
            self.answer_sync(reply_to, KafkaErrorCode::NONE, assignment);
        }
    }

    fn answer_join(&mut self, member_id: &str, reply_to: ReplyTo) {
        let members = match member_id == self.leader {
            true => self.members.iter().map(|(id, known)| group_member(id, known, &self.protocol)).collect(),
            false => Vec::new(),
        };
        self.replies.push((
            reply_to,
            Reply::Joined(JoinGroupResponse {
                error: KafkaErrorCode::NONE,
                generation_id: self.generation,
                protocol_name: self.protocol.clone(),
                leader: self.leader.clone(),
                member_id: member_id.to_owned(),
                members,
            }),
        ));
    }

    fn refuse_join(&mut self, reply_to: ReplyTo, error: KafkaErrorCode, member_id: String) {
        self.replies.push((
            reply_to,
            Reply::Joined(JoinGroupResponse {
                error,
                generation_id: -1,
                protocol_name: String::new(),
                leader: String::new(),
                member_id,
                members: Vec::new(),
            }),
        ));
    }

    fn answer_sync(&mut self, reply_to: ReplyTo, error: KafkaErrorCode, assignment: Vec<u8>) {
        self.replies.push((reply_to, Reply::Synced(SyncGroupResponse { error, assignment })));
    }
}

fn group_member(id: &str, known: &Known, protocol: &str) -> GroupMember {
    let named = known.request.protocols.iter().find(|each| each.name == protocol);
    GroupMember {
        member_id: id.to_owned(),
        group_instance_id: None,
        metadata: named.map(|protocol| protocol.metadata.clone()).unwrap_or_default(),
    }
}
