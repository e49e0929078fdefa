//! Counters of each table's activity, for whoever looks at the tables now.
//!
//! Metrics go to a time-series database, where each series costs memory for ever: only some tables have
//! series of their own there. The counters here cost some hundred bytes for a table, so that all tables have
//! their own, up to [`MAX_TABLES`]; the tables beyond that share one set.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::metrics::OTHER_TABLES;
use crate::sink::TableKey;

const MAX_TABLES: usize = 20_000;
/// Time constant with which a rate follows what happens, in seconds.
const SMOOTHING_SECONDS: f64 = 5.0;

/// Numbers of inserts, of their rows and of their payload bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Amounts<T> {
    pub inserts: T,
    pub rows: T,
    pub bytes: T,
}

/// Counters of what one table has done since the start.
#[derive(Debug, Default)]
pub struct TableActivity {
    /// The counters are shared by all tables that have none of their own. They have no number of active
    /// parts, since one table's parts can't be told from another's.
    is_shared: bool,
    arrived: Amounts<AtomicU64>,
    failed_inserts: AtomicU64,
    flushes: AtomicU64,
    flushed_rows: AtomicU64,
    flushed_inserts: AtomicU64,
    parts_created: AtomicU64,
    parts_active: AtomicU64,
    rates: Mutex<Rates>,
}

#[derive(Debug, Default)]
struct Rates {
    seen: Amounts<u64>,
    per_second: Amounts<f64>,
}

/// Figures of a table's activity at one moment.
#[derive(Debug, Default, Clone, Copy)]
pub struct TableFigures {
    pub arrived: Amounts<u64>,
    /// Inserts, rows and bytes per second, averaged over the last seconds.
    pub per_second: Amounts<f64>,
    pub failed_inserts: u64,
    pub flushes: u64,
    pub flushed_rows: u64,
    pub flushed_inserts: u64,
    pub parts_created: u64,
    /// Active parts as they were last counted; 0 where nobody counted them.
    pub parts_active: u64,
}

impl TableActivity {
    pub(crate) fn arrived(&self, inserts: u64, rows: u64, bytes: u64) {
        self.arrived.inserts.fetch_add(inserts, Ordering::Relaxed);
        self.arrived.rows.fetch_add(rows, Ordering::Relaxed);
        self.arrived.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, inserts: u64) {
        self.failed_inserts.fetch_add(inserts, Ordering::Relaxed);
    }

    pub(crate) fn flushed(&self, inserts: u64, rows: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushed_inserts.fetch_add(inserts, Ordering::Relaxed);
        self.flushed_rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn parts(&self, created: u64, active: u64) {
        self.parts_created.fetch_add(created, Ordering::Relaxed);
        if !self.is_shared {
            self.parts_active.store(active, Ordering::Relaxed);
        }
    }

    pub(crate) fn parts_active(&self) -> u64 {
        self.parts_active.load(Ordering::Relaxed)
    }

    pub fn figures(&self) -> TableFigures {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        TableFigures {
            arrived: self.total(),
            per_second: self.rates().per_second,
            failed_inserts: read(&self.failed_inserts),
            flushes: read(&self.flushes),
            flushed_rows: read(&self.flushed_rows),
            flushed_inserts: read(&self.flushed_inserts),
            parts_created: read(&self.parts_created),
            parts_active: self.parts_active(),
        }
    }

    fn total(&self) -> Amounts<u64> {
        let Amounts { inserts, rows, bytes } = &self.arrived;
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Amounts { inserts: read(inserts), rows: read(rows), bytes: read(bytes) }
    }

    /// Updates the rates; the last update was `seconds` ago.
    fn tick(&self, seconds: f64) {
        let total = self.total();
        let weight = 1.0 - (-seconds / SMOOTHING_SECONDS).exp();
        let mut rates = self.rates();
        let seen = std::mem::replace(&mut rates.seen, total);
        let follow = |rate: &mut f64, now: u64, before: u64| {
            *rate += weight * ((now - before) as f64 / seconds - *rate);
        };
        let Amounts { inserts, rows, bytes } = &mut rates.per_second;
        follow(inserts, total.inserts, seen.inserts);
        follow(rows, total.rows, seen.rows);
        follow(bytes, total.bytes, seen.bytes);
    }

    fn rates(&self) -> std::sync::MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters of all tables.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    tables: Mutex<HashMap<TableKey, Arc<TableActivity>>>,
}

impl Activities {
    pub(crate) fn of(&self, table: &TableKey) -> Arc<TableActivity> {
        let mut tables = self.lock();
        let is_known = tables.contains_key(table);
        match is_known || tables.len() < MAX_TABLES {
            true => tables.entry(table.clone()).or_default().clone(),
            false => {
                let others = TableKey { database: OTHER_TABLES.to_owned(), table: OTHER_TABLES.to_owned() };
                let shared = || Arc::new(TableActivity { is_shared: true, ..TableActivity::default() });
                tables.entry(others).or_insert_with(shared).clone()
            }
        }
    }

    pub(crate) fn all(&self) -> Vec<(TableKey, Arc<TableActivity>)> {
        self.lock().iter().map(|(name, activity)| (name.clone(), activity.clone())).collect()
    }

    /// Updates the rates of all tables; the last update was `seconds` ago. Returns what all tables have done
    /// together, without active parts: of tables that are gone nobody knows what parts they have.
    pub(crate) fn tick(&self, seconds: f64) -> TableFigures {
        let mut total = TableFigures::default();
        let activities: Vec<_> = self.lock().values().cloned().collect();
        for activity in activities {
            activity.tick(seconds);
            let figures = activity.figures();
            total.arrived.inserts += figures.arrived.inserts;
            total.arrived.rows += figures.arrived.rows;
            total.arrived.bytes += figures.arrived.bytes;
            total.per_second.inserts += figures.per_second.inserts;
            total.per_second.rows += figures.per_second.rows;
            total.per_second.bytes += figures.per_second.bytes;
            total.failed_inserts += figures.failed_inserts;
            total.flushes += figures.flushes;
            total.flushed_rows += figures.flushed_rows;
            total.flushed_inserts += figures.flushed_inserts;
            total.parts_created += figures.parts_created;
        }
        total
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TableKey, Arc<TableActivity>>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> TableKey {
        TableKey { database: "d".to_owned(), table: format!("t{number}") }
    }

    #[test]
    fn a_rate_comes_and_goes() {
        let activities = Activities::default();
        let table = activities.of(&key(0));
        for _ in 0..60 {
            table.arrived(10, 100, 1000);
            activities.tick(1.0);
        }
        let rate = table.figures().per_second;
        assert!((9.9..10.1).contains(&rate.inserts) && (99.0..101.0).contains(&rate.rows), "{rate:?}");
        for _ in 0..60 {
            activities.tick(1.0);
        }
        assert!(table.figures().per_second.rows < 0.1);
        assert_eq!(table.figures().arrived, Amounts { inserts: 600, rows: 6000, bytes: 60_000 });
    }

    #[test]
    fn too_many_tables_share_one() {
        let activities = Activities::default();
        for number in 0..MAX_TABLES + 10 {
            activities.of(&key(number)).arrived(1, 1, 1);
        }
        assert_eq!(activities.all().len(), MAX_TABLES + 1);
        assert_eq!(activities.tick(1.0).arrived.inserts, MAX_TABLES as u64 + 10);
        // Those that were there before still have their own.
        activities.of(&key(3)).arrived(1, 1, 1);
        assert_eq!(activities.of(&key(3)).figures().arrived.inserts, 2);
    }
}
