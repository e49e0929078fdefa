//! Groups of state machines against a model of the coordinator: messages are late and get lost; members
//! freeze, die, leave and come; topics grow.
//!
//! At every moment, no two members could commit for the same partition. When all faults have stopped, every
//! partition gets an owner, and no member has two more than another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use super::model::{Coordinator, Reply, ReplyTo};
use super::*;
use crate::group::assignor::PartitionCounts;

const SEEDS: u64 = 150;
const SESSION_MS: u64 = 6_000;
const REBALANCE_MS: u64 = 20_000;
const STORM_MS: u64 = 120_000;
/// Time in which every member notices the end of the faults, is thrown out if it has to, and comes to rest.
const CALM_MS: u64 = 90_000;

enum Happening {
    /// A request comes to the coordinator.
    Asked {
        node: usize,
        call: Call,
        task: Task,
    },
    Told {
        node: usize,
        input: Input,
    },
    CoordinatorTicks,
    Fault,
}

struct Node {
    machine: Membership,
    alive: bool,
    frozen_until_ms: u64,
    generation: Option<(i32, String)>,
    owned: BTreeSet<TopicPartition>,
}

struct World {
    random: fastrand::Rng,
    now_ms: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    last_number: u64,
    nodes: Vec<Node>,
    coordinator: Coordinator,
    /// Members with their calls that wait for the coordinator's answer.
    waiting: BTreeMap<ReplyTo, (usize, Call)>,
    topics: PartitionCounts,
    calm: bool,
    assignors: fn(usize) -> Vec<Assignor>,
    ended: Vec<Error>,
}

fn options(assignors: Vec<Assignor>) -> MembershipOptions {
    MembershipOptions {
        group: "g".into(),
        group_instance_id: None,
        assignors,
        session_timeout_ms: SESSION_MS,
        heartbeat_interval_ms: 2_000,
        rebalance_timeout_ms: REBALANCE_MS,
        min_backoff_ms: 50,
        max_backoff_ms: 1_000,
    }
}

impl World {
    fn new(seed: u64, assignors: fn(usize) -> Vec<Assignor>) -> Self {
        fastrand::seed(seed);
        let topics = [(Arc::from("a"), 4), (Arc::from("b"), 3)].into();
        let mut world = Self {
            random: fastrand::Rng::with_seed(seed),
            now_ms: 0,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            last_number: 0,
            nodes: Vec::new(),
            coordinator: Coordinator::new(),
            waiting: BTreeMap::new(),
            topics,
            calm: false,
            assignors,
            ended: Vec::new(),
        };
        world.at(0, Happening::CoordinatorTicks);
        world.at(3_000, Happening::Fault);
        for _ in 0..3 {
            world.add_node();
        }
        world
    }

    fn at(&mut self, after_ms: u64, happening: Happening) {
        self.last_number += 1;
        self.queue.push(Reverse((self.now_ms + after_ms, self.last_number)));
        self.happenings.insert(self.last_number, happening);
    }

    fn latency_ms(&mut self) -> u64 {
        match self.random.u8(..) {
            0..4 if !self.calm => self.random.u64(0..3_000),
            _ => self.random.u64(1..20),
        }
    }

    fn add_node(&mut self) {
        let machine = Membership::new(options((self.assignors)(self.nodes.len())));
        let node = Node { machine, alive: true, frozen_until_ms: 0, generation: None, owned: BTreeSet::new() };
        self.nodes.push(node);
        let topics = self.topics.keys().cloned().collect();
        self.at(0, Happening::Told { node: self.nodes.len() - 1, input: Input::Topics(topics) });
    }

