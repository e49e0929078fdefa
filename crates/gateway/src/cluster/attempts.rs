//! How long a hop is tried for, and how often.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Refusal;
use crate::state::State;

use super::OtherGateway;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PATIENCE: Duration = Duration::from_secs(86_400);

/// The attempts of one insert to get to its owner.
pub(crate) struct Attempts<'a> {
    state: &'a State,
    began: Instant,
    patience: Duration,
    pause: Duration,
    /// The owner may have got it, and its answer was lost.
    may_have_arrived: bool,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(state: &'a State, patience: Duration) -> Self {
        Attempts { state, began: Instant::now(), patience, pause: FIRST_PAUSE, may_have_arrived: false }
    }

    pub(crate) fn may_have_arrived(&mut self) {
        self.may_have_arrived = true;
    }

    /// Waits until it is to be tried again, or says that it has been tried for long enough.
    pub(crate) async fn again(&mut self, gateway: &OtherGateway, cause: &str) -> Result<(), Refusal> {
        let waited = self.began.elapsed();
        if waited + self.pause > self.patience || self.state.is_closing() {
            gateway.gave_up();
            return Err(Refusal::owner_away(gateway.name(), cause, waited.as_millis(), self.may_have_arrived));
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// How long the insert would wait to be stored; it waits no longer for its owner. Of the settings the last one counts.
pub(crate) fn patience<'s>(state: &State, settings: impl Iterator<Item = (&'s str, &'s str)>) -> Duration {
    let said = settings.filter(|(name, _)| *name == "wait_for_async_insert_timeout").last();
    let said = said.and_then(|(_, seconds)| seconds.parse().ok()).and_then(|s| Duration::try_from_secs_f64(s).ok());
    let default = || Duration::from_millis(state.options.settings.get().gather.wait_for_async_insert_timeout_ms);
    said.unwrap_or_else(default).min(LONGEST_PATIENCE)
}
