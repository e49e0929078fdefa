//! Random operations against a model of ClickHouse: whatever happens, every row that was taken comes to
//! exactly one end, and in the order in which it was taken, where that was asked for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fastrand::Rng;
use windrow_writer::{
    Backoff, BatchId, Buffer, DiskBuffer, DiskOptions, Failure, FailureKind, Gathering, MemoryBuffer, Next, Options,
    Outgoing, Rows,
};

use crate::redis::{append_kept, Bucket, Redis};
use crate::support::{seeds, table, texts, Folder};

/// The events of a run.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Append,
    Pass,
    Flush,
    Ask,
    /// A batch that is under way comes to an end; its rows decide which.
    Answer,
    /// A batch is stored, or not, but the answer is lost.
    LoseAnswer,
    Refuse,
    /// The process dies and another one begins.
    Crash,
    Reopen,
}

use Operation::*;
const OPERATIONS: [Operation; 20] = [
    Append, Append, Append, Append, Append, Append, Pass, Pass, Pass, Flush, Ask, Ask, Ask, Answer, Answer, Answer,
    LoseAnswer, Refuse, Crash, Reopen,
];

/// A table that knows the tokens of the batches that it has stored.
#[derive(Default)]
struct Table {
    rows: Vec<String>,
    tokens: HashMap<BatchId, Vec<String>>,
}

impl Table {
    fn store(&mut self, outgoing: &Outgoing) {
        let rows = texts(&outgoing.body);
        match self.tokens.get(&outgoing.id) {
            Some(stored) => assert_eq!(*stored, rows, "a batch keeps its members"),
            None => {
                self.rows.extend(rows.iter().cloned());
                self.tokens.insert(outgoing.id, rows);
            }
        }
    }
}

/// The kind of buffer in which rows wait.
enum Medium {
    Memory,
    Disk(Folder),
    Redis(Bucket),
}

struct World {
    random: Rng,
    medium: Medium,
    ordered: bool,
    gathering: Arc<Gathering>,
    now_ms: u64,
    taken: Vec<String>,
    failed: Vec<String>,
    table: Table,
    under_way: Vec<Outgoing>,
    settled: Arc<std::sync::Mutex<HashSet<String>>>,
}

fn gathering(medium: &Medium, random: &mut Rng, ordered: bool) -> Arc<Gathering> {
    let (batch_rows, batch_bytes) = (random.usize(1..20), random.usize(100..4000));
    let options = Options {
        batch_rows,
        batch_bytes,
        flush_interval_ms: random.u64(0..100),
        max_bytes: random.u64(10_000..100_000),
        max_in_flight: random.usize(1..5),
        ordered,
        retry: Box::new(Backoff { max_elapsed_ms: Some(u64::MAX), seed: random.u64(..), ..Backoff::default() }),
        left_overs_interval_ms: 50,
        ..Options::default()
    };
    let buffer: Arc<dyn Buffer> = match medium {
        Medium::Memory => Arc::new(MemoryBuffer::new(batch_rows, batch_bytes)),
        Medium::Redis(bucket) => Arc::new(bucket.open(batch_rows, batch_bytes)),
        Medium::Disk(folder) => {
            let max_disk_bytes = random.u64(80..500) << 10;
            let disk = DiskOptions {
                batch_rows,
                batch_bytes,
                max_disk_bytes,
                segment_bytes: 16 << 10,
                ..DiskOptions::default()
            };
            Arc::new(DiskBuffer::open(folder.path(), table("t"), disk).unwrap())
        }
    };
    Gathering::new(buffer, table("t"), options)
}

fn failure(kind: FailureKind, row: Option<u64>) -> Failure {
    Failure { kind, code: None, message: "no".into(), row }
}

/// Says whether the table refuses the row.
fn is_bad(row: &str) -> bool {
    row.contains("bad")
}