    fn run(&mut self, for_ms: u64) {
        let until_ms = self.now_ms + for_ms;
        while let Some(Reverse((at_ms, number))) = self.queue.pop() {
            if at_ms > until_ms {
                self.queue.push(Reverse((at_ms, number)));
                break;
            }
            self.now_ms = at_ms;
            let happening = self.happenings.remove(&number).unwrap();
            self.happens(happening);
            self.no_two_owners();
        }
        self.now_ms = until_ms;
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::CoordinatorTicks => {
                self.coordinator.tick(self.now_ms);
                self.at(200, Happening::CoordinatorTicks);
            }
            Happening::Fault => {
                if !self.calm {
                    self.fault();
                    let next_ms = self.random.u64(200..8_000);
                    self.at(next_ms, Happening::Fault);
                }
            }
            Happening::Asked { node, call, task } => self.asked(node, call, task),
            Happening::Told { node, input } => self.told(node, input),
        }
        for (reply_to, reply) in std::mem::take(&mut self.coordinator.replies) {
            let Some((node, call)) = self.waiting.remove(&reply_to) else { continue };
            let input = match reply {
                Reply::Joined(answer) => Input::Joined(call, Ok(answer)),
                Reply::Synced(answer) => Input::Synced(call, Ok(answer)),
            };
            self.answer(node, input);
        }
    }

    /// Delivers an answer, which may get lost.
    fn answer(&mut self, node: usize, input: Input) {
        let input = match input {
            input if self.calm || self.random.u8(..) > 6 => input,
            Input::Joined(call, _) => Input::Joined(call, Err(broken())),
            Input::Synced(call, _) => Input::Synced(call, Err(broken())),
            Input::Beaten(call, _) => Input::Beaten(call, Err(broken())),
            other => other,
        };
        let latency_ms = self.latency_ms();
        self.at(latency_ms, Happening::Told { node, input });
    }

    fn asked(&mut self, node: usize, call: Call, task: Task) {
        if !self.nodes[node].alive && !matches!(task, Task::Leave(_)) {
            return;
        }
        let reply_to = self.last_number + 1_000_000 * call + node as u64 * 1_000_000_000;
        match task {
            Task::Join(request) => {
                self.waiting.insert(reply_to, (node, call));
                self.coordinator.join(self.now_ms, request, reply_to);
            }
            Task::Sync(request) => {
                self.waiting.insert(reply_to, (node, call));
                self.coordinator.sync(self.now_ms, request, reply_to);
            }
            Task::Heartbeat(request) => {
                let code = self.coordinator.heartbeat(self.now_ms, &request);
                self.answer(node, Input::Beaten(call, Ok(code)));
            }
            Task::Leave(request) => {
                self.coordinator.remove(self.now_ms, &request.member_id);
                self.answer(node, Input::Left(call));
            }
            Task::Plan { .. } => unreachable!("it is the node's own work"),
        }
    }

    fn told(&mut self, node: usize, input: Input) {
        let (until_ms, now_ms) = (self.nodes[node].frozen_until_ms, self.now_ms);
        if until_ms > now_ms {
            return self.at(until_ms - now_ms, Happening::Told { node, input });
        }
        if !self.nodes[node].alive {
            return;
        }
        let Node { machine, owned, .. } = &mut self.nodes[node];
        let gives_up = matches!(input, Input::GivenUp(_));
        let actions = machine.handle(now_ms, input);
        if gives_up {
            // The machine alone knows whether it was in time.
            owned.retain(|partition| machine.owned.contains(partition));
        }
        for action in actions {
            self.act(node, action);
        }
        if let Some(wake_at_ms) = self.nodes[node].machine.wake_at_ms() {
            self.at(wake_at_ms.saturating_sub(now_ms), Happening::Told { node, input: Input::Tick });
        }
    }

    fn act(&mut self, node: usize, action: Action) {
        match action {
            Action::Do(call, Task::Plan { assignor, members }) => {
                let plan = assignor.assign(&members, &self.topics).into_iter().collect();
                let latency_ms = self.latency_ms();
                self.at(latency_ms, Happening::Told { node, input: Input::Planned(call, Ok(plan)) });
            }
            Action::Do(call, task) => {
                let latency_ms = self.latency_ms();
                if self.calm || self.random.u8(..) > 6 {
                    return self.at(latency_ms, Happening::Asked { node, call, task });
                }
                let input = match task {
                    Task::Join(_) => Input::Joined(call, Err(broken())),
                    Task::Sync(_) => Input::Synced(call, Err(broken())),
                    Task::Heartbeat(_) => Input::Beaten(call, Err(broken())),
                    _ => Input::Left(call),
                };
                self.at(latency_ms, Happening::Told { node, input });
            }
            Action::Generation(generation) => self.nodes[node].generation = generation,
            Action::Assign(partitions) => {
                for partition in partitions {
                    assert!(self.nodes[node].owned.insert(partition), "assigned what it has");
                }
            }
            Action::Revoke(partitions) => {
                assert!(partitions.iter().all(|each| self.nodes[node].owned.contains(each)));
                let longest_ms = if self.random.u8(..) < 8 { 2 * REBALANCE_MS } else { 2_000 };
                for partition in partitions {
                    let after_ms = self.random.u64(0..longest_ms);
                    self.at(after_ms, Happening::Told { node, input: Input::GivenUp(vec![partition]) });
                }
            }
            Action::Lose(partitions) => {
                for partition in partitions {
                    self.nodes[node].owned.remove(&partition);
                }
            }
            Action::End(error) => self.ended.push(error),
            Action::FindCoordinator | Action::Trouble(_) => {}
        }
    }

    fn fault(&mut self) {
        let node = self.random.usize(..self.nodes.len());
        let alive = self.nodes.iter().filter(|node| node.alive).count();
        match self.random.u8(0..8) {
            0 if alive > 1 => self.nodes[node].alive = false,
            1 | 2 if alive < 6 => self.add_node(),
            3 if self.nodes[node].alive && alive > 1 => {
                self.told(node, Input::Leave);
                self.nodes[node].alive = false;
            }
            4 | 5 => self.nodes[node].frozen_until_ms = self.now_ms + self.random.u64(0..3 * SESSION_MS),
            6 => {
                *self.topics.get_mut("a").unwrap() += 1;
                self.everybody_is_told(|_| Input::PartitionsChanged);
            }
            _ => {
                self.topics.insert(format!("c{}", self.random.u8(0..3)).into(), 2);
                self.everybody_is_told(|topics| Input::Topics(topics.keys().cloned().collect()));
            }
        }
    }

    fn everybody_is_told(&mut self, what: fn(&PartitionCounts) -> Input) {
        for node in 0..self.nodes.len() {
            let (input, after_ms) = (what(&self.topics), self.random.u64(0..2_000));
            self.at(after_ms, Happening::Told { node, input });
        }
    }

    fn no_two_owners(&self) {
        let mut owners: BTreeMap<&TopicPartition, usize> = BTreeMap::new();
        for (number, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.alive) {
            let Some((generation, member_id)) = &node.generation else { continue };
            if !self.coordinator.takes_commits_of(*generation, member_id) {
                continue;
            }
            for partition in &node.owned {
                if let Some(other) = owners.insert(partition, number) {
                    panic!("{partition} belongs to {other} and {number} at {} ms", self.now_ms);
                }
            }
        }
    }

    fn at_rest(&self) {
        let alive: Vec<&Node> = self.nodes.iter().filter(|node| node.alive).collect();
        let owned: Vec<&TopicPartition> = alive.iter().flat_map(|node| &node.owned).collect();
        let distinct: BTreeSet<&TopicPartition> = owned.iter().copied().collect();
        let all: usize = self.topics.values().sum();
        assert_eq!((owned.len(), distinct.len()), (all, all), "{:?}", self.coordinator);
        let loads = alive.iter().map(|node| node.owned.len());
        let (least, most) = (loads.clone().min().unwrap(), loads.max().unwrap());
        assert!(most - least <= 1 || self.coordinator_is_eager(), "{least} to {most}");
    }

    fn coordinator_is_eager(&self) -> bool {
        self.nodes.iter().any(|node| node.alive && node.machine.assignor == Some(Assignor::Range))
    }
}

