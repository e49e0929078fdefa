//! The decisions that a seed makes before the run begins.

use fastrand::Rng;

use super::books::Level;
use super::system::SHARDS;

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) tables: Vec<TablePlan>,
    pub(super) writers: Vec<WriterPlan>,
    /// The distance between inserts that ClickHouse refuses for good, in insert numbers; 0 for no such inserts.
    pub(super) poison_every: u64,
    /// Clients, whose inserts have tokens.
    pub(super) clients: Vec<ClientPlan>,
    /// The ends of each gateway's lives; one more life follows in which nothing fails.
    pub(super) endings: Vec<Vec<Ending>>,
    pub(super) life_ms: u64,
    /// The most calls in a thousand that fail while there are faults.
    pub(super) system_faults: u32,
    pub(super) disk_faults: u32,
    /// A shard that takes nothing before the last life.
    pub(super) shard_away: Option<u32>,
    pub(super) max_buffer_bytes: u64,
    pub(super) max_journal_bytes: u64,
    pub(super) max_table_journal_bytes: u64,
    pub(super) segment_bytes: u64,
    /// The longest time that a sync of the disk takes, in milliseconds.
    pub(super) slowest_sync_ms: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TablePlan {
    pub(super) deduplicates: bool,
    /// True if its inserts are cut by shards, of which there are two.
    pub(super) is_sharded: bool,
}

#[derive(Debug, Clone)]
pub(super) struct WriterPlan {
    pub(super) table: usize,
    /// The ack levels, of which one is drawn for each insert.
    pub(super) levels: Vec<Level>,
    /// The longest pause between two inserts, in milliseconds.
    pub(super) pause_ms: u64,
    /// The number of inserts in a hundred for which the writer does not have the patience to wait for an answer.
    pub(super) impatient: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ClientPlan {
    pub(super) table: usize,
    pub(super) level: Level,
    pub(super) inserts: usize,
    /// The longest pause between two inserts, in milliseconds.
    pub(super) pause_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The machine loses its power, within a call of the disk or between two.
    PowerFails { within_calls: Option<u32> },
    /// The process is killed; the machine and its caches live on.
    Killed { within_calls: Option<u32> },
    /// The gateway ends in order, in the time that it is given.
    ShutDown { limit_ms: u64 },
}

impl Scenario {
    pub(super) fn of(seed: u64) -> Scenario {
        let mut random = Rng::with_seed(seed ^ 0x5ce9_a210);
        let (tables, writers) = (random.usize(1..=3), random.usize(1..=6));
        Scenario::with(seed, random, tables, writers)
    }

    /// Returns a scenario like that of [`of`](Scenario::of), where lanes have to take turns.
    pub(super) fn of_many_tables(seed: u64) -> Scenario {
        let random = Rng::with_seed(seed ^ 0x3a11_7ab1);
        let scenario = Scenario::with(seed, random, 300, 150);
        // Room for as many times more.
        Scenario {
            max_buffer_bytes: scenario.max_buffer_bytes * 50,
            max_journal_bytes: scenario.max_journal_bytes * 4,
            ..scenario
        }
    }

    /// Returns a scenario like that of [`of`](Scenario::of), where tables have shards, and two gateways stand
    /// in front of them.
    pub(super) fn of_cluster(seed: u64) -> Scenario {
        let mut random = Rng::with_seed(seed ^ 0xc1a5_7e45);
        let (tables, writers) = (random.usize(1..=3), random.usize(1..=5));
        let mut scenario = Scenario::with(seed, random.fork(), tables, writers);
        scenario.tables.iter_mut().for_each(|table| table.is_sharded = random.u32(0..4) > 0);
        scenario.endings.push(Ending::some(&mut random));
        scenario.clients = (0..random.usize(1..=4)).map(|_| ClientPlan::any(&mut random, tables)).collect();
        scenario
    }

    /// Returns a scenario in which shard 2 is away for a whole life, nothing else fails, and no writer loses
    /// patience.
    pub(super) fn of_shard_away(seed: u64) -> Scenario {
        let mut random = Rng::with_seed(seed ^ 0xa3a1_0002);
        let tables = random.usize(1..=3);
        let mut scenario = Scenario::with(seed, random.fork(), tables, 6);
        scenario.tables.iter_mut().for_each(|table| table.is_sharded = true);
        scenario.writers.iter_mut().for_each(|writer| writer.impatient = 0);
        let ending = [Ending::PowerFails { within_calls: None }, Ending::Killed { within_calls: None }];
        Scenario {
            poison_every: 0,
            endings: vec![vec![ending[random.usize(0..2)]]],
            life_ms: 60_000,
            system_faults: 0,
            disk_faults: 0,
            shard_away: Some(2),
            max_buffer_bytes: 1 << 20,
            max_journal_bytes: 4 << 20,
            max_table_journal_bytes: 1 << 20,
            ..scenario
        }
    }

