//! The retry of dead letters: they go back to the gatherer as inserts of ack level `disk`, the oldest first. A dead
//! letter is removed when its insert is in the journal. A message is read first, the way its pipeline reads now.
//!
//! Several are retried at once, so that one sync of the journal serves them all. Their number and their bytes are
//! bounded.

use std::collections::HashSet;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::{json, Value};
use windrow_engine::dead_letters::{
    DeadLetter, DeadLetterId, Gone, Kept, MessageDeadLetter, MessageRows, Origin, Revived, Selection,
};

use super::super::answer::Answer;
use super::present::{as_it_is_now, look_again};
use super::DeadLettersApi;
use crate::dead_letter_retention::forget;
use crate::error::Refusal;

const MAX_AT_ONCE: usize = 256;
const MAX_BYTES_AT_ONCE: u64 = 16 << 20;
/// Number of failures that the answer lists one by one.
const MAX_TOLD: usize = 100;

#[derive(Default)]
struct Tally {
    retried: u64,
    failed: Vec<Failure>,
    /// Tables whose further dead letters are not tried: the cause of one refusal (no room, a shutdown)
    /// refuses the others as well.
    stuck: HashSet<Table>,
    /// Tables whose schemas have been forgotten, so that the backend is asked again.
    known: HashSet<Table>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Table {
    database: String,
    table: String,
}

struct Failure {
    id: DeadLetterId,
    why: String,
}

pub(super) async fn retry(api: &DeadLettersApi, selection: &Selection) -> Answer {
    let ids = api.dead_letters().select(selection);
    let mut tally = Tally::default();
    let mut left = ids.as_slice();
    while !left.is_empty() {
        let (some, rest) = left.split_at(api.dead_letters().how_many(left, MAX_AT_ONCE, MAX_BYTES_AT_ONCE));
        retry_some(api, some, &mut tally).await;
        left = rest;
    }
    let failed: Vec<Value> = tally.failed.iter().take(MAX_TOLD).map(Failure::json).collect();
    Answer::json(200, &json!({ "selected": ids.len(), "retried": tally.retried, "failed": failed }))
}

impl Failure {
    fn json(&self) -> Value {
        json!({ "id": self.id.0, "error": self.why })
    }
}

impl Tally {
    fn fail(&mut self, id: DeadLetterId, why: String) {
        self.failed.push(Failure { id, why });
    }
}

async fn retry_some(api: &DeadLettersApi, ids: &[DeadLetterId], tally: &mut Tally) {
    let mut pushes = Vec::new();
    for Read { id, dead_letter } in read(api, ids).await {
        if let Ok(Some(dead_letter)) = &dead_letter {
            let origin = &dead_letter.summary.origin;
            if tally.known.insert(table_of(origin)) {
                look_again(&api.state, &origin.database, &origin.table);
            }
        }
        match dead_letter {
            Ok(Some(dead_letter)) if tally.stuck.contains(&table_of(&dead_letter.summary.origin)) => {
                tally.fail(id, "not tried: one of the same table was not taken".to_owned());
            }
            Ok(Some(dead_letter)) => pushes.push(push(api, dead_letter)),
            // Somebody else has dealt with it.
            Ok(None) => {}
            Err(why) => tally.fail(id, why),
        }
    }
    let mut retried = Vec::new();
    for Pushed { id, origin, outcome } in all(pushes).await {
        match outcome {
            Ok(()) => retried.push(id),
            Err(NotRetried::Unread(why)) => tally.fail(id, why),
            Err(NotRetried::NotTaken(why)) => {
                tally.stuck.insert(table_of(&origin));
                tally.fail(id, why);
            }
        }
    }
    match forget(&api.state, &retried, Gone::Retried).await {
        Ok(gone) => tally.retried += gone,
        Err(error) => {
            let why = format!(
                "it is an insert again, and a dead letter still: {error}. Retried once more, it is stored once"
            );
            retried.into_iter().for_each(|id| tally.fail(id, why.clone()));
        }
    }
}

fn table_of(origin: &Origin) -> Table {
    Table { database: origin.database.clone(), table: origin.table.clone() }
}

struct Read {
    id: DeadLetterId,
    dead_letter: Result<Option<DeadLetter>, String>,
}

async fn read(api: &DeadLettersApi, ids: &[DeadLetterId]) -> Vec<Read> {
    let (dead_letters, ids) = (api.dead_letters().clone(), ids.to_vec());
    let reading = tokio::task::spawn_blocking(move || {
        let read = |id| Read { id, dead_letter: dead_letters.read(id).map_err(|error| error.to_string()) };
        ids.into_iter().map(read).collect()
    });
    // It neither panics nor is it cancelled.
    reading.await.unwrap_or_default()
}

struct Pushed {
    id: DeadLetterId,
    origin: Arc<Origin>,
    outcome: Result<(), NotRetried>,
}

enum NotRetried {
    /// The message can't be read. Other messages of its table may still be readable.
    Unread(String),
    NotTaken(String),
}

async fn push(api: &DeadLettersApi, dead_letter: DeadLetter) -> Pushed {
    let (id, origin) = (dead_letter.summary.id, dead_letter.summary.origin.clone());
    let outcome = match revive(api, dead_letter).await {
        Ok(Revived { destination, insert }) => {
            let shape = api.state.gatherer.shape(as_it_is_now(&api.state, destination).await);
            let pushed = api.state.gatherer.push(&shape, insert).await;
            pushed.map(drop).map_err(|error| NotRetried::NotTaken(Refusal::push(&error).line("")))
        }
        Err(why) => Err(NotRetried::Unread(why)),
    };
    Pushed { id, origin, outcome }
}

async fn revive(api: &DeadLettersApi, dead_letter: DeadLetter) -> Result<Revived, String> {
    match dead_letter.kept {
        Kept::Insert(insert) => Ok(Revived::of_insert(dead_letter.summary, *insert)),
        Kept::Message(message) => {
            if message.value.as_ref().map_or(0, |value| value.len() as u64) < dead_letter.summary.payload_bytes {
                return Err("the message was too long to be kept whole: only Kafka has all of it".to_owned());
            }
            read_again(api, &message).await.map(|rows| Revived::of_message(dead_letter.summary, rows))
        }
    }
}

async fn read_again(api: &DeadLettersApi, message: &MessageDeadLetter) -> Result<MessageRows, String> {
    let pipeline = &message.source.pipeline;
    match api.dead_letters().message_retrier() {
        Some(retrier) => retrier.read(message).await,
        None => Err(format!("there is no pipeline '{pipeline}' in this gateway that could read the message")),
    }
}

/// Runs all futures at once and returns their outputs. The futures are begun in their order.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut all_done = true;
        for (future, output) in running.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *output = Some(done),
                    Poll::Pending => all_done = false,
                }
            }
        }
        if all_done {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