fn broken() -> Error {
    Error::Network { broker: "1".into(), doing: "ask".into(), reason: "it is a test".into() }
}

fn storm(assignors: fn(usize) -> Vec<Assignor>) {
    let mut generations = 0;
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut world = World::new(seed, assignors);
        world.run(STORM_MS);
        world.calm = true;
        world.run(CALM_MS);
        world.at_rest();
        assert!(world.ended.is_empty(), "{:?}", world.ended);
        generations += world.coordinator.generation;
    }
    assert!(generations > 10 * SEEDS as i32, "enough has happened");
}

#[test]
fn nobody_shares_a_partition_and_all_come_to_rest() {
    storm(|_| vec![Assignor::CooperativeSticky, Assignor::Range]);
}

#[test]
fn so_it_is_where_everything_is_given_up_first() {
    storm(|_| vec![Assignor::Range]);
}

#[test]
fn so_it_is_where_some_know_only_the_old_way() {
    storm(|node| match node % 3 {
        2 => vec![Assignor::Range],
        _ => vec![Assignor::CooperativeSticky, Assignor::Range],
    });
}

fn joined_alone() -> (Membership, Vec<TopicPartition>) {
    let mut machine = Membership::new(options(vec![Assignor::CooperativeSticky]));
    let partitions = vec![TopicPartition::new("a", 0), TopicPartition::new("a", 1)];
    machine.handle(0, Input::Topics(vec!["a".into()]));
    let answer = JoinGroupResponse {
        error: KafkaErrorCode::NONE,
        generation_id: 1,
        protocol_name: "cooperative-sticky".into(),
        leader: "another".into(),
        member_id: "m".into(),
        members: Vec::new(),
    };
    machine.handle(0, Input::Joined(1, Ok(answer)));
    let assignment = encode_assignment(&partitions);
    let answer = SyncGroupResponse { error: KafkaErrorCode::NONE, assignment };
    let actions = machine.handle(0, Input::Synced(2, Ok(answer)));
    assert!(
        matches!(&actions[..], [Action::Generation(Some((1, id))), Action::Assign(given)] if id == "m" && *given == partitions)
    );
    (machine, partitions)
}

