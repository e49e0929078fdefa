//! The results of the probes: every row by its number, and the times until acknowledgement.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::percentiles::{Histogram, Rolling};

/// The most rows of a run. They are numbered from 0 on, and so many fit into a row's id with room to spare.
pub(crate) const MAX_ROWS: u64 = 1 << 48;

/// The results, shared by all probes.
#[derive(Debug)]
pub(crate) struct ProbeResults {
    began: Instant,
    window: Duration,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    sent: u64,
    acknowledged: NumberSet,
    failures: u64,
    refusals: u64,
    last_error: Option<String>,
    all: Histogram,
    recent: Rolling,
}

/// The results at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProbeResultsView {
    pub sent: u64,
    pub acknowledged: u64,
    pub failures: u64,
    pub refusals: u64,
    pub last_error: Option<String>,
    /// Median of the recent times until acknowledgement; the next field is their 99th percentile.
    pub ack_p50_ms: Option<f64>,
    pub ack_p99_ms: Option<f64>,
}

impl ProbeResults {
    /// Makes empty results. `window` is the length of the recent past.
    pub fn new(window: Duration) -> Self {
        Self { began: Instant::now(), window, entries: Mutex::default() }
    }

    pub fn sent(&self) {
        self.lock().sent += 1;
    }

    pub fn acknowledged(&self, number: u64, waited: Duration) {
        let window = self.current_window();
        let mut entries = self.lock();
        entries.acknowledged.insert(number);
        entries.all.add(waited);
        entries.recent.add(window, waited);
    }

    /// Counts a refused row, which is tried again.
    pub fn refused(&self, reason: String) {
        let mut entries = self.lock();
        entries.refusals += 1;
        entries.last_error = Some(reason);
    }

    pub fn failed(&self, reason: String) {
        let mut entries = self.lock();
        entries.failures += 1;
        entries.last_error = Some(reason);
    }

    pub fn view(&self) -> ProbeResultsView {
        let window = self.current_window();
        let mut entries = self.lock();
        ProbeResultsView {
            sent: entries.sent,
            acknowledged: entries.acknowledged.count,
            failures: entries.failures,
            refusals: entries.refusals,
            last_error: entries.last_error.clone(),
            ack_p50_ms: entries.recent.quantile_ms(window, 0.5),
            ack_p99_ms: entries.recent.quantile_ms(window, 0.99),
        }
    }

    /// Returns a quantile of the whole run.
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        self.lock().all.quantile_ms(quantile)
    }

    /// Returns how many acknowledged rows are not among `found`.
    pub fn missing_from(&self, found: &NumberSet) -> u64 {
        self.lock().acknowledged.count_without(found)
    }

    fn current_window(&self) -> u64 {
        (self.began.elapsed().as_nanos() / self.window.as_nanos().max(1)) as u64
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // Counting can't panic half-way, so the entries are whole whatever happened to another task.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A set of small numbers, with a bit for each.
#[derive(Debug, Default)]
pub(crate) struct NumberSet {
    words: Vec<u64>,
    pub count: u64,
}

impl NumberSet {
    /// Adds a number. Says whether it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u64::from(new);
        new
    }

    /// Returns how many numbers of this set `other` lacks.
    pub fn count_without(&self, other: &Self) -> u64 {
        let missing = |(index, word): (usize, &u64)| word & !other.words.get(index).copied().unwrap_or(0);
        self.words.iter().enumerate().map(missing).map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rows_are_counted_one_by_one() {
        let results = ProbeResults::new(Duration::from_secs(10));
        let mut found = NumberSet::default();
        for number in 0..200 {
            results.sent();
            results.acknowledged(number, Duration::from_millis(5));
            if number != 63 && number != 64 && number != 199 {
                assert!(found.insert(number));
            }
        }
        assert!(!found.insert(0));
        // A row that landed though its insert failed is not missing, and hides no other.
        results.sent();
        found.insert(200);
        assert_eq!(results.missing_from(&found), 3);
        let view = results.view();
        assert_eq!((view.sent, view.acknowledged, view.failures), (201, 200, 0));
        assert!(view.ack_p50_ms.is_some());
    }
}
