//! The present state of a dead letter's table. Somebody may have created the table anew since, to repair it.
//!
//! A flush depends on whether the table recognises a repeat, whether it has views, and how it is partitioned.
//! These must be true of the table that the rows go to, or a repeat may be stored twice. The contents of the
//! rows stay as they were.

use windrow_engine::sink::{Destination, Partitioning};

use crate::admission::{TableKey, TableSchema, UserKey};
use crate::insert::recognised;
use crate::state::State;

/// Forgets the schema of a table, because the table may have been repaired without the gateway's knowledge.
pub(super) fn look_again(state: &State, database: &str, table: &str) {
    let key = TableKey { database: database.to_owned(), table: table.to_owned() };
    state.admission.forget_table(&key);
}

/// Returns the destination as its table is now. The destination stays unchanged if the backend can't be
/// asked, if there is no such table, or if the rows go to the table of a shard.
pub(super) async fn as_it_is_now(state: &State, destination: Destination) -> Destination {
    // The rows go to the table of their shard, and only there it would be known whether they are there already.
    if destination.shard.is_some() {
        return destination;
    }
    let admission = &state.admission;
    let key = TableKey { database: destination.database.clone(), table: destination.table.clone() };
    let own = admission.backend().own_credentials();
    let Ok(schema) = admission.table(&key, &UserKey::of(own)).await else { return destination };
    let will_recognise = admission.will_recognise_batches(&schema);
    let deduplicates = admission.give_windows(&key, &schema).await.is_ok() && will_recognise;
    let settings = match deduplicates || schema.has_views {
        true => with_recognition(state, &schema, destination.settings).await,
        false => destination.settings,
    };
    let before = destination.partitioning.as_ref();
    // In the time zone of the server a key may mean other partitions; where it is not known, ClickHouse cuts.
    let partitioning = schema
        .is_partitioned()
        .then(|| Partitioning { key: None, max_per_insert: before.and_then(|before| before.max_per_insert) });
    Destination {
        deduplicates,
        is_replicated: schema.is_replicated,
        has_views: schema.has_views,
        hands_on: schema.hands_on,
        partitioning,
        settings,
        ..destination
    }
}

/// Adds the settings by which a repeat is recognised: the table may have got its window or its views since.
async fn with_recognition(
    state: &State,
    schema: &TableSchema,
    mut settings: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let own = UserKey::of(state.admission.backend().own_credentials());
    let Ok(user) = state.admission.user(own).await else { return settings };
    if state.admission.backend().takes_requests() {
        let more = recognised(&user, schema.has_views);
        settings.retain(|(name, _)| more.iter().all(|(known, _)| known != name));
        settings.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        settings.sort_unstable();
    }
    settings
}
