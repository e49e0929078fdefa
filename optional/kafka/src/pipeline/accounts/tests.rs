//! Two members of a group, a coordinator and a sink that all fail at any moment. Every message is stored
//! once, and the messages of each partition are stored in order.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const PARTITIONS: i32 = 3;

#[derive(Debug, Clone, Copy)]
enum Op {
    Produce,
    Gather,
    Seal,
    /// The next step, with the fault that happens on its way.
    Step(Weather),
    /// A partition is revoked, to go to the other member or to come again to the same one.
    Move,
    /// A partition is taken at once. The member learns of that later.
    Take,
    /// A member learns which partitions it has lost.
    Tell,
    /// A member begins to read the partitions that it was given.
    Start,
    Crash,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Weather {
    Fine,
    /// The request is done, but its answer is lost.
    AnswerLost,
    /// The request is not done.
    RequestLost,
}

/// The coordinator's state of a partition.
#[derive(Debug, Clone, Default)]
struct Kept {
    owner: Option<(usize, u64)>,
    shown: Option<Shown>,
}

struct Member {
    accounts: Accounts,
    /// A step that was begun and has not ended.
    step: Option<Step>,
    /// Partitions that the member believes to own.
    claims: BTreeMap<TopicPartition, u64>,
}

struct World {
    random: fastrand::Rng,
    records: bool,
    log: BTreeMap<TopicPartition, i64>,
    coordinator: BTreeMap<TopicPartition, Kept>,
    epochs: u64,
    next_id: u128,
    members: Vec<Member>,
    stored_ids: BTreeSet<u128>,
    stored: Vec<Range>,
}

fn partition(number: i32) -> TopicPartition {
    TopicPartition::new("events", number)
}

impl World {
    fn new(seed: u64, records: bool) -> World {
        let partitions = (0..PARTITIONS).map(partition);
        World {
            random: fastrand::Rng::with_seed(seed),
            records,
            log: partitions.clone().map(|partition| (partition, 0)).collect(),
            coordinator: partitions.map(|partition| (partition, Kept::default())).collect(),
            epochs: 0,
            next_id: 0,
            members: (0..2).map(|_| Member::new(records)).collect(),
            stored_ids: BTreeSet::new(),
            stored: Vec::new(),
        }
    }

    fn op(&mut self) -> Op {
        let weather = match self.random.u8(..8) {
            0 => Weather::AnswerLost,
            1 => Weather::RequestLost,
            _ => Weather::Fine,
        };
        match self.random.u8(..40) {
            0..8 => Op::Produce,
            8..16 => Op::Gather,
            16..20 => Op::Seal,
            20..31 => Op::Step(weather),
            31..33 => Op::Move,
            33 => Op::Take,
            34..36 => Op::Tell,
            36..39 => Op::Start,
            _ => Op::Crash,
        }
    }

    fn apply(&mut self, op: Op) {
        let member = self.random.usize(..2);
        let at = partition(self.random.i32(0..PARTITIONS));
        match op {
            Op::Produce => {
                let more = self.random.i64(1..5);
                self.log.entry(at).and_modify(|end| *end += more);
            }
            Op::Gather => self.gather(member, &at),
            Op::Seal => self.seal(member),
            Op::Step(weather) => self.step(member, weather),
            Op::Move => self.revoke(&at),
            Op::Take => self.hand_over(&at),
            Op::Tell => self.tell(member),
            Op::Start => self.start(member),
            Op::Crash => self.members[member] = Member::new(self.records),
        }
    }

    fn gather(&mut self, member: usize, at: &TopicPartition) {
        let end = self.log[at];
        let accounts = &mut self.members[member].accounts;
        if let Some(from) = accounts.gathered(at) {
            let next = (from + self.random.i64(0..6)).min(end);
            assert!(accounts.gather(at, next, 0));
        }
    }

    fn seal(&mut self, member: usize) {
        if self.members[member].accounts.waiting() < 2 {
            self.next_id += 1;
            self.members[member].accounts.seal(BatchId(self.next_id));
        }
    }

    fn step(&mut self, member: usize, weather: Weather) {
        let Member { accounts, step, .. } = &mut self.members[member];
        let Some(taken) = step.take().or_else(|| accounts.next_step(true)) else { return };
        match taken.clone() {
            Step::Commit(entries) => self.commit(member, weather, taken, entries),
            Step::Push { record, .. } => self.push(member, weather, taken, &record),
        }
        self.give_up(member);
    }

