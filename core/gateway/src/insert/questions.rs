//! Bounds of the questions to ClickHouse about payloads. Without a permit to ask, an insert is forwarded.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use windrow_clickhouse::{CallError, ErrorCode};

use crate::recent::Recent;

/// Time that an answer may take. ClickHouse does not stop reading a payload when the client has gone.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Time without further questions after one was refused for another reason than its payload: the next one
/// would be refused, too.
const IN_VAIN_FOR: Duration = Duration::from_secs(10);
const MAX_REFUSED: usize = 10_000;

/// Errors that come from the account or its settings, whatever the payload is.
const NOT_OF_THE_PAYLOAD: [ErrorCode; 5] = [
    ErrorCode::UNKNOWN_SETTING,
    ErrorCode::READONLY,
    ErrorCode::QUOTA_EXCEEDED,
    ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES,
    ErrorCode::SETTING_CONSTRAINT_VIOLATION,
];

pub(crate) struct Questions {
    under_way: Semaphore,
    /// Moment at which a question last failed whatever its payload was, by a hash of the asker.
    refused: Recent<u64, Instant>,
    hasher: RandomState,
}

/// A permit to ask the backend one question.
pub(crate) struct ReadPermit<'a> {
    questions: &'a Questions,
    asker: u64,
    _permit: SemaphorePermit<'a>,
}

impl Questions {
    pub(crate) fn new(max_under_way: usize) -> Questions {
        let hasher = RandomState::new();
        Questions { under_way: Semaphore::new(max_under_way), refused: Recent::new(MAX_REFUSED), hasher }
    }

    /// Returns the permit to ask, and never waits for it. `asker` has the account, the table and the settings.
    pub(super) fn permit(&self, asker: impl std::hash::Hash) -> Option<ReadPermit<'_>> {
        let asker = self.hasher.hash_one(asker);
        if self.refused.get(&asker).is_some_and(|refused| refused.elapsed() < IN_VAIN_FOR) {
            return None;
        }
        let permit = self.under_way.try_acquire().ok()?;
        Some(ReadPermit { questions: self, asker, _permit: permit })
    }
}

impl ReadPermit<'_> {
    /// Notes that the question failed. `None`: there was no answer in time.
    pub(super) fn failed(&self, error: Option<&CallError>) {
        let is_of_the_payload = match error {
            Some(CallError::Exception(exception)) => !NOT_OF_THE_PAYLOAD.contains(&exception.code),
            // The next one may find a connection at once.
            Some(CallError::NotSent(_)) => true,
            Some(CallError::Unknown(_)) | None => false,
        };
        if !is_of_the_payload {
            self.questions.refused.put(self.asker, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_clickhouse::Exception;

    #[test]
    fn there_are_no_more_than_so_many() {
        let questions = Questions::new(1);
        let first = questions.permit("a");
        assert!(first.is_some() && questions.permit("b").is_none());
        drop(first);
        assert!(questions.permit("b").is_some());
    }

    #[test]
    fn who_is_refused_is_not_asked_for_again() {
        let exception = |code| CallError::Exception(Exception::new(code, "", ""));
        let of_the_payload = [Some(exception(ErrorCode::CANNOT_PARSE_TEXT)), Some(exception(ErrorCode::ACCESS_DENIED))];
        let of_the_account =
            [Some(exception(ErrorCode::SETTING_CONSTRAINT_VIOLATION)), Some(CallError::Unknown(String::new())), None];
        let questions = Questions::new(1);
        let asks_again = |error: Option<CallError>| {
            questions.permit("a").expect("a permit").failed(error.as_ref());
            let again = questions.permit("a").is_some();
            assert!(questions.permit("another").is_some());
            questions.refused.age();
            questions.refused.age();
            again
        };
        assert!(of_the_payload.into_iter().all(asks_again));
        assert!(!of_the_account.into_iter().any(asks_again));
    }
}
