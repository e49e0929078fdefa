//! What a gateway keeps in memory of tables that were inserted into once and have rested since.

use std::time::Duration;

use super::ground::Ground;
use super::run::{Bench, Touched};
use crate::error::BenchError;
use crate::parts::megabytes;
use crate::report::{count, figure, Table};

/// Long enough for what ends by itself after a moment.
const RESTS_FOR: Duration = Duration::from_secs(3);

pub struct Idle {
    pub tables: u32,
    touched: Touched,
    before_bytes: u64,
    after_bytes: u64,
}

/// The gateway must be a fresh one.
pub fn measure(bench: &Bench<'_>, ground: &Ground) -> Result<Idle, BenchError> {
    let gateway_bytes = || bench.stack.snapshot().gateway.resident_bytes;
    let before_bytes = gateway_bytes();
    let touched = bench.touch(ground)?;
    std::thread::sleep(RESTS_FOR);
    Ok(Idle { tables: ground.targets, touched, before_bytes, after_bytes: gateway_bytes() })
}

impl Idle {
    pub fn megabytes(&self) -> f64 {
        megabytes(self.after_bytes)
    }

    pub fn one_line(&self) -> String {
        format!(
            "{} tables touched in {} s, stored {} s later, at rest {} MB",
            count(f64::from(self.tables)),
            figure(self.touched.seconds),
            figure(self.touched.flush_seconds),
            figure(self.megabytes())
        )
    }
}

pub fn table(idle: &[Idle]) -> Table {
    let mut table = Table::new([
        "tables at rest",
        "first inserts took, s",
        "stored so long after, s",
        "gateway's memory before, MB",
        "at rest, MB",
        "per table, kB",
    ]);
    for one in idle {
        table.row([
            count(f64::from(one.tables)),
            figure(one.touched.seconds),
            figure(one.touched.flush_seconds),
            figure(megabytes(one.before_bytes)),
            figure(one.megabytes()),
            figure(one.after_bytes.saturating_sub(one.before_bytes) as f64 / 1000.0 / f64::from(one.tables)),
        ]);
    }
    table
}
