//! What ack level disk costs: beside memory, beside syncing once per insert, and beside the disk itself.

use std::fs::{remove_file, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use super::goals::Goals;
use super::inserts::{InsertsOptions, Mode};
use super::inserts_table::Measured;
use super::Part;
use crate::error::BenchError;
use crate::load::RowFormat;
use crate::report::{count, figure, median, paired_ratio, Section, Table};
use crate::stack::{binary, Stack, StackOptions};

const METHOD: &str = "One-row inserts. The disk's own rate is that of one thread which appends 128 bytes to a preallocated file \
    and calls fdatasync. This machine's disk syncs faster than most: so the same stands here for a disk on which each sync takes \
    longer, in all processes. One sync per insert: the gateway's HTTP layer, and a file to which each request is \
    appended and synced before it is answered. The rows that the gateway acknowledged are looked up afterwards as above.\n\n";
const MODES: [Mode; 3] = [Mode::Memory, Mode::Disk, Mode::SyncEach];

#[derive(Debug, Clone, clap::Args)]
pub struct DurabilityOptions {
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    #[arg(long, default_value_t = 200)]
    pub connections: u32,
    /// Of each mode, alternately.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Added to every sync of a file, in microseconds: 0 is the disk as it is.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1000])]
    pub added_sync_us: Vec<u64>,
}

/// One kind of disk.
#[derive(Default)]
struct Disk {
    added_sync_us: u64,
    many: Vec<(Mode, Vec<Measured>)>,
    /// One connection that waits for each insert.
    loops: Vec<f64>,
    syncs_per_second: Vec<f64>,
}

impl Part for DurabilityOptions {
    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let mut disks = Vec::new();
        for &added_sync_us in &self.added_sync_us {
            disks.push(match added_sync_us {
                0 => self.measure_disk(stack, options, 0)?,
                _ => self.measure_slower(options, added_sync_us)?,
            });
        }
        Ok(Section {
            name: "durability",
            title: "Acknowledged on disk",
            command: self.command(),
            body: self.report(&disks),
            charts: Vec::new(),
        })
    }
}

impl DurabilityOptions {
    fn command(&self) -> String {
        let added: Vec<String> = self.added_sync_us.iter().map(u64::to_string).collect();
        format!(
            "bench/run durability --seconds {} --connections {} --rounds {} --added-sync-us {}",
            self.seconds,
            self.connections,
            self.rounds,
            added.join(",")
        )
    }

    /// A gateway and a peer of their own, under which every sync takes longer.
    fn measure_slower(&self, options: &StackOptions, added_sync_us: u64) -> Result<Disk, BenchError> {
        let mut slower = options.clone();
        let library = binary(options, "slow_sync.so")?;
        slower.env.push(format!("LD_PRELOAD={}", library.display()));
        slower.env.push(format!("SLOW_SYNC_US={added_sync_us}"));
        let stack = Stack::open(&slower, &[])?;
        let disk = self.measure_disk(&stack, &slower, added_sync_us)?;
        stack.close()?;
        Ok(disk)
    }

    fn measure_disk(&self, stack: &Stack, options: &StackOptions, added_sync_us: u64) -> Result<Disk, BenchError> {
        let many = MODES.iter().map(|mode| (*mode, Vec::new())).collect();
        let mut disk = Disk { added_sync_us, many, ..Disk::default() };
        for _ in 0..self.rounds {
            for (mode, runs) in &mut disk.many {
                let one = self.inserts().run(stack, options, *mode, self.connections)?;
                eprintln!("+{added_sync_us} us, {mode}: {} requests/s", count(one.requests_per_second()));
                runs.push(one);
            }
            let alone = self.inserts().run(stack, options, Mode::Disk, 1)?;
            disk.loops.push(alone.requests_per_second());
            let syncs = syncs_per_second(added_sync_us, self.seconds).map_err(BenchError::io("syncing a file"))?;
            eprintln!(
                "+{added_sync_us} us, one loop: {} of {} syncs/s",
                count(alone.requests_per_second()),
                count(syncs)
            );
            disk.syncs_per_second.push(syncs);
        }
        Ok(disk)
    }

    fn inserts(&self) -> InsertsOptions {
        InsertsOptions {
            seconds: self.seconds,
            count: None,
            warmup_seconds: 0.5,
            connections: vec![self.connections],
            rounds: 1,
            modes: MODES.to_vec(),
            threads: 1,
            settings: Vec::new(),
            format: RowFormat::JsonEachRow,
        }
    }

