//! The records of stored inserts and their times, and the figures drawn from them.

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stored {
    pub table: usize,
    pub waits: bool,
    pub arrived_us: u64,
    pub stored_us: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    pub table: usize,
    pub opened_us: u64,
    pub started_us: u64,
    pub ended_us: u64,
    /// CPU time that the part takes.
    pub work_us: u64,
    pub inserts: usize,
}

/// Records in the order in which flushes ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Books {
    pub measured_us: Range<u64>,
    pub cpus: Option<u64>,
    pub cpus_busy_us: u64,
    pub inserts: Vec<Stored>,
    pub parts: Vec<Part>,
}

/// Figures of one table's batches that opened within the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    pub wait_p50_ms: f64,
    pub wait_p99_ms: f64,
    /// The mean time from arrival until the flush began.
    pub held_mean_ms: f64,
    pub inserts_per_part: f64,
    pub parts_per_s: f64,
    pub inserts_per_s: f64,
}

/// Figures of all tables: flushes that ended within the measured time, and the waits of inserts that arrived
/// within it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    pub inserts_per_s: f64,
    pub waits: Waits,
    pub inserts_per_part: f64,
    pub parts_per_s: f64,
    /// The busy share of the time of all CPUs.
    pub cpu_share: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl Books {
    pub fn outcome(&self, table: usize) -> Outcome {
        let (mut waits_us, mut held_us, mut parts, mut last_us) = (Vec::new(), 0, 0, 0);
        let mut inserts = self.inserts.iter();
        for part in &self.parts {
            let inserts = inserts.by_ref().take(part.inserts);
            if part.table != table || !self.measured_us.contains(&part.opened_us) {
                inserts.for_each(drop);
                continue;
            }
            for insert in inserts {
                waits_us.push(part.ended_us - insert.arrived_us);
                held_us += part.started_us - insert.arrived_us;
            }
            parts += 1;
            last_us = part.ended_us;
        }
        let count = waits_us.len() as f64;
        let seconds = (last_us - self.measured_us.start) as f64 / 1e6;
        let waits = Waits::of(waits_us);
        Outcome {
            wait_p50_ms: waits.p50_ms,
            wait_p99_ms: waits.p99_ms,
            held_mean_ms: held_us as f64 / 1e3 / count,
            inserts_per_part: count / f64::from(parts),
            parts_per_s: f64::from(parts) / seconds,
            inserts_per_s: count / seconds,
        }
    }

    pub fn load(&self) -> Load {
        let ended = || self.parts.iter().filter(|part| self.measured_us.contains(&part.ended_us));
        let parts = ended().count() as f64;
        let inserts = ended().map(|part| part.inserts).sum::<usize>() as f64;
        Load {
            inserts_per_s: inserts / self.seconds(),
            waits: self.waits(|_| true),
            inserts_per_part: inserts / parts,
            parts_per_s: parts / self.seconds(),
            cpu_share: self.cpus_busy_us as f64 / 1e6 / (self.seconds() * self.cpus.unwrap_or(1) as f64),
        }
    }

    /// Returns the waits of the inserts that `of` selects.
    pub fn waits(&self, of: impl Fn(&Stored) -> bool) -> Waits {
        let arrived = self.inserts.iter().filter(|insert| self.measured_us.contains(&insert.arrived_us));
        Waits::of(arrived.filter(|insert| of(insert)).map(|insert| insert.stored_us - insert.arrived_us).collect())
    }

    fn seconds(&self) -> f64 {
        (self.measured_us.end - self.measured_us.start) as f64 / 1e6
    }
}

impl Waits {
    fn of(mut waits_us: Vec<u64>) -> Self {
        waits_us.sort_unstable();
        let inserts = waits_us.len();
        let percentile = |share: f64| {
            let index = ((inserts as f64 * share).ceil() as usize).clamp(1, inserts);
            waits_us[index - 1] as f64 / 1e3
        };
        Waits { p50_ms: percentile(0.50), p99_ms: percentile(0.99), max_ms: percentile(1.0) }
    }
}
