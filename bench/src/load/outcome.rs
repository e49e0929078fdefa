//! What a run measured, per connection and altogether.

use std::collections::BTreeMap;

use super::Histogram;

/// What a connection has to remember so that every one of its ids can be checked.
#[derive(Debug, Default, Clone)]
pub struct ConnectionIds {
    /// Sequence numbers 0 to `sent` - 1 were sent.
    pub sent: u64,
    /// Of these, the ones that were not acknowledged: refused, or without an answer.
    pub unacknowledged: Vec<u64>,
}

impl ConnectionIds {
    /// Counted before the answer: an insert that the run gave up waiting for was sent, but not acknowledged.
    pub fn send(&mut self, seq: u64) {
        self.sent = seq + 1;
        self.unacknowledged.push(seq);
    }

    /// The last one sent was acknowledged: a connection has only one under way.
    pub fn acknowledge(&mut self) {
        self.unacknowledged.pop();
    }

    pub fn acknowledged(&self) -> u64 {
        self.sent - self.unacknowledged.len() as u64
    }
}

#[derive(Default, Clone)]
pub struct LoadOutcome {
    /// Indexed by connection.
    pub ids: Vec<ConnectionIds>,
    /// Of inserts that were acknowledged after the warm-up, also of those under way when the window closed: leaving the
    /// slow ones out would flatter a server.
    pub latency: Histogram,
    /// Inserts that were acknowledged after the warm-up and before the window closed, whenever they began.
    pub acknowledged_in_window: u64,
    pub window_seconds: f64,
    pub statuses: BTreeMap<u16, u64>,
    /// Connections that failed in the middle of an exchange.
    pub broken: u64,
    /// Inserts that a paced connection could not begin in their interval because the one before was still unanswered.
    pub missed_intervals: u64,
    pub first_error: Option<String>,
    /// Of the load generator itself.
    pub cpu_seconds: f64,
}

impl LoadOutcome {
    pub fn acknowledged(&self) -> u64 {
        self.ids.iter().map(ConnectionIds::acknowledged).sum()
    }

    pub fn unacknowledged(&self) -> u64 {
        self.ids.iter().map(|ids| ids.unacknowledged.len() as u64).sum()
    }

    pub fn requests_per_second(&self) -> f64 {
        self.acknowledged_in_window as f64 / self.window_seconds
    }

    pub fn count_status(&mut self, status: u16) {
        *self.statuses.entry(status).or_default() += 1;
    }

    /// Keeps the first one; the others are counted by their status.
    pub fn note_error(&mut self, text: impl FnOnce() -> String) {
        self.first_error.get_or_insert_with(text);
    }

    /// Adds what another thread's connections did; those have other numbers, so the ids are put in their place.
    pub fn merge(&mut self, other: LoadOutcome) {
        if self.ids.len() < other.ids.len() {
            self.ids.resize(other.ids.len(), ConnectionIds::default());
        }
        for (mine, theirs) in self.ids.iter_mut().zip(other.ids) {
            if theirs.sent > 0 {
                *mine = theirs;
            }
        }
        self.latency.merge(&other.latency);
        self.acknowledged_in_window += other.acknowledged_in_window;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.broken += other.broken;
        self.missed_intervals += other.missed_intervals;
        if let Some(text) = other.first_error {
            self.note_error(|| text);
        }
    }
}
