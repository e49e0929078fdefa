//! Detection of a backend that is away, for callers that don't wait until it is back.
//!
//! A question may take long because the backend is busy, which does not mean that it is away. So a caller
//! that waits for an answer looks after a while whether the backend has answered anybody meanwhile. If not,
//! the caller sends `SELECT 1`, which is no work: a backend that doesn't answer that either is away. All
//! callers that look at the same time share one such question.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_clickhouse::{Call, CallError, Client};

use super::rounds::{Answers, Rounds};
use super::standing::Moment;

/// Time that an answer may take before the backend is suspected to be away.
const PATIENCE: Duration = Duration::from_millis(700);
/// Time that the answer to `SELECT 1` may take. With [`PATIENCE`] it stays well below the 2 s within which a
/// client has to hear that the backend is away.
const ANSWER: Duration = Duration::from_millis(900);
/// Time for which the backend is taken to be away still; callers in that time wait for [`MOMENT`] only.
const AWAY_HOLDS: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(150);

pub(super) struct Pulse {
    client: Arc<Client>,
    asking: Arc<Rounds<(), bool>>,
    /// Moment at which the backend was last found to be away, in microseconds; zero: never.
    away: AtomicU64,
}

impl Pulse {
    pub(super) fn of(client: Arc<Client>) -> Pulse {
        let asking = Rounds::new({
            let client = client.clone();
            move |_, _| {
                let client = client.clone();
                async move { Answers::from([((), answers(&client).await)]) }
            }
        });
        Pulse { client, asking, away: AtomicU64::new(0) }
    }

    /// Ends when the backend is found to be away.
    pub(super) async fn stops(&self) {
        loop {
            let began = Instant::now();
            let was_away = self.is_away_of_late();
            tokio::time::sleep(if was_away { MOMENT } else { PATIENCE }).await;
            if self.client.has_answered_since(began) {
                continue;
            }
            if was_away {
                return;
            }
            let answers = self.asking.answer((), Moment::of(began)).await.unwrap_or(false);
            if !answers && !self.client.has_answered_since(began) {
                self.away.fetch_max(Moment::now().as_micros(), Ordering::Relaxed);
                return;
            }
        }
    }

    fn is_away_of_late(&self) -> bool {
        let away = Moment::of_micros(self.away.load(Ordering::Relaxed));
        away > Moment::default() && away.elapsed() < AWAY_HOLDS
    }
}

/// Says whether the backend answers at all, be it with an error.
async fn answers(client: &Client) -> bool {
    let call = Call::new(&client.endpoint().credentials, "SELECT 1").timeout(ANSWER);
    match tokio::time::timeout(ANSWER, client.call(call)).await {
        Ok(Ok(_) | Err(CallError::Exception(_))) => true,
        Ok(Err(CallError::NotSent(_) | CallError::Unknown(_))) | Err(_) => false,
    }
}
