use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

/// A bound on the bytes that are held, by all tables together and by one table.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    total: Arc<Pot>,
    max_table_bytes: u64,
    /// Bytes of inserts that wait for others before they may take their part.
    waiting: Arc<Pot>,
}

/// The bytes of an insert that waits for others. They count for as long as this value lives.
#[derive(Debug)]
pub(crate) struct WaitingBytes<'a> {
    pot: &'a Pot,
    bytes: u64,
}

impl Drop for WaitingBytes<'_> {
    fn drop(&mut self) {
        self.pot.give_back(self.bytes);
    }
}

#[derive(Debug)]
struct Pot {
    held: AtomicU64,
    max: u64,
    freed: Notify,
}

impl Pot {
    fn new(max: u64) -> Pot {
        Pot { held: AtomicU64::new(0), max, freed: Notify::new() }
    }

    fn try_take(&self, bytes: u64) -> bool {
        // Relaxed: the counter guards no other memory.
        self.held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|&after| after <= self.max)
            })
            .is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }
}

/// One table's part of the budget.
#[derive(Debug)]
pub(crate) struct TableBudget {
    total: Arc<Pot>,
    table: Pot,
}

/// The bound that an insert ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    Total { max_bytes: u64 },
    Table { max_bytes: u64 },
    Waiting { max_bytes: u64 },
}

impl Budget {
    pub(crate) fn new(max_bytes: u64, max_table_bytes: u64) -> Budget {
        Budget {
            total: Arc::new(Pot::new(max_bytes)),
            max_table_bytes: max_table_bytes.min(max_bytes),
            waiting: Arc::new(Pot::new(max_bytes)),
        }
    }

    /// Counts the bytes of an insert that waits for others. Such inserts hold no part of the budget, since
    /// the others need it; they have a bound of their own.
    pub(crate) fn wait_with(&self, bytes: u64) -> Result<WaitingBytes<'_>, Exhausted> {
        match self.waiting.try_take(bytes) {
            true => Ok(WaitingBytes { pot: &self.waiting, bytes }),
            false => Err(Exhausted::Waiting { max_bytes: self.waiting.max }),
        }
    }

    pub(crate) fn for_table(&self) -> TableBudget {
        TableBudget { total: self.total.clone(), table: Pot::new(self.max_table_bytes) }
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.total.held.load(Ordering::Relaxed)
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.total.max
    }
}

impl TableBudget {
    pub(crate) fn held_bytes(&self) -> u64 {
        self.table.held.load(Ordering::Relaxed)
    }

    /// Returns how much of `bytes` can be had at all: the table's share may have been larger when the rows
    /// came.
    pub(crate) fn at_most(&self, bytes: u64) -> u64 {
        bytes.min(self.table.max).min(self.total.max)
    }

    /// Takes `bytes`, and waits for them as long as necessary.
    pub(crate) async fn take_at_last(&self, bytes: u64) {
        self.take_when_freed(bytes).await;
    }

    pub(crate) fn try_take(&self, bytes: u64) -> Result<(), Exhausted> {
        if !self.table.try_take(bytes) {
            return Err(Exhausted::Table { max_bytes: self.table.max });
        }
        if !self.total.try_take(bytes) {
            self.table.give_back(bytes);
            return Err(Exhausted::Total { max_bytes: self.total.max });
        }
        Ok(())
    }

    /// Takes `bytes`; waits up to `patience` for others to give some back.
    pub(crate) async fn take(&self, bytes: u64, patience: Duration) -> Result<(), Exhausted> {
        let Err(exhausted) = self.try_take(bytes) else { return Ok(()) };
        if bytes > self.table.max {
            return Err(exhausted);
        }
        tokio::time::timeout(patience, self.take_when_freed(bytes)).await.map_err(|_| exhausted)
    }