#[test]
fn a_fenced_commit_of_the_present_generation_means_that_all_is_lost() {
    let (mut machine, partitions) = joined_alone();
    assert!(machine.handle(1, Input::Refused { generation: 0, code: KafkaErrorCode::ILLEGAL_GENERATION }).is_empty());
    let actions = machine.handle(1, Input::Refused { generation: 1, code: KafkaErrorCode::ILLEGAL_GENERATION });
    assert!(actions.iter().any(|action| matches!(action, Action::Lose(lost) if *lost == partitions)), "{actions:?}");
    assert!(actions
        .iter()
        .any(|action| matches!(action, Action::Do(_, Task::Join(request)) if request.member_id == "m")));
}

#[test]
fn what_does_not_pass_ends_it() {
    let (mut machine, _) = joined_alone();
    let actions = machine.handle(1, Input::Refused { generation: 1, code: KafkaErrorCode::FENCED_INSTANCE_ID });
    assert!(matches!(&actions[..], [Action::Generation(None), Action::Lose(_), Action::End(_)]), "{actions:?}");
    assert!(machine.has_ended() && machine.wake_at_ms().is_none());
    assert!(machine.handle(2, Input::Leave).is_empty());
}

#[test]
fn heartbeats_go_on_while_partitions_are_given_up() {
    let (mut machine, partitions) = joined_alone();
    let actions = machine.handle(2_000, Input::Tick);
    let [Action::Do(call, Task::Heartbeat(_))] = actions[..] else { panic!("{actions:?}") };
    let actions = machine.handle(2_000, Input::Beaten(call, Ok(KafkaErrorCode::REBALANCE_IN_PROGRESS)));
    let [Action::Do(call, Task::Join(_))] = actions[..] else { panic!("{actions:?}") };
    let answer = JoinGroupResponse {
        error: KafkaErrorCode::NONE,
        generation_id: 2,
        protocol_name: "cooperative-sticky".into(),
        leader: "another".into(),
        member_id: "m".into(),
        members: Vec::new(),
    };
    let actions = machine.handle(2_100, Input::Joined(call, Ok(answer)));
    let [Action::Do(call, Task::Sync(_))] = actions[..] else { panic!("{actions:?}") };
    let assignment = encode_assignment(&partitions[..1]);
    let answer = SyncGroupResponse { error: KafkaErrorCode::NONE, assignment };
    let actions = machine.handle(2_200, Input::Synced(call, Ok(answer)));
    assert!(
        matches!(&actions[..], [Action::Generation(Some((2, _))), Action::Revoke(gone)] if *gone == partitions[1..])
    );
    let actions = machine.handle(4_200, Input::Tick);
    assert!(matches!(actions[..], [Action::Do(_, Task::Heartbeat(_))]), "{actions:?}");
    let actions = machine.handle(4_300, Input::GivenUp(partitions[1..].to_vec()));
    let [Action::Do(_, Task::Join(request))] = &actions[..] else { panic!("{actions:?}") };
    let told = Subscription::decode(&request.protocols[0].metadata).unwrap();
    assert_eq!((told.owned, told.generation), (partitions[..1].to_vec(), 2));
}

#[test]
fn a_heartbeat_that_fails_is_repeated_no_later_than_the_next_was_due() {
    let (mut machine, _) = joined_alone();
    machine.options.heartbeat_interval_ms = 300;
    let mut now_ms = machine.wake_at_ms().unwrap();
    for _ in 0..10 {
        let actions = machine.handle(now_ms, Input::Tick);
        let [Action::Do(call, Task::Heartbeat(_))] = actions[..] else { panic!("{actions:?}") };
        machine.handle(now_ms, Input::Beaten(call, Err(broken())));
        let next_ms = machine.wake_at_ms().unwrap();
        assert!((now_ms + 1..=now_ms + 300).contains(&next_ms), "{next_ms} after {now_ms}");
        now_ms = next_ms;
    }
}

#[test]
fn what_is_given_up_too_late_is_lost() {
    let (mut machine, partitions) = joined_alone();
    machine.revoking = [partitions[0].clone()].into();
    machine.revoke_until_ms = 1_000;
    machine.wants_to_join = true;
    assert_eq!(machine.wake_at_ms(), Some(1_000));
    let actions = machine.handle(1_000, Input::Tick);
    assert!(
        matches!(&actions[..], [Action::Lose(lost), Action::Do(_, Task::Join(_))] if *lost == partitions[..1]),
        "{actions:?}"
    );
}
