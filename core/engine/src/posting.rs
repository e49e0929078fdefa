//! The way of dead letters to their store: at once, or as soon as it takes them. Until then their rows stay
//! in memory, and count as held.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::sink::Sink;
use tokio::sync::Notify;

use crate::dead_letter_store::FailedInsert;
use crate::flight::Flight;
use crate::gatherer::Core;
use crate::journaling::Journaled;
use crate::table::Table;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Counts of work that has to end before the gatherer does: dead letters that are not kept yet, and entries
/// of the deduplication index that are not on the disk yet.
#[derive(Default)]
pub(crate) struct Posting {
    under_way: AtomicUsize,
    /// Number of dead letters whose inserts only memory keeps.
    unkept: AtomicU64,
    arrived: Notify,
}

impl Posting {
    pub(crate) fn begin(&self, unkept: u64) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        self.unkept.fetch_add(unkept, Ordering::AcqRel);
    }

    pub(crate) fn unkept_inserts(&self) -> u64 {
        self.unkept.load(Ordering::Acquire)
    }

    pub(crate) fn end(&self, unkept: u64) {
        self.unkept.fetch_sub(unkept, Ordering::AcqRel);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
        self.arrived.notify_waiters();
    }

    /// Waits until no dead letter, and no entry of the deduplication index, is under way.
    pub(crate) async fn all_arrived(&self) {
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            // Registered before the look, so that the last one's arrival in between is not missed.
            arrived.as_mut().enable();
            if self.under_way.load(Ordering::Acquire) == 0 {
                return;
            }
            arrived.await;
        }
    }
}

/// Dead letters of one batch.
pub(crate) struct Post {
    pub(crate) table: Arc<Table>,
    pub(crate) flight: Arc<Flight>,
    pub(crate) dead_letters: Vec<FailedInsert>,
    /// Bytes of the table's memory that the dead letters hold.
    pub(crate) held_bytes: u64,
    /// Records of their inserts in the journal, which stay there until the dead letters are kept.
    pub(crate) journaled: Vec<Journaled>,
}

impl<S: Sink> Core<S> {
    /// Starts a task that sees to it that dead letters are kept.
    pub(crate) fn post(self: &Arc<Self>, post: Post) {
        report(&post.table, &post.dead_letters, self.stores.dead_letters.is_some());
        let core = self.clone();
        let unkept = (post.dead_letters.len() - post.journaled.len()) as u64;
        core.posting.begin(unkept);
        post.flight.records.hold();
        tokio::spawn(async move {
            let Post { table, flight, dead_letters, held_bytes, journaled } = post;
            keep(&core, &table, dead_letters).await;
            table.budget.give_back(held_bytes);
            if let Some(journal) = &core.journal {
                journal.done(&table, &journaled);
                flight.records.let_go(journal);
            }
            core.posting.end(unkept);
        });
    }
}

/// Hands the dead letters to their store, if there is one, again and again until they are kept.
async fn keep<S: Sink>(core: &Core<S>, table: &Table, mut dead_letters: Vec<FailedInsert>) {
    let Some(store) = &core.stores.dead_letters else { return };
    let mut pause = FIRST_PAUSE;
    while let Err(error) = store.keep(dead_letters).await {
        tracing::error!(
            database = table.name.database,
            table = table.name.table,
            inserts = error.dead_letters.len(),
            error = error.why,
            "dead letters could not be written; trying again"
        );
        dead_letters = error.dead_letters;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn report(table: &Table, dead_letters: &[FailedInsert], are_kept: bool) {
    let error = dead_letters.first().map(|dead_letter| dead_letter.error.to_string());
    let text = match are_kept {
        true => "inserts that nobody waited for could not be stored: they become dead letters",
        false => "inserts that nobody waited for could not be stored",
    };
    tracing::error!(
        database = table.name.database,
        table = table.name.table,
        inserts = dead_letters.len(),
        error,
        "{text}"
    );
}