impl World {
    fn new(seed: u64, medium: Medium) -> World {
        let mut random = Rng::with_seed(seed);
        // Lanes of dead writers have no order among each other.
        let ordered = random.bool() && !matches!(medium, Medium::Redis(_));
        World {
            gathering: gathering(&medium, &mut random, ordered),
            random,
            medium,
            ordered,
            now_ms: 0,
            taken: Vec::new(),
            failed: Vec::new(),
            table: Table::default(),
            under_way: Vec::new(),
            settled: Arc::default(),
        }
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Append => self.append(),
            Pass => self.now_ms += self.random.u64(0..200),
            Flush => self.gathering.flush(Box::new(|| ())),
            Ask => drop(self.ask()),
            Answer => self.answer(),
            LoseAnswer => self.lose_answer(),
            Refuse => {
                if let Some(outgoing) = self.any_under_way() {
                    // For good, as far as a buffer that survives is concerned; one in memory would hand the rows over.
                    let kind = if self.survives() { FailureKind::Refused } else { FailureKind::Passing };
                    self.gathering.failed(outgoing.id, failure(kind, None), self.now_ms);
                }
            }
            Crash if self.survives() => self.begin_again(false),
            Reopen if self.survives() => self.begin_again(true),
            Crash | Reopen => {}
        }
        while let Some(error) = self.gathering.take_error() {
            self.failed.extend(texts(&error.rows));
        }
    }

    fn survives(&self) -> bool {
        !matches!(self.medium, Medium::Memory)
    }

    fn append(&mut self) {
        let count = self.random.usize(1..30);
        let first = self.taken.len();
        let rows: Vec<String> = (first..first + count)
            .map(|number| {
                let bad = if self.random.u8(..) == 0 { "bad" } else { "" };
                format!("{number} {bad}{}", "x".repeat(self.random.usize(0..300)))
            })
            .collect();
        let lengths: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
        let bytes = rows.concat();
        let rows_bytes = Rows::new(bytes.as_bytes(), &lengths);
        let is_taken = match self.random.bool() || matches!(self.medium, Medium::Redis(_)) {
            true => append_kept(&self.gathering, rows_bytes),
            false => {
                let (settled, names) = (self.settled.clone(), rows.clone());
                let call = move |_: Result<_, _>| settled.lock().unwrap().extend(names);
                self.gathering.append_watched(rows_bytes, Box::new(call)).is_ok()
            }
        };
        if is_taken {
            self.taken.extend(rows);
        }
    }

    /// Asks for the next step and sends batches, until the writer is to wait or is drained.
    fn ask(&mut self) -> Next {
        loop {
            match self.gathering.next(self.now_ms) {
                Next::Send(outgoing) => {
                    let is_alone = !self.under_way.iter().any(|other| other.id == outgoing.id);
                    assert!(is_alone, "one attempt of a batch at a time");
                    assert!(!self.ordered || self.under_way.is_empty(), "one batch at a time");
                    self.under_way.push(outgoing);
                }
                other => return other,
            }
        }
    }

    fn any_under_way(&mut self) -> Option<Outgoing> {
        let count = self.under_way.len();
        (count > 0).then(|| self.under_way.swap_remove(self.random.usize(..count)))
    }

    fn answer(&mut self) {
        let Some(outgoing) = self.any_under_way() else { return };
        let bad = texts(&outgoing.body).iter().position(|row| is_bad(row));
        match bad {
            None => {
                self.table.store(&outgoing);
                self.gathering.stored(outgoing.id);
            }
            Some(row) => {
                let hint = [None, Some(row as u64 + 1), Some(self.random.u64(0..40))];
                let row = *self.random.choice(&hint).unwrap_or(&None);
                self.gathering.failed(outgoing.id, failure(FailureKind::Values, row), self.now_ms);
            }
        }
    }

    fn lose_answer(&mut self) {
        let Some(outgoing) = self.any_under_way() else { return };
        self.perhaps_store(&outgoing);
        self.gathering.failed(outgoing.id, failure(FailureKind::Passing, None), self.now_ms);
    }

    fn perhaps_store(&mut self, outgoing: &Outgoing) {
        let is_good = !texts(&outgoing.body).iter().any(|row| is_bad(row));
        if is_good && self.random.bool() {
            self.table.store(outgoing);
        }
    }

    fn begin_again(&mut self, is_closed: bool) {
        for outgoing in std::mem::take(&mut self.under_way) {
            self.perhaps_store(&outgoing);
        }
        if is_closed {
            self.gathering.abandon();
        } else if let Medium::Redis(bucket) = &mut self.medium {
            bucket.killed();
        }
        // The old one is gone before the new one looks for what it has left.
        self.gathering = gathering(&Medium::Memory, &mut self.random, self.ordered);
        self.gathering = gathering(&self.medium, &mut self.random, self.ordered);
    }

    /// Closes the writer and lets every attempt pass, until it is drained.
    fn drain(&mut self) {
        self.gathering.close();
        for _ in 0..100_000 {
            match self.ask() {
                Next::Drained => break,
                _ => self.now_ms += 20,
            }
            // Its answers take their time.
            if let Medium::Redis(_) = self.medium {
                std::thread::park_timeout(std::time::Duration::from_millis(1));
            }
            while !self.under_way.is_empty() {
                self.answer();
            }
            self.run(Pass);
        }
        assert!(matches!(self.ask(), Next::Drained), "it comes to an end: {:?}", self.gathering.statistics());
        self.gathering.abandon();
    }

    fn check(&self) {
        let mut good: Vec<&String> = self.taken.iter().filter(|row| !is_bad(row)).collect();
        let mut stored: Vec<&String> = self.table.rows.iter().collect();
        if self.ordered {
            assert_same(&stored, &good, "good rows are stored in order");
        }
        good.sort();
        stored.sort();
        assert_same(&stored, &good, "every good row is stored once");
        let mut bad: Vec<&String> = self.taken.iter().filter(|row| is_bad(row)).collect();
        let mut failed: Vec<&String> = self.failed.iter().collect();
        bad.sort();
        failed.sort();
        assert_same(&failed, &bad, "every bad row is handed over once");
        let statistics = self.gathering.statistics();
        assert_eq!((statistics.bytes_held, statistics.errors_dropped), (0, 0));
    }
}

