//! Keeps on disk the admissions of inserts that nobody waits for, so that a gateway which starts while
//! ClickHouse is away takes such inserts as well. `crate::admission` says how, and for how long the
//! admissions are believed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use windrow_engine::AckLevel;

use super::admit::without_password;
use crate::admission::{TableKey, ToKeep};
use crate::state::State;

/// Time from a new admission to the write, so that the write has those that come right behind it as well.
const GATHERED: Duration = Duration::from_millis(100);
/// Pause after a write, which costs something for each kind of insert.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest time between two checks of which admissions still hold.
const INTERVAL: Duration = Duration::from_secs(20);

/// Keeps admissions on disk as long as the gateway is there.
pub(crate) async fn go_on(state: Weak<State>) {
    loop {
        let Some(changed) = state.upgrade().map(|state| state.prepared.changed()) else { return };
        let _ = tokio::time::timeout(INTERVAL, changed.notified()).await;
        tokio::time::sleep(GATHERED).await;
        let Some(state) = state.upgrade() else { return };
        keep(&state).await;
        drop(state);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Writes the admissions that hold now to the file.
pub(crate) async fn keep(state: &Arc<State>) {
    let state = state.clone();
    // It makes hashes, and waits for the disk.
    let _ = tokio::task::spawn_blocking(move || keep_now(&state)).await;
}

fn keep_now(state: &State) {
    let all = state.prepared.all();
    let inserts = all.iter().filter(|(_, prepared)| {
        // Where rows are cut, nobody knows without asking by which shards.
        prepared.ack != AckLevel::Stored && prepared.sharding.is_none() && prepared.grounds.topology.is_none()
    });
    let inserts = inserts.filter_map(|(signature, prepared)| {
        let to = prepared.destination();
        Some(ToKeep {
            what: without_password(signature)?,
            grounds: &prepared.grounds,
            table: TableKey { database: to.database.clone(), table: to.table.clone() },
            deduplicates: to.deduplicates,
        })
    });
    if !state.admission.keep(inserts.collect(), state.kept_ttl()) {
        state.prepared.has_changed();
    }
}