    fn commit(&mut self, member: usize, weather: Weather, step: Step, entries: Vec<Entry>) {
        let happens = weather != Weather::RequestLost;
        let is_ours = |entry: &Entry| self.coordinator[&entry.partition].owner == Some((member, entry.epoch));
        if happens && !entries.iter().all(is_ours) {
            self.members[member].accounts.commit_fenced();
            // Who is fenced is told so before anything else.
            return self.tell(member);
        }
        if happens {
            for Entry { partition, offset, record, .. } in entries {
                let shown = Shown {
                    offset,
                    leader_epoch: 0,
                    topic_id: TopicId::default(),
                    record: record.map(|record| (*record).clone()),
                };
                self.coordinator.entry(partition).or_default().shown = Some(shown);
            }
        }
        match weather {
            Weather::Fine => self.members[member].accounts.commit_succeeded(),
            // It is tried again as it is.
            _ => self.members[member].step = Some(step),
        }
    }

    fn push(&mut self, member: usize, weather: Weather, step: Step, record: &BatchRecord) {
        if weather != Weather::RequestLost && (!self.records || self.stored_ids.insert(record.id.0)) {
            self.stored.extend(record.ranges.iter().cloned());
        }
        match weather {
            Weather::Fine => drop(self.members[member].accounts.push_succeeded()),
            Weather::AnswerLost => self.members[member].step = Some(step),
            Weather::RequestLost => self.members[member].accounts.push_failed(),
        }
    }

    fn revoke(&mut self, at: &TopicPartition) {
        let Some((owner, epoch)) = self.coordinator[at].owner else { return self.hand_over(at) };
        if self.members[owner].claims.get(at) != Some(&epoch) {
            // It has crashed.
            return self.hand_over(at);
        }
        self.members[owner].accounts.revoke(std::slice::from_ref(at));
        self.give_up(owner);
    }

    fn give_up(&mut self, member: usize) {
        for at in self.members[member].accounts.given_up() {
            self.members[member].claims.remove(&at);
            self.hand_over(&at);
        }
    }

    fn hand_over(&mut self, at: &TopicPartition) {
        self.epochs += 1;
        let owner = self.random.usize(..2);
        self.coordinator.entry(at.clone()).or_default().owner = Some((owner, self.epochs));
    }

    fn tell(&mut self, member: usize) {
        let World { members, coordinator, .. } = self;
        let Member { accounts, claims, .. } = &mut members[member];
        let is_lost = |(at, epoch): (&TopicPartition, &u64)| coordinator[at].owner != Some((member, *epoch));
        let lost: Vec<TopicPartition> =
            claims.iter().filter(|claim| is_lost(*claim)).map(|(at, _)| at.clone()).collect();
        accounts.lose(&lost);
        claims.retain(|at, _| !lost.contains(at));
        for (at, kept) in coordinator.iter() {
            if let Some((owner, epoch)) = kept.owner.filter(|(owner, _)| *owner == member) {
                debug_assert_eq!(owner, member);
                if claims.insert(at.clone(), epoch).is_none() {
                    accounts.assign(at.clone(), epoch, TopicId::default());
                }
            }
        }
    }

    /// Starts partitions as the engine does: after an assignment, and where the coordinator's state isn't
    /// known any more.
    fn start(&mut self, member: usize) {
        let World { members, coordinator, .. } = self;
        let Member { accounts, claims, .. } = &mut members[member];
        // What a commit on its way will leave there can't be known.
        if accounts.is_committing() {
            return;
        }
        for (at, epoch) in claims.iter().filter(|(at, epoch)| coordinator[*at].owner == Some((member, **epoch))) {
            debug_assert!(*epoch > 0);
            if accounts.phase(at) != Some(Phase::Starting) {
                continue;
            }
            match &coordinator[at].shown {
                None => accounts.begin(at, 0, false),
                Some(Shown { offset, record: None, .. }) => accounts.begin(at, *offset, true),
                Some(Shown { offset, record: Some(record), .. }) => {
                    let shown = |other: &TopicPartition| coordinator[other].shown.clone();
                    match judge(record, at, TopicId::default(), shown, |_| false) {
                        Ok(()) => accounts.replay(record.clone(), std::slice::from_ref(at)),
                        Err(_) => accounts.begin(at, *offset, true),
                    }
                }
            }
        }
    }

    /// Runs without faults until all produced messages are stored.
    fn settle(&mut self) {
        for at in (0..PARTITIONS).map(partition) {
            if self.coordinator[&at].owner.is_none() {
                self.hand_over(&at);
            }
        }
        for _ in 0..200 {
            for member in 0..2 {
                self.tell(member);
                self.start(member);
                (0..PARTITIONS).for_each(|number| self.gather_all(member, &partition(number)));
                self.seal(member);
                (0..4).for_each(|_| self.step(member, Weather::Fine));
            }
        }
    }