    async fn take_when_freed(&self, bytes: u64) {
        loop {
            let freed = self.total.freed.notified();
            tokio::pin!(freed);
            // Registered before the look, so that what is freed in between is not missed.
            freed.as_mut().enable();
            if self.try_take(bytes).is_ok() {
                return;
            }
            freed.await;
        }
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.table.held.fetch_sub(bytes, Ordering::Relaxed);
        self.total.give_back(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use fastrand::Rng;
    use prometheus_client::registry::Registry;
    use tokio::task::JoinSet;
    use windrow_clickhouse::{Credentials, ErrorCode, Exception};
    use windrow_columns::{PassthroughRows, Rows};
    use windrow_log::simulation::{DiskFaults, SimDisk};
    use windrow_log::LogOptions;

    use super::*;
    use crate::insert::{AckLevel, DataKind, Insert, InsertKind, QueryId, Ticket, Withdrawal};
    use crate::member::Contents;
    use crate::policy::FlushLimits;
    use crate::sink::{Batch, Destination, Form, Sink, StoreError, Stored};
    use crate::{open_journal, Gatherer, GathererOptions, Shape, Stores};

    #[tokio::test]
    async fn a_table_takes_its_share_and_no_more() {
        let budget = Budget::new(100, 60);
        let (one, two) = (budget.for_table(), budget.for_table());
        assert_eq!(one.take(60, Duration::ZERO).await, Ok(()));
        assert_eq!(one.take(1, Duration::ZERO).await, Err(Exhausted::Table { max_bytes: 60 }));
        assert_eq!(two.take(41, Duration::ZERO).await, Err(Exhausted::Total { max_bytes: 100 }));
        assert_eq!(two.held_bytes(), 0, "what the total refused is not kept by the table");
        assert_eq!(two.take(40, Duration::ZERO).await, Ok(()));
        assert_eq!(budget.held_bytes(), 100);
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_freed() {
        let budget = Budget::new(10, 10);
        let table = Arc::new(budget.for_table());
        table.take(10, Duration::ZERO).await.unwrap();
        let waiting = tokio::spawn({
            let table = table.clone();
            async move { table.take(4, Duration::from_secs(60)).await }
        });
        tokio::task::yield_now().await;
        table.give_back(5);
        assert_eq!(waiting.await.unwrap(), Ok(()));
        assert_eq!(budget.held_bytes(), 9);
    }

    #[tokio::test]
    async fn what_can_never_fit_is_refused_at_once() {
        let table = Budget::new(10, 5).for_table();
        let refused = table.take(6, Duration::from_secs(3600)).await;
        assert_eq!(refused, Err(Exhausted::Table { max_bytes: 5 }));
    }

    /// A sink that stores nothing: it can't be reached, or it refuses what is sent, for as long as anybody
    /// tries.
    struct Blocked {
        refuses: AtomicBool,
    }

    impl Sink for Blocked {
        async fn store(&self, _batch: &Batch) -> Result<Stored, StoreError> {
            let too_many = "Code: 252. DB::Exception: Too many parts (3000).".into();
            Err(match self.refuses.load(Ordering::Relaxed) {
                true => StoreError::Refused(Exception {
                    code: ErrorCode::TOO_MANY_PARTS,
                    line: too_many,
                    before_writing: true,
                }),
                false => StoreError::NotSent("connection refused".into()),
            })
        }
    }

    fn shape(gatherer: &Gatherer<Blocked>, role: &str) -> Arc<Shape> {
        gatherer.shape(Destination {
            database: "default".into(),
            table: "t".into(),
            columns: vec!["line".into()],
            form: Form::Text { format: "LineAsString", header: Vec::new() },
            credentials: Credentials { user: "joe".into(), password: String::new() },
            own_account: false,
            roles: vec![role.into()],
            quota_key: String::new(),
            shard: None,
            settings: Vec::new(),
            deduplicates: true,
            is_replicated: false,
            has_views: false,
            hands_on: false,
            partitioning: None,
        })
    }

    fn insert(random: &mut Rng, ack: AckLevel) -> Insert {
        let bytes = if random.u32(0..8) == 0 { random.usize(1..40_000) } else { random.usize(1..2_000) };
        let limits = FlushLimits { max_data_size_bytes: 100_000, max_query_number: 30, ..FlushLimits::default() };
        let kind = InsertKind {
            query: "INSERT INTO t".into(),
            format: "LineAsString".into(),
            data_kind: DataKind::Parsed,
            limits,
        };
        Insert {
            rows: Rows::Passthrough(PassthroughRows::piece(vec![b'x'; bytes], 1)),
            payload_bytes: bytes as u64,
            writer: random.u64(0..5),
            back_after: None,
            ack,
            patience: Duration::from_secs(3600),
            at_once: false,
            dedup: None,
            history: None,
            query_id: QueryId::Random(0),
            kind: Arc::new(kind),
            trace: None,
        }
    }

    /// A gatherer whose sink is blocked, and whose disk can be full.
    struct Stage {
        gatherer: Gatherer<Blocked>,
        disk: SimDisk,
        shapes: [Arc<Shape>; 2],
        tickets: Vec<Ticket>,
        random: Rng,
    }

    impl Stage {
        fn new(seed: u64) -> Stage {
            let disk = SimDisk::new(seed, 4 << 20);
            let options = LogOptions { segment_bytes: 64 << 10, max_bytes: 64 << 20, reserve_bytes: 64 << 10 };
            let (journal, mut committer) = open_journal(disk.clone(), options).unwrap();
            let log = journal.log();
            tokio::spawn(async move {
                loop {
                    log.work().await;
                    committer.turn();
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            let stores = Stores { journal: Some(journal), ..Stores::none() };
            let options = GathererOptions {
                max_buffer_bytes: 1 << 20,
                max_table_bytes: 1 << 20,
                overload_wait: Duration::ZERO,
                ..GathererOptions::default()
            };
            let sink = Blocked { refuses: AtomicBool::new(false) };
            let gatherer = Gatherer::open(sink, options, stores, &mut Registry::default(), |_| {});
            let shapes = [shape(&gatherer, "a"), shape(&gatherer, "b")];
            Stage { gatherer, disk, shapes, tickets: Vec::new(), random: Rng::with_seed(seed) }
        }

        async fn step(&mut self) {
            let random = &mut self.random;
            let shape = self.shapes[random.usize(0..2)].clone();
            match random.u32(0..20) {
                0..=7 => {
                    // More than one at once: what is refused lies between others.
                    let mut pushes = JoinSet::new();
                    for _ in 0..random.usize(1..6) {
                        let (gatherer, shape) = (self.gatherer.clone(), shape.clone());
                        let insert = insert(random, AckLevel::Disk);
                        pushes.spawn(async move { gatherer.push(&shape, insert).await.is_ok() });
                    }
                    pushes.join_all().await;
                }
                8..=13 => {
                    let pushing = self.gatherer.push(&shape, insert(random, AckLevel::Stored));
                    let pushed = tokio::time::timeout(Duration::from_millis(1), pushing).await;
                    self.tickets.extend(pushed.ok().and_then(Result::ok).flatten());
                }
                14..=16 if !self.tickets.is_empty() => {
                    let ticket = self.tickets.swap_remove(random.usize(0..self.tickets.len()));
                    ticket.withdraw().await;
                }
                17 => {
                    let is_full = random.bool();
                    self.disk.set_faults(DiskFaults { is_full, ..DiskFaults::default() });
                }
                18 => self.gatherer.core.sink.refuses.store(random.bool(), Ordering::Relaxed),
                _ => tokio::time::sleep(Duration::from_millis(random.u64(1..3000))).await,
            }
            while self.shapes[0].table.measure(|_| 0).is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }

        fn check(&self, which: &str) {
            let table = &self.shapes[0].table;
            let measure = |measure: &dyn Fn(&Contents) -> u64| table.measure(measure).expect("all is on the ground");
            let accounted = measure(&Contents::held_bytes);
            let holds = |contents: &Contents| contents.rows.bytes() as u64 + 256 * contents.members.len() as u64;
            let measured = measure(&holds);
            let stays = |contents: &Contents| contents.staying().map(|member| member.held_bytes).sum::<u64>();
            let staying = measure(&stays);
            let held = self.gatherer.held_bytes();
            assert_eq!((held, held), (accounted, measured), "{which}: held, and what the buffers say and are");
            let left = accounted - staying;
            let batches = table.batches() as u64 + 2;
            assert!(left <= accounted / 4 + batches * (64 << 10), "{which}: {left} of {accounted} is of nobody");
            assert!(self.gatherer.held_bytes() <= self.gatherer.registry.budget.max_bytes(), "{which}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_budget_is_what_the_buffers_hold_whoever_comes_and_leaves() {
        for seed in 0..20 {
            let mut stage = Stage::new(seed);
            for step in 0..400 {
                stage.step().await;
                stage.check(&format!("seed {seed}, step {step}"));
            }
        }
    }

    /// Clients send again and again after they are told of too many parts.
    #[tokio::test(start_paused = true)]
    async fn those_who_come_again_and_again_leave_nothing_behind() {
        let mut stage = Stage::new(1);
        stage.gatherer.push(&stage.shapes[0], insert(&mut stage.random, AckLevel::Disk)).await.unwrap();
        let held_bytes = stage.gatherer.held_bytes();
        for _ in 0..200 {
            for _ in 0..20 {
                let waits = insert(&mut stage.random, AckLevel::Stored);
                stage.tickets.extend(stage.gatherer.push(&stage.shapes[0], waits).await.unwrap());
            }
            for ticket in stage.tickets.drain(..) {
                assert!(matches!(ticket.withdraw().await, Withdrawal::Withdrawn { .. }));
            }
            assert_eq!((stage.gatherer.held_bytes(), stage.shapes[0].table.batches()), (held_bytes, 0));
        }
    }
}
