//! Whether the backend is away, for those who don't wait until it is back.
//!
//! A question may take long because there is much to do, and that says nothing. So whoever waits for an answer looks
//! after a while whether the backend has answered anybody meanwhile, and if not asks it for nothing at all: what doesn't
//! answer that either is away. All who look at the same time share one such question.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_clickhouse::{Call, CallError, Client};

use super::rounds::{Answers, Rounds};
use super::standing::Moment;

/// An answer may take so long before anybody doubts that the backend is there.
const PATIENCE: Duration = Duration::from_millis(700);
/// What it may take to answer nothing. Together they stay well below the 2 s within which somebody has to hear of it.
const ANSWER: Duration = Duration::from_millis(900);
/// It goes on to be away for so long; who asks meanwhile waits a moment only.
const AWAY_HOLDS: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(150);

pub(super) struct Pulse {
    client: Arc<Client>,
    asking: Arc<Rounds<(), bool>>,
    /// When it was found to be away last; zero: never.
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

/// Whether it says anything, be it an error.
async fn answers(client: &Client) -> bool {
    let call = Call::new(&client.endpoint().credentials, "SELECT 1").timeout(ANSWER);
    match tokio::time::timeout(ANSWER, client.call(call)).await {
        Ok(Ok(_) | Err(CallError::Exception(_))) => true,
        Ok(Err(CallError::NotSent(_) | CallError::Unknown(_))) | Err(_) => false,
    }
}
