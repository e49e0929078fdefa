//! What a seed decides before anything happens.

use fastrand::Rng;

use super::books::Level;

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    /// Whether each table deduplicates.
    pub(super) tables: Vec<bool>,
    pub(super) writers: Vec<WriterPlan>,
    /// Every so manieth insert is refused by ClickHouse for good; 0: none.
    pub(super) poison_every: u64,
    /// How each life ends; one more follows in which all is well.
    pub(super) endings: Vec<Ending>,
    pub(super) life_ms: u64,
    /// Of calls of a thousand, how many fail while the weather is bad.
    pub(super) system_faults: u32,
    pub(super) disk_faults: u32,
    pub(super) max_buffer_bytes: u64,
    pub(super) max_journal_bytes: u64,
    pub(super) max_table_journal_bytes: u64,
    pub(super) segment_bytes: u64,
    /// A sync of the disk takes up to this long.
    pub(super) slowest_sync_ms: u64,
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

    fn with(seed: u64, mut random: Rng, tables: usize, writers: usize) -> Scenario {
        let tables: Vec<bool> = (0..tables).map(|_| random.u32(0..4) > 0).collect();
        let writers = (0..writers).map(|_| WriterPlan::any(&mut random, tables.len())).collect();
        let is_stormy = random.u32(0..4) > 0;
        Scenario {
            seed,
            tables,
            writers,
            // A batch with more culprits than can be looked for is given up, with the innocent ones.
            poison_every: [0, 0, 17, 31, 101][random.usize(0..5)],
            endings: (0..random.usize(0..=3)).map(|_| Ending::any(&mut random)).collect(),
            life_ms: [300, 2_000, 20_000][random.usize(0..3)],
            system_faults: if is_stormy { random.u32(0..500) } else { 0 },
            disk_faults: if is_stormy && random.bool() { random.u32(0..100) } else { 0 },
            max_buffer_bytes: [4_000, 20_000, 1 << 20][random.usize(0..3)],
            max_journal_bytes: [1 << 20, 4 << 20][random.usize(0..2)],
            max_table_journal_bytes: [8 << 10, 1 << 20][random.usize(0..2)],
            segment_bytes: [4 << 10, 16 << 10][random.usize(0..2)],
            slowest_sync_ms: [0, 2, 50][random.usize(0..3)],
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

    fn any(random: &mut Rng) -> Ending {
        match random.u32(0..6) {
            0 => Ending::PowerFails { within_calls: None },
            1..=2 => Ending::PowerFails { within_calls: Some(random.u32(1..300)) },
            3..=4 => Ending::Killed { within_calls: random.bool().then(|| random.u32(1..300)) },
            _ => Ending::ShutDown { limit_ms: [0, 500, 60_000][random.usize(0..3)] },
        }
    }
}
