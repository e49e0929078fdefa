//! The start: inserts that an earlier run left in the journal are queued, before any new insert is taken.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::sink::Sink;
use tokio::sync::Notify;
use windrow_log::RecordId;

use crate::feeder::feed;
use crate::gatherer::Gatherer;
use crate::insert::DedupKeys;
use crate::journaling::Journaling;
use crate::leftovers::Scan;

/// Pause before records that could not be written are written again.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn recover<S: Sink>(gatherer: &Gatherer<S>, journal: &Arc<Journaling>, scan: Scan) {
    // The process may have ended after an insert became a dead letter, or was entered as stored, and before that was
    // its end.
    let (dead_letters, deduplication) = (&gatherer.core.stores.dead_letters, gatherer.deduplication());
    let is_dead_letter = |id: RecordId| dead_letters.as_ref().is_some_and(|dead_letters| dead_letters.holds(id.0));
    // Whatever is left has its keys from here on: a repeat that comes now waits for its end.
    let is_stored = |keys| deduplication.is_some_and(|deduplication| !deduplication.reclaim_left(keys));
    let found = scan.sort(|id, keys: Option<DedupKeys>| is_dead_letter(id) || keys.is_some_and(is_stored));
    journal.write_done(found.unsaid);
    journal.log.release_all(found.dead);
    if let Some(first) = found.unreadable.first() {
        tracing::error!(
            records = found.unreadable.len(),
            first = first.0,
            "the journal holds records that this version does not understand: they stay there, and are not stored"
        );
    }
    let (mut inserts, mut tables) = (0, 0);
    for (name, leftover) in found.tables {
        let table = gatherer.table(name);
        inserts += leftover.count;
        tables += 1;
        journal.count(&table, leftover.count, leftover.bytes);
        table.metrics.recovered.inc_by(leftover.count);
        table.set_leftover(leftover);
        tokio::spawn(feed(gatherer.clone(), journal.clone(), table));
    }
    if inserts > 0 {
        let bytes = journal.leftovers().bytes;
        tracing::info!(inserts, bytes, tables, "inserts are left in the journal from before: they are being stored");
    }
    tokio::spawn(write_what_is_left(Arc::downgrade(journal), journal.unwritten_grew.clone()));
}

async fn write_what_is_left(journal: Weak<Journaling>, grew: Arc<Notify>) {
    loop {
        grew.notified().await;
        tokio::time::sleep(PAUSE).await;
        match journal.upgrade() {
            Some(journal) => journal.write_what_is_left(),
            None => return,
        }
    }
}
