//! The time for which a hop is tried, and the pauses between its attempts.

use std::time::Duration;

use tokio::time::Instant;
use windrow_clickhouse::{Call, CallError};

use crate::error::{Refusal, ENDING};
use crate::insert::{StatementOptions, WAIT_TIMEOUT};
use crate::state::State;

use super::OtherGateway;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The attempts to send one insert to its owner.
pub(crate) struct Attempts<'a> {
    state: &'a State,
    began: Instant,
    patience: Duration,
    pause: Duration,
    /// Says whether the owner may have got the insert while its answer was lost.
    may_have_arrived: bool,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(state: &'a State, patience: Duration) -> Self {
        Attempts { state, began: Instant::now(), patience, pause: FIRST_PAUSE, may_have_arrived: false }
    }

    pub(crate) fn may_have_arrived(&mut self) {
        self.may_have_arrived = true;
    }

    /// Waits for the time of the next attempt. Fails where the insert has been tried for long enough, or the
    /// gateway closes.
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

impl OtherGateway {
    /// Sends an insert to the gateway that owns it, again and again while the owner is away: the owner knows a repeat.
    pub(crate) async fn post(&self, state: &State, patience: Duration, call: Call<'_>) -> Result<(), Refusal> {
        let mut attempts = Attempts::new(state, patience);
        loop {
            let answered = tokio::select! {
                biased;
                answer = self.client().call(call.clone()) => answer.map(drop),
                () = self.gone() => Err(CallError::Unknown("it does not answer pings any more".to_owned())),
            };
            let cause = match answered {
                Ok(()) => {
                    self.answered();
                    return Ok(());
                }
                Err(CallError::NotSent(error)) => error.cause.to_string(),
                Err(CallError::Unknown(cause)) => {
                    attempts.may_have_arrived();
                    cause
                }
                Err(CallError::Exception(exception)) if exception.line.contains(ENDING) => {
                    "it is shutting down".to_owned()
                }
                Err(CallError::Exception(exception)) => return Err(Refusal::exception(exception)),
            };
            attempts.again(self, &cause).await?;
        }
    }
}

/// Returns how long the insert would wait to be stored. It waits no longer for its owner. The last of several
/// settings counts.
pub(crate) fn patience(state: &State, options: &StatementOptions<'_>) -> Duration {
    state.patience(options.setting(WAIT_TIMEOUT))
}
