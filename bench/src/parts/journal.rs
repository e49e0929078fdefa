//! The journal alone, in the benchmark's own process: records per second by writers that wait for each, beside what the
//! disk can sync, and how fast it is read again.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use windrow_log::{Folder, LogOptions, Room};

use super::goals::Goals;
use super::{megabytes, Part};
use crate::error::BenchError;
use crate::report::{figure, Section, Table};
use crate::stack::{Stack, StackOptions};

/// A one-row insert as it is recorded.
const PAYLOAD_BYTES: usize = 150;
const KIND: u8 = 1;

#[derive(Debug, Clone, clap::Args)]
pub struct JournalOptions {
    /// For each number of writers.
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// How much is read again.
    #[arg(long, default_value_t = 1000)]
    pub megabytes: u64,
    /// Where the journal's folder is made; it is removed afterwards.
    #[arg(long, default_value = ".")]
    pub folder: PathBuf,
}

impl Part for JournalOptions {
    fn measure(&self, _: &Stack, _: &StackOptions) -> Result<Section, BenchError> {
        let scratch = Scratch(self.folder.join(format!("bench-journal-{}", std::process::id())));
        fs::create_dir(&scratch.0).map_err(BenchError::io("making the journal's folder"))?;
        let syncs = self.syncs(&scratch)?;
        let mut table = Table::new(["writers that wait", "records/s", "× one sync each", "records per sync"]);
        let mut goals = Goals::new();
        for writers in [1, 16, 200] {
            let appends = self.appends(&scratch, writers)?;
            table.row([
                writers.to_string(),
                figure(appends.per_second),
                figure(appends.per_second / syncs),
                figure(appends.per_sync),
            ]);
            match writers {
                1 => goals.at_least("one writer to the disk's own rate of syncs", 0.5, appends.per_second / syncs),
                200 => goals.at_least("200 writers to one sync each", 20.0, appends.per_second / syncs),
                _ => {}
            }
        }
        let replay = self.replay(&scratch)?;
        goals.at_least("read again, MB/s", 200.0, replay);
        let body = format!(
            "Records of {PAYLOAD_BYTES} bytes; each writer is a thread that waits until its record is on the disk. The disk alone writes \
             and syncs {} such records/s, one after the other.\n\n{}\nA journal of {} MB is read and checked at {} MB/s when it is opened.\n\n{}",
            figure(syncs),
            table.to_markdown(),
            self.megabytes,
            figure(replay),
            goals.to_markdown()
        );
        Ok(Section {
            name: "journal",
            title: "The journal alone",
            command: format!("bench/run journal --seconds {} --megabytes {}", self.seconds, self.megabytes),
            body,
            charts: Vec::new(),
        })
    }
}

struct Appends {
    per_second: f64,
    per_sync: f64,
}

impl JournalOptions {
    /// What the disk does by itself: write a record where room was taken, sync, and again.
    fn syncs(&self, scratch: &Scratch) -> Result<f64, BenchError> {
        let failed = || BenchError::io("writing to the disk");
        let file = File::create(scratch.0.join("alone")).map_err(failed())?;
        file.write_all_at(&vec![0; 64 << 20], 0).and_then(|()| file.sync_all()).map_err(failed())?;
        let (began, mut count) = (Instant::now(), 0u64);
        while began.elapsed() < self.duration() {
            let offset = count * PAYLOAD_BYTES as u64 % (63 << 20);
            file.write_all_at(&[1; PAYLOAD_BYTES], offset).and_then(|()| file.sync_data()).map_err(failed())?;
            count += 1;
        }
        Ok(count as f64 / began.elapsed().as_secs_f64())
    }

    fn appends(&self, scratch: &Scratch, writers: usize) -> Result<Appends, BenchError> {
        let folder =
            Folder::open(scratch.0.join(format!("{writers}"))).map_err(BenchError::io("opening the journal"))?;
        let (log, committer) = windrow_log::open(folder, options(), &mut |_| ()).map_err(unsound)?;
        let committing = thread::spawn(move || committer.run());
        let (began, until) = (Instant::now(), Instant::now() + self.duration());
        let threads: Vec<_> = (0..writers)
            .map(|_| {
                let log = log.clone();
                thread::spawn(move || {
                    let mut count = 0u64;
                    while Instant::now() < until {
                        let Ok(appended) = log.append(KIND, None, vec![1; PAYLOAD_BYTES], Room::Ordinary) else {
                            break;
                        };
                        let id = appended.id;
                        if appended.durable.wait().is_err() {
                            break;
                        }
                        log.release(id);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let count: u64 = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        let seconds = began.elapsed().as_secs_f64();
        let usage = log.usage();
        drop(log);
        if committing.join().is_err() || usage.failed_groups > 0 || usage.refused > 0 {
            return Err(BenchError::Unsound("the journal did not take all records".to_owned()));
        }
        Ok(Appends { per_second: count as f64 / seconds, per_sync: count as f64 / usage.syncs.max(1) as f64 })
    }

    fn replay(&self, scratch: &Scratch) -> Result<f64, BenchError> {
        let path = scratch.0.join("replay");
        let open = || Folder::open(&path).map_err(BenchError::io("opening the journal"));
        let (log, committer) = windrow_log::open(open()?, options(), &mut |_| ()).map_err(unsound)?;
        let committing = thread::spawn(move || committer.run());
        let mut written = 0u64;
        while written < self.megabytes * 1_000_000 {
            match log.append(KIND, None, vec![1; PAYLOAD_BYTES], Room::Ordinary) {
                Ok(_) => written += PAYLOAD_BYTES as u64 + 24,
                // What waits to be written is bounded.
                Err(_) => log
                    .append(KIND, None, Vec::new(), Room::Reserve)
                    .map_err(unsound)?
                    .durable
                    .wait()
                    .map_err(unsound)?,
            }
        }
        drop(log);
        committing.join().map_err(|_| BenchError::Unsound("the journal's thread has panicked".to_owned()))?;
        let (began, mut records) = (Instant::now(), 0u64);
        drop(windrow_log::open(open()?, options(), &mut |_| records += 1).map_err(unsound)?);
        if records * (PAYLOAD_BYTES as u64 + 24) < written {
            return Err(BenchError::Unsound(format!("{records} records were read again, which are too few")));
        }
        Ok(megabytes(written) / began.elapsed().as_secs_f64())
    }

    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

fn options() -> LogOptions {
    LogOptions { segment_bytes: 64 << 20, max_bytes: 8 << 30, reserve_bytes: 64 << 20 }
}

fn unsound(error: impl std::error::Error) -> BenchError {
    BenchError::Unsound(error.to_string())
}

/// A folder that goes when it is not needed any more.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever runs benchmarks sees a folder that stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}