    fn gather_all(&mut self, member: usize, at: &TopicPartition) {
        let end = self.log[at];
        let accounts = &mut self.members[member].accounts;
        if accounts.gathered(at).is_some() {
            accounts.gather(at, end, 0);
        }
    }

    /// Checks that all offsets were stored once and in order, and that all of them are committed.
    fn check(&self, seed: u64) {
        for number in 0..PARTITIONS {
            let at = partition(number);
            let ranges = self.stored.iter().filter(|range| range.partition() == at);
            let mut next = 0;
            for range in ranges {
                assert_eq!(range.first_offset, next, "seed {seed}: partition {number}: {:?}", self.stored);
                next = range.next_offset();
            }
            assert_eq!(next, self.log[&at], "seed {seed}: partition {number} is not stored to its end");
            let shown = self.coordinator[&at].shown.as_ref();
            assert_eq!(shown.map_or(0, |shown| shown.offset), next, "seed {seed}: partition {number} is not committed");
        }
    }
}

impl Member {
    fn new(records: bool) -> Member {
        Member { accounts: Accounts::new(records), step: None, claims: BTreeMap::new() }
    }
}

#[test]
fn every_message_is_stored_once_and_in_order() {
    for seed in 0..3_000 {
        let mut world = World::new(seed, true);
        for _ in 0..400 {
            let op = world.op();
            world.apply(op);
        }
        world.settle();
        world.check(seed);
    }
}

const EVENTS: TopicId = TopicId([1; 16]);
const CLICKS: TopicId = TopicId([2; 16]);

/// Returns a batch of ten messages of each of the two topics.
fn batch_of_two_topics() -> BatchRecord {
    let range = |topic: &str, topic_id| Range {
        topic: topic.into(),
        partition: 0,
        topic_id,
        first_offset: 10,
        last_offset: 19,
        leader_epoch: 4,
    };
    BatchRecord { id: BatchId(7), ranges: vec![range("clicks", CLICKS), range("events", EVENTS)] }
}

fn shown_at(offset: i64, record: Option<BatchRecord>) -> Shown {
    Shown { offset, leader_epoch: 4, topic_id: TopicId::default(), record }
}

/// Returns the decision for the partition of events, where that of clicks shows this.
fn judged(clicks: Option<Shown>, is_gone: bool) -> Result<(), RecordRejection> {
    let record = batch_of_two_topics();
    let shown = |partition: &TopicPartition| match &*partition.topic {
        "events" => Some(shown_at(10, Some(record.clone()))),
        _ => clicks.clone(),
    };
    let is_gone = |range: &Range| is_gone && range.topic_id == CLICKS;
    judge(&record, &TopicPartition::new("events", 0), EVENTS, shown, is_gone)
}

#[test]
fn a_record_counts_if_its_other_partitions_bear_it_out() {
    let record = batch_of_two_topics();
    let unbound = Err(RecordRejection::NotShownBy(TopicPartition::new("clicks", 0)));
    assert_eq!(judged(Some(shown_at(10, Some(record))), false), Ok(()));
    assert_eq!(judged(Some(shown_at(20, None)), false), Ok(()));
    assert_eq!(judged(Some(shown_at(10, None)), false), unbound);
    assert_eq!(judged(None, false), unbound, "it was not written whole");
}

/// Tests a log of clicks that has lost its last messages, after the batch was stored and the offset was behind it.
#[test]
fn a_record_counts_also_where_another_log_of_its_batch_was_cut_since() {
    let at = |offset, leader_epoch| Some(Shown { offset, leader_epoch, topic_id: TopicId::default(), record: None });
    assert_eq!(judged(at(13, 6), false), Ok(()));
    let unbound = Err(RecordRejection::NotShownBy(TopicPartition::new("clicks", 0)));
    assert_eq!(judged(at(13, 4), false), unbound, "it was moved by hand");
    assert_eq!(judged(at(13, -1), false), unbound);
}

/// Tests that messages read before the log was cut are stored first, in batches of their own. Then the same
/// offsets go into other batches.
#[test]
fn a_partition_goes_back_when_nothing_of_it_is_on_its_way() {
    let (at, mut accounts) = (partition(0), Accounts::new(true));
    ten_of_each(&mut accounts, 1);
    let first = accounts.seal(BatchId(1)).unwrap();
    for _ in 0..2 {
        assert!(!accounts.is_quiet(&at));
        match accounts.next_step(true) {
            Some(Step::Commit(_)) => accounts.commit_succeeded(),
            Some(Step::Push { .. }) => drop(accounts.push_succeeded()),
            None => panic!("it is not stored yet"),
        }
    }
    assert!(accounts.is_quiet(&at));
    assert!(matches!(accounts.next_step(true), Some(Step::Commit(_))));
    assert!(!accounts.is_quiet(&at), "its offset is on its way");
    accounts.commit_succeeded();
    accounts.begin(&at, 4, false);
    assert_eq!(accounts.stored(&at), Some(4));
    assert!(accounts.gather(&at, 10, 2));
    let second = accounts.seal(BatchId(2)).unwrap();
    assert_eq!((first.ranges[0].first_offset, second.ranges[0].first_offset), (0, 4));
    assert_eq!((first.ranges[0].leader_epoch, second.ranges[0].leader_epoch), (0, 2));
    let Some(Step::Commit(entries)) = accounts.next_step(true) else { panic!("the offset is told") };
    assert_eq!((entries[0].offset, entries[0].record.as_ref()), (4, Some(&second)));
}

/// Tests that the record counts: the batch may be stored, and would be stored again under another id.
#[test]
fn a_record_counts_also_where_another_topic_of_its_batch_was_deleted() {
    assert_eq!(judged(None, true), Ok(()));
    assert_eq!(judged(Some(shown_at(3, None)), true), Ok(()), "it was made anew, and read");
}

#[test]
fn ids_that_are_not_known_tell_no_topics_apart() {
    let none = TopicId::default();
    let counts = |of_record: TopicId, of_topic: TopicId| {
        let (topic, leader_epoch) = ("events".into(), 4);
        let range = Range { topic, partition: 0, topic_id: of_record, first_offset: 10, last_offset: 19, leader_epoch };
        let record = BatchRecord { id: BatchId(7), ranges: vec![range] };
        let shown = |_: &TopicPartition| Some(shown_at(10, Some(record.clone())));
        judge(&record, &TopicPartition::new("events", 0), of_topic, shown, |_| false)
    };
    assert_eq!(counts(EVENTS, EVENTS), Ok(()));
    assert_eq!(counts(EVENTS, CLICKS), Err(RecordRejection::OtherTopic));
    // The brokers have become newer, or older.
    assert_eq!(counts(none, EVENTS), Ok(()));
    assert_eq!(counts(EVENTS, none), Ok(()));
}

fn ten_of_each(accounts: &mut Accounts, partitions: i32) {
    for at in (0..partitions).map(partition) {
        accounts.assign(at.clone(), 1, TopicId::default());
        accounts.begin(&at, 0, false);
        accounts.gather(&at, 10, 0);
    }
}

/// Tests that the next owner of the partitions stores the batch. That owner may do so long before an attempt
/// here would succeed: by then the table may not recognise the batch any more.
#[test]
fn a_batch_that_failed_is_not_pushed_again_where_all_of_it_is_somebody_elses() {
    for lost in [1, 2] {
        let mut accounts = Accounts::new(true);
        ten_of_each(&mut accounts, 2);
        let record = accounts.seal(BatchId(1)).unwrap();
        assert!(matches!(accounts.next_step(true), Some(Step::Commit(_))));
        accounts.commit_succeeded();
        let push = Step::Push { record, is_replay: false };
        assert_eq!(accounts.next_step(true), Some(push.clone()));
        let partitions: Vec<TopicPartition> = (0..lost).map(partition).collect();
        accounts.lose(&partitions);
        accounts.push_failed();
        assert_eq!(accounts.next_step(true), (lost == 1).then_some(push));
    }
}

#[test]
fn no_commit_is_larger_than_a_coordinator_takes() {
    let mut accounts = Accounts::new(true);
    let partitions = 2_000;
    ten_of_each(&mut accounts, partitions);
    let (mut batches, mut stored) = (0, 0);
    while accounts.has_open() || !accounts.is_settled() {
        if accounts.waiting() == 0 && accounts.seal(BatchId(batches + 1)).is_some() {
            batches += 1;
        }
        match accounts.next_step(true) {
            Some(Step::Commit(entries)) => {
                let texts =
                    entries.iter().filter_map(|entry| entry.record.as_ref()).map(|it| it.encode().unwrap().len());
                assert!(texts.sum::<usize>() <= crate::pipeline::record::MAX_TEXTS_BYTES);
                assert!(entries.len() <= MAX_ENTRIES);
                accounts.commit_succeeded();
            }
            Some(Step::Push { record, .. }) => {
                // Written beside all its offsets, or not at all.
                stored += record.ranges.len();
                accounts.push_succeeded();
            }
            None => {}
        }
    }
    assert_eq!(stored, partitions as usize);
    assert!((2_000 / 400..2_000 / 100).contains(&batches), "{batches}");
}
