//! The removal of dead letters for good, also from the journal: by a user's wish, or for their age.
//!
//! A dead letter is known before the journal has on disk that its insert is done. As long as the dead letter
//! is there, a crash does no harm: the insert that comes back is found to be a dead letter. So before a dead
//! letter is removed, the journal must have on disk that the insert is done.

use std::sync::Weak;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windrow_engine::dead_letters::{DeadLetterId, Gone, Selection};

use crate::state::State;

/// Number of ids that are removed at once: one record of the journal may have to name them all.
const AT_ONCE: usize = 10_000;

/// Forgets these dead letters. Returns how many of them there were.
pub(crate) async fn forget(state: &State, ids: &[DeadLetterId], how: Gone) -> Result<u64, String> {
    let mut forgotten = 0;
    for ids in ids.chunks(AT_ONCE) {
        let journal_ids = state.dead_letters.journal_ids(ids);
        state.gatherer.ensure_done(&journal_ids).await?;
        forgotten += state.dead_letters.forget(ids, how).await.map_err(|error| error.to_string())?;
    }
    Ok(forgotten)
}

/// Discards dead letters when they are too old, as long as the gateway runs. It looks often enough that none
/// gets much older than it may.
pub(crate) async fn discard_old(state: Weak<State>) {
    let max_age_ms = state.upgrade().and_then(|state| state.options.settings.get().dead_letters.max_age_ms);
    let Some(max_age_ms) = max_age_ms else { return };
    while let Some(state) = state.upgrade() {
        let oldest = now_micros().saturating_sub(max_age_ms.saturating_mul(1000));
        let old = state.dead_letters.select(&Selection { until_micros: Some(oldest), ..Selection::default() });
        match forget(&state, &old, Gone::Expired).await {
            Ok(0) => {}
            Ok(dead_letters) => tracing::warn!(dead_letters, max_age_ms, "dead letters were discarded for their age"),
            Err(error) => tracing::error!(error, "old dead letters could not be discarded"),
        }
        drop(state);
        tokio::time::sleep(Duration::from_millis((max_age_ms / 10).clamp(100, 60_000))).await;
    }
}

pub(crate) fn now_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
