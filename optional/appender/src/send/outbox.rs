//! The batches that wait to be sent. The lowest number goes first: it is the one that a server without room
//! still takes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep_until, Instant};

use crate::faults::Faults;
use crate::pipeline::Encoded;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Outbox {
    state: Mutex<State>,
    changed: Notify,
    faults: Option<Faults>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<u64, Job>,
    taken: usize,
    ended: bool,
}

pub(super) struct Job {
    pub(super) batch: Encoded,
    pub(super) attempt: u32,
    not_before: Instant,
}

impl Outbox {
    pub(super) fn new(faults: Option<Faults>) -> Outbox {
        Outbox { state: Mutex::default(), changed: Notify::new(), faults }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is done under this lock that could leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, batch: Encoded) {
        let job = Job { batch, attempt: 0, not_before: Instant::now() };
        self.lock().waiting.insert(job.batch.number, job);
        self.changed.notify_one();
    }

    /// Puts back a batch that did not get through. A batch that was only lost goes again at once the first
    /// time: most likely an idle connection had been closed.
    pub(super) fn put_back(&self, mut job: Job, wait: bool) {
        job.not_before = Instant::now() + pause(job.attempt, wait);
        job.attempt += 1;
        let mut state = self.lock();
        state.taken -= 1;
        state.waiting.insert(job.batch.number, job);
        drop(state);
        self.changed.notify_one();
    }

    pub(super) fn done(&self) {
        self.lock().taken -= 1;
        self.changed.notify_waiters();
    }

    /// Notes that no more batches will be put in.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_waiters();
    }

    /// Returns the next batch to send, when its time has come. Returns `None` if all have been acknowledged.
    pub(super) async fn take(&self) -> Option<Job> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let earliest = {
                let mut state = self.lock();
                if let Some(job) = self.next_due(&mut state) {
                    state.taken += 1;
                    // Another may be due for another sender.
                    self.changed.notify_one();
                    return Some(job);
                }
                if state.ended && state.waiting.is_empty() && state.taken == 0 {
                    return None;
                }
                state.waiting.values().map(|job| job.not_before).min()
            };
            match earliest {
                None => changed.await,
                Some(earliest) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(earliest) => {}
                },
            }
        }
    }

    fn next_due(&self, state: &mut State) -> Option<Job> {
        let now = Instant::now();
        let due: Vec<u64> =
            state.waiting.values().filter(|job| job.not_before <= now).map(|job| job.batch.number).collect();
        let mut number = *due.first()?;
        if let Some(faults) = &self.faults {
            let mut random = faults.random(number, u32::MAX);
            if random.f64() < faults.reorder {
                number = due[random.usize(..due.len())];
            }
        }
        state.waiting.remove(&number)
    }
}

fn pause(attempt: u32, wait: bool) -> Duration {
    if attempt == 0 && !wait {
        return Duration::ZERO;
    }
    (FIRST_PAUSE * 2u32.saturating_pow(attempt.min(10))).min(LONGEST_PAUSE)
}

/// Waits before a request that is no batch is sent again.
pub(super) async fn pause_before(attempt: u32) {
    tokio::time::sleep(pause(attempt, attempt > 0)).await;
}
