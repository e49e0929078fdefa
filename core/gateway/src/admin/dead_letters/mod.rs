//! The API under `/api/v1/dead-letters`: it lists, shows, retries and discards the inserts that were
//! acknowledged and could not be stored.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/v1/dead-letters?table=db.t&code=469&since=2h&limit=100&offset=0` | the dead letters that fulfil all conditions, the latest first |
//! | `GET /api/v1/dead-letters/17` | one of them, with its settings |
//! | `GET /api/v1/dead-letters/17/rows?limit=100` | its rows, in ClickHouse's FORMAT JSON |
//! | `GET /api/v1/dead-letters/17/payload` | its rows as they are kept |
//! | `POST /api/v1/dead-letters/retry` | hands the dead letters that the body selects back to the gatherer |
//! | `POST /api/v1/dead-letters/discard` | deletes the dead letters that the body selects |
//!
//! A request that changes something must have the type `application/json`: a page of another site can make a
//! browser send that type only if this server agrees to it.

mod json;
mod present;
mod request;
mod retry;
mod rows;

use std::sync::Arc;

use serde_json::json;
use windrow_engine::dead_letters::{parse_id, DeadLetter, DeadLetters, Gone, Selection};
use windrow_http::{Method, RequestHead};

use super::answer::Answer;
use crate::dead_letter_retention::{forget, now_micros};
use crate::state::State;

pub use json::{dead_letter_json, listing_json};
pub(super) use request::parameters;

/// Number of a dead letter's rows that are shown if the request names no limit.
const USUALLY_SHOWN: usize = 100;
const NO_LETTER: &str = "there is no dead letter of this id: it may have been retried or discarded";

pub(super) struct DeadLettersApi {
    state: Arc<State>,
}

/// The action on the dead letters that a body selects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Retry,
    Discard,
}

impl DeadLettersApi {
    pub(super) fn new(state: Arc<State>) -> DeadLettersApi {
        DeadLettersApi { state }
    }

    fn dead_letters(&self) -> &DeadLetters {
        &self.state.dead_letters
    }

    /// Answers a request below `/api/v1/dead-letters`; `path` is the rest of its path.
    pub(super) async fn answer(&self, head: &RequestHead, path: &str, query: &str, body: &[u8]) -> Answer {
        let reading = matches!(head.method(), Method::Get | Method::Head);
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match segments.as_slice() {
            [] if reading => self.list(query),
            [id] if reading => {
                self.with_dead_letter(id, |dead_letter| Answer::json(200, &dead_letter_json(dead_letter))).await
            }
            [id, "payload"] if reading => self.with_dead_letter(id, rows::payload).await,
            [id, "rows"] if reading => self.rows(id, query).await,
            ["retry"] if *head.method() == Method::Post => self.change(head, body, Action::Retry).await,
            ["discard"] if *head.method() == Method::Post => self.change(head, body, Action::Discard).await,
            [] | [_] | [_, "payload" | "rows"] => {
                Answer::error(405, "letters are read with GET; retry and discard are POSTed")
            }
            _ => Answer::error(
                404,
                "there are /api/v1/dead-letters, and under it <id>, <id>/rows, <id>/payload, retry and discard",
            ),
        }
    }

    fn list(&self, query: &str) -> Answer {
        match request::listed(query, now_micros()) {
            Ok(listed) => Answer::json(200, &listing_json(&self.dead_letters().list(&listed.selection, listed.page))),
            Err(sentence) => Answer::error(400, &sentence),
        }
    }

    async fn with_dead_letter(&self, id: &str, answer: impl FnOnce(&DeadLetter) -> Answer) -> Answer {
        match self.dead_letter(id).await {
            Ok(dead_letter) => answer(&dead_letter),
            Err(refusal) => refusal,
        }
    }

    async fn dead_letter(&self, id: &str) -> Result<DeadLetter, Answer> {
        let id = parse_id(id).map_err(|sentence| Answer::error(404, &sentence))?;
        let dead_letters = self.dead_letters().clone();
        match tokio::task::spawn_blocking(move || dead_letters.read(id)).await {
            Ok(Ok(Some(dead_letter))) => Ok(dead_letter),
            Ok(Ok(None)) => Err(Answer::error(404, NO_LETTER)),
            Ok(Err(error)) => Err(Answer::error(500, &error.to_string())),
            Err(error) => Err(Answer::error(500, &error.to_string())),
        }
    }

    async fn rows(&self, id: &str, query: &str) -> Answer {
        let mut limit = USUALLY_SHOWN;
        for (name, value) in request::parameters(query) {
            let wanted = match name.as_str() {
                "limit" => request::number(&name, &value),
                _ => Err(format!("there is no parameter '{name}' here, only 'limit'")),
            };
            match wanted {
                Ok(wanted) => limit = wanted,
                Err(sentence) => return Answer::error(400, &sentence),
            }
        }
        match self.dead_letter(id).await {
            Ok(dead_letter) => rows::as_json(&self.state.backend, &dead_letter, limit).await,
            Err(refusal) => refusal,
        }
    }

    async fn change(&self, head: &RequestHead, body: &[u8], action: Action) -> Answer {
        let kind = head.field_str("content-type").and_then(|kind| kind.split(';').next()).unwrap_or("");
        if !kind.trim().eq_ignore_ascii_case("application/json") {
            return Answer::error(415, "send the selection as Content-Type: application/json");
        }
        match request::chosen(body, now_micros()) {
            Err(sentence) => Answer::error(400, &sentence),
            Ok(selection) if action == Action::Discard => self.discard(&selection).await,
            Ok(selection) => retry::retry(self, &selection).await,
        }
    }

    async fn discard(&self, selection: &Selection) -> Answer {
        let ids = self.dead_letters().select(selection);
        let selected = ids.len();
        match forget(&self.state, &ids, Gone::Discarded).await {
            Ok(discarded) => Answer::json(200, &json!({ "selected": selected, "discarded": discarded })),
            Err(error) => Answer::error(503, &format!("nothing was discarded: {error}")),
        }
    }
}