    /// Returns the shards that have faults of their own. 0 stands for tables without shards.
    pub(super) fn shards(&self) -> std::ops::RangeInclusive<u32> {
        0..=if self.tables.iter().any(|table| table.is_sharded) { SHARDS } else { 0 }
    }

    fn with(seed: u64, mut random: Rng, tables: usize, writers: usize) -> Scenario {
        let tables: Vec<TablePlan> =
            (0..tables).map(|_| TablePlan { deduplicates: random.u32(0..4) > 0, is_sharded: false }).collect();
        let writers = (0..writers).map(|_| WriterPlan::any(&mut random, tables.len())).collect();
        let is_stormy = random.u32(0..4) > 0;
        Scenario {
            seed,
            tables,
            writers,
            // A batch with more culprits than can be looked for is given up, with the innocent ones.
            poison_every: [0, 0, 17, 31, 101][random.usize(0..5)],
            clients: Vec::new(),
            endings: vec![Ending::some(&mut random)],
            life_ms: [300, 2_000, 20_000][random.usize(0..3)],
            system_faults: if is_stormy { random.u32(0..500) } else { 0 },
            disk_faults: if is_stormy && random.bool() { random.u32(0..100) } else { 0 },
            shard_away: None,
            max_buffer_bytes: [4_000, 20_000, 1 << 20][random.usize(0..3)],
            max_journal_bytes: [1 << 20, 4 << 20][random.usize(0..2)],
            max_table_journal_bytes: [8 << 10, 1 << 20][random.usize(0..2)],
            segment_bytes: [4 << 10, 16 << 10][random.usize(0..2)],
            slowest_sync_ms: [0, 2, 50][random.usize(0..3)],
        }
    }
}

impl TablePlan {
    /// Returns the shards that the rows of an insert go to: one shard, or both.
    pub(super) fn shards_of_insert(self, random: &mut Rng) -> Vec<u32> {
        match self.is_sharded {
            false => vec![0],
            true => [&[1][..], &[2], &[1, 2], &[1, 2]][random.usize(0..4)].to_vec(),
        }
    }
}

impl ClientPlan {
    fn any(random: &mut Rng, tables: usize) -> ClientPlan {
        ClientPlan {
            table: random.usize(0..tables),
            level: [Level::Disk, Level::Stored][random.usize(0..2)],
            inserts: random.usize(1..=12),
            pause_ms: [0, 100, 2_000][random.usize(0..3)],
        }
    }
}

impl WriterPlan {
    fn any(random: &mut Rng, tables: usize) -> WriterPlan {
        let levels = match random.u32(0..6) {
            0 => vec![Level::Memory],
            1 => vec![Level::Stored],
            2..=4 => vec![Level::Disk],
            _ => vec![Level::Memory, Level::Disk, Level::Stored],
        };
        WriterPlan {
            table: random.usize(0..tables),
            levels,
            pause_ms: [0, 10, 100, 1_000][random.usize(0..4)],
            impatient: [0, 0, 20][random.usize(0..3)],
        }
    }
}

impl Ending {
    /// Returns the call of the disk that is the last one, if the life ends within a call.
    pub(super) fn within_calls(self) -> Option<u32> {
        match self {
            Ending::PowerFails { within_calls } | Ending::Killed { within_calls } => within_calls,
            Ending::ShutDown { .. } => None,
        }
    }

    fn some(random: &mut Rng) -> Vec<Ending> {
        (0..random.usize(0..=3)).map(|_| Ending::any(random)).collect()
    }

    fn any(random: &mut Rng) -> Ending {
        match random.u32(0..6) {
            0 => Ending::PowerFails { within_calls: None },
            1..=2 => Ending::PowerFails { within_calls: Some(random.u32(1..300)) },
            3..=4 => Ending::Killed { within_calls: random.bool().then(|| random.u32(1..300)) },
            _ => Ending::ShutDown { limit_ms: [0, 500, 60_000][random.usize(0..3)] },
        }
    }
}
