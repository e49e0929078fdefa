//! What a seed decides before anything happens.

use fastrand::Rng;

use super::books::Level;
use super::system::SHARDS;

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) tables: Vec<TablePlan>,
    pub(super) writers: Vec<WriterPlan>,
    /// Every so manieth insert is refused by ClickHouse for good; 0: none.
    pub(super) poison_every: u64,
    /// Of inserts with tokens.
    pub(super) clients: Vec<ClientPlan>,
    /// Of each gateway, how each life ends; one more follows in which all is well.
    pub(super) endings: Vec<Vec<Ending>>,
    pub(super) life_ms: u64,
    /// Of calls of a thousand, how many fail while the weather is bad.
    pub(super) system_faults: u32,
    pub(super) disk_faults: u32,
    /// A shard that takes nothing before the last life.
    pub(super) shard_away: Option<u32>,
    pub(super) max_buffer_bytes: u64,
    pub(super) max_journal_bytes: u64,
    pub(super) max_table_journal_bytes: u64,
    pub(super) segment_bytes: u64,
    /// A sync of the disk takes up to this long.
    pub(super) slowest_sync_ms: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TablePlan {
    pub(super) deduplicates: bool,
    /// Its inserts are cut by shards, of which there are two.
    pub(super) is_sharded: bool,
}

#[derive(Debug, Clone)]
pub(super) struct WriterPlan {
    pub(super) table: usize,
    /// Drawn for each insert.
    pub(super) levels: Vec<Level>,
    /// Between two inserts, at the most.
    pub(super) pause_ms: u64,
    /// Of a hundred inserts, for how many the writer has not the patience to wait for an answer.
    pub(super) impatient: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ClientPlan {
    pub(super) table: usize,
    pub(super) level: Level,
    pub(super) inserts: usize,
    /// Between two inserts, at the most.
    pub(super) pause_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The machine loses its power, within a call of the disk or between two.
    PowerFails { within_calls: Option<u32> },
    /// The process is killed; the machine and what it has cached live on.
    Killed { within_calls: Option<u32> },
    /// An orderly end, in the time that it is given.
    ShutDown { limit_ms: u64 },
}

impl Scenario {
    pub(super) fn of(seed: u64) -> Scenario {
        let mut random = Rng::with_seed(seed ^ 0x5ce9_a210);
        let (tables, writers) = (random.usize(1..=3), random.usize(1..=6));
        Scenario::with(seed, random, tables, writers)
    }

    /// The same where lanes have to take turns.
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

    /// The same where tables have shards, and two gateways stand before them.
    pub(super) fn of_cluster(seed: u64) -> Scenario {
        let mut random = Rng::with_seed(seed ^ 0xc1a5_7e45);
        let (tables, writers) = (random.usize(1..=3), random.usize(1..=5));
        let mut scenario = Scenario::with(seed, random.fork(), tables, writers);
        scenario.tables.iter_mut().for_each(|table| table.is_sharded = random.u32(0..4) > 0);
        scenario.endings.push(Ending::some(&mut random));
        scenario.clients = (0..random.usize(1..=4)).map(|_| ClientPlan::any(&mut random, tables)).collect();
        scenario
    }

    /// Shard 2 is away for a whole life in which nothing else is wrong and nobody loses patience.
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

    /// The shards that have faults of their own. 0: tables that have none.
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
    /// Where the rows of an insert go: to one shard, or to both.
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
    /// Which call of the disk is the last, where one is.
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