/// Compares two lists and says where they begin to differ: all of it would be pages.
fn assert_same(found: &[&String], expected: &[&String], what: &str) {
    let same = found.iter().zip(expected).take_while(|(one, other)| one == other).count();
    let name = |row: Option<&&String>| row.map(|row| row.chars().take(10).collect::<String>());
    assert!(
        found.len() == expected.len() && same == found.len(),
        "{what}: {} of {}, number {same} is {:?} instead of {:?}",
        found.len(),
        expected.len(),
        name(found.get(same)),
        name(expected.get(same))
    );
}

fn play(seed: u64, medium: Medium) {
    let mut world = World::new(seed, medium);
    for _ in 0..world.random.usize(10..400) {
        let operation = *world.random.choice(&OPERATIONS).unwrap_or(&Ask);
        world.run(operation);
    }
    world.drain();
    world.check();
    match &world.medium {
        Medium::Memory => {}
        Medium::Disk(folder) => {
            assert_eq!(folder.sub_folders(), Vec::<std::path::PathBuf>::new(), "nothing is left behind");
        }
        Medium::Redis(bucket) => assert_eq!(bucket.left(), Vec::<String>::new(), "nothing is left behind"),
    }
}

fn play_all(medium: impl Fn() -> Medium + std::panic::RefUnwindSafe, count: u64) {
    for seed in 0..seeds(count) {
        let outcome = std::panic::catch_unwind(|| play(seed, medium()));
        if let Err(panic) = outcome {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn in_memory_every_row_comes_to_one_end() {
    play_all(|| Medium::Memory, 300);
}

#[test]
fn on_a_disk_every_row_comes_to_one_end_also_over_crashes() {
    play_all(|| Medium::Disk(Folder::new()), 50);
}

#[test]
fn in_redis_every_row_comes_to_one_end_also_over_crashes() {
    let redis = Arc::new(Redis::start());
    let redis = std::panic::AssertUnwindSafe(redis);
    play_all(move || Medium::Redis(Bucket::new(&redis, "")), 20);
}