    fn report(&self, disks: &[Disk]) -> String {
        let mut text = String::from(METHOD);
        let mut goals = Goals::new();
        for disk in disks {
            text.push_str(&self.table(disk).to_markdown());
            text.push('\n');
            self.add_goals(disk, &mut goals);
        }
        text.push_str(&goals.to_markdown());
        text
    }

    fn table(&self, disk: &Disk) -> Table {
        let mut table = Table::new([
            "sync takes",
            "way",
            "connections",
            "inserts/s",
            "× memory",
            "p50 ms",
            "p99 ms",
            "gateway's CPU, us per insert",
        ]);
        let sync = format!("{} us", figure(1e6 / median(disk.syncs_per_second.iter().copied()).max(1.0)));
        let memory = speeds(disk, Mode::Memory);
        for (mode, runs) in &disk.many {
            table.row([
                sync.clone(),
                way(*mode).to_owned(),
                self.connections.to_string(),
                count(median(speeds(disk, *mode))),
                figure(paired_ratio(&speeds(disk, *mode), &memory)),
                figure(median(runs.iter().map(Measured::p50_ms))),
                figure(median(runs.iter().map(Measured::p99_ms))),
                figure(median(runs.iter().map(Measured::gateway_microseconds_per_insert))),
            ]);
        }
        let none = || "–".to_owned();
        let loops = count(median(disk.loops.iter().copied()));
        table.row([sync.clone(), way(Mode::Disk).to_owned(), "1".into(), loops, none(), none(), none(), none()]);
        let syncs = count(median(disk.syncs_per_second.iter().copied()));
        table.row([sync, "the disk itself: syncs/s".into(), none(), syncs, none(), none(), none(), none()]);
        table
    }

    fn add_goals(&self, disk: &Disk, goals: &mut Goals) {
        let (memory, on_disk, each) =
            (speeds(disk, Mode::Memory), speeds(disk, Mode::Disk), speeds(disk, Mode::SyncEach));
        let named = match disk.added_sync_us {
            0 => "this disk".to_owned(),
            added => format!("syncs {added} us longer"),
        };
        if disk.added_sync_us == 0 {
            goals.at_least(&format!("{named}: disk's inserts/s to memory's"), 0.75, paired_ratio(&on_disk, &memory));
            let p99 = |mode| median(runs(disk, mode).iter().map(Measured::p99_ms));
            goals.at_most(&format!("{named}: p99 above memory's, ms"), 5.0, p99(Mode::Disk) - p99(Mode::Memory));
        }
        let alone = paired_ratio(&disk.loops, &disk.syncs_per_second);
        goals.at_least(&format!("{named}: one blocking loop's inserts/s to the disk's syncs/s"), 0.5, alone);
        goals.at_least(
            &format!("{named}: disk's inserts/s to one sync per insert"),
            20.0,
            paired_ratio(&on_disk, &each),
        );
    }
}

fn runs(disk: &Disk, mode: Mode) -> &[Measured] {
    disk.many.iter().find(|(one, _)| *one == mode).map(|(_, runs)| runs.as_slice()).unwrap_or_default()
}

fn speeds(disk: &Disk, mode: Mode) -> Vec<f64> {
    runs(disk, mode).iter().map(Measured::requests_per_second).collect()
}

fn way(mode: Mode) -> &'static str {
    match mode {
        Mode::Memory => "ack memory",
        Mode::Disk => "ack disk",
        _ => "one sync per insert",
    }
}

/// What one thread reaches that appends and syncs, in the folder for temporary files, where the gateway's data are too.
/// The best of several moments: a file system that still discards what others deleted slows some of them down.
fn syncs_per_second(added_us: u64, seconds: f64) -> io::Result<f64> {
    const FILE_BYTES: u64 = 16 << 20;
    const MOMENTS: u32 = 10;
    let path = std::env::temp_dir().join(format!("windrow-syncs-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    remove_file(&path)?;
    file.write_all_at(&vec![0; FILE_BYTES as usize], 0)?;
    file.sync_all()?;
    let (mut best, mut at) = (0.0f64, 0);
    for _ in 0..MOMENTS {
        let began = Instant::now();
        let mut syncs = 0u32;
        while began.elapsed().as_secs_f64() < seconds / f64::from(MOMENTS) {
            file.write_all_at(&[1; 128], at)?;
            at = (at + 128) % FILE_BYTES;
            if added_us > 0 {
                std::thread::sleep(Duration::from_micros(added_us));
            }
            file.sync_data()?;
            syncs += 1;
        }
        best = best.max(f64::from(syncs) / began.elapsed().as_secs_f64());
    }
    Ok(best)
}
