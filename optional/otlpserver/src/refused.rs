//! Reasons why a request was not taken, as its sender reads them: each has a code over gRPC and one over
//! HTTP, which tells whether to send the request again.

use std::time::Duration;

use windrow_clickhouse::{ErrorCode, Exception};
use windrow_gateway::protocol::Refusal;
use windrow_otlp::answer::Status;

/// Time after which a sender is to try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) why: RefusalReason,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// The bytes are no request, or a request that can never be taken.
    Malformed,
    TooLarge,
    Unauthenticated,
    Forbidden,
    /// The table is missing, or can't hold the rows; somebody has to change it.
    NoTable,
    /// The user has used up its quota.
    Throttled,
    /// The request is worth sending again.
    Unavailable,
    /// The service whose health is asked for does not exist here.
    UnknownService,
    /// No service here has this address.
    NoService,
    /// The address does not take this method of HTTP.
    Method,
    /// The request has a content type, a compression or a protocol that is not understood here.
    Unsupported,
}

impl RefusalReason {
    /// Says whether the same request may be taken later.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, RefusalReason::Throttled | RefusalReason::Unavailable)
    }

    /// Returns the number and, for metrics, the name of gRPC's code.
    fn grpc(self) -> (i32, &'static str) {
        match self {
            RefusalReason::Malformed => (3, "invalid_argument"),
            RefusalReason::UnknownService => (5, "not_found"),
            RefusalReason::Forbidden => (7, "permission_denied"),
            RefusalReason::TooLarge | RefusalReason::Throttled => (8, "resource_exhausted"),
            RefusalReason::NoTable => (9, "failed_precondition"),
            RefusalReason::NoService | RefusalReason::Method | RefusalReason::Unsupported => (12, "unimplemented"),
            RefusalReason::Unavailable => (14, "unavailable"),
            RefusalReason::Unauthenticated => (16, "unauthenticated"),
        }
    }

    /// Returns what the sender does with the request, as a label of metrics.
    pub(crate) fn sender_does(self) -> &'static str {
        match self.is_passing() {
            true => "tries_again",
            false => "drops",
        }
    }

    pub(crate) fn grpc_code(self) -> i32 {
        self.grpc().0
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.grpc().1
    }

    pub(crate) fn http_status(self) -> u16 {
        match self {
            RefusalReason::Malformed => 400,
            RefusalReason::Unauthenticated => 401,
            RefusalReason::Forbidden => 403,
            RefusalReason::NoTable | RefusalReason::NoService | RefusalReason::UnknownService => 404,
            RefusalReason::Method => 405,
            RefusalReason::TooLarge => 413,
            RefusalReason::Unsupported => 415,
            RefusalReason::Throttled => 429,
            RefusalReason::Unavailable => 503,
        }
    }
}

impl Refused {
    pub(crate) fn new(why: RefusalReason, message: impl Into<String>) -> Refused {
        Refused { why, message: message.into() }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.why.is_passing().then_some(RETRY_AFTER)
    }

    pub(crate) fn status(&self) -> Status {
        Status {
            code: self.why.grpc_code(),
            message: self.message.clone(),
            retry_after: self.retry_after(),
            bad_request: (self.why == RefusalReason::Malformed).then(|| self.message.clone()),
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let message = refusal.line("");
        Refused { why: why(&Exception::new(refusal.code, &message, "")), message }
    }
}

/// Returns the reason that an exception stands for. If nothing else is known about an exception, trying again
/// is the better guess: rows that are stored late are not lost.
fn why(exception: &Exception) -> RefusalReason {
    match exception.code {
        ErrorCode::QUOTA_EXCEEDED => RefusalReason::Throttled,
        ErrorCode::ACCESS_DENIED | ErrorCode::DATABASE_ACCESS_DENIED => RefusalReason::Forbidden,
        _ if exception.is_about_identity() => RefusalReason::Unauthenticated,
        _ if exception.is_passing() => RefusalReason::Unavailable,
        _ if exception.comes_of_values() => RefusalReason::Malformed,
        _ => RefusalReason::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_never_told_in_words_that_make_a_sender_drop_it() {
        const RETRYABLE_STATUS: [u16; 4] = [429, 502, 503, 504];
        for why in [
            RefusalReason::Malformed,
            RefusalReason::TooLarge,
            RefusalReason::Unauthenticated,
            RefusalReason::Forbidden,
            RefusalReason::NoTable,
            RefusalReason::Throttled,
            RefusalReason::Unavailable,
            RefusalReason::UnknownService,
            RefusalReason::NoService,
            RefusalReason::Method,
            RefusalReason::Unsupported,
        ] {
            assert_eq!(RETRYABLE_STATUS.contains(&why.http_status()), why.is_passing(), "{why:?}");
            assert_ne!(why.http_status(), 500);
            assert!(![2, 13].contains(&why.grpc_code()), "neither UNKNOWN nor INTERNAL");
            let refused = Refused::new(why, "no");
            assert_eq!(refused.retry_after().is_some(), why.is_passing(), "{why:?}");
        }
    }

    #[test]
    fn clickhouses_codes_are_told_as_what_they_mean() {
        let why = |code| Refused::from(Refusal::statement(code, "no".to_owned())).why;
        assert_eq!(why(ErrorCode::AUTHENTICATION_FAILED), RefusalReason::Unauthenticated);
        assert_eq!(why(ErrorCode::ACCESS_DENIED), RefusalReason::Forbidden);
        assert_eq!(why(ErrorCode::QUOTA_EXCEEDED), RefusalReason::Throttled);
        assert_eq!(why(ErrorCode::VIOLATED_CONSTRAINT), RefusalReason::Malformed, "a constraint");
        for passing in [
            ErrorCode::NETWORK_ERROR,
            ErrorCode::MEMORY_LIMIT_EXCEEDED,
            ErrorCode::NOT_ENOUGH_SPACE,
            ErrorCode::TOO_MANY_PARTS,
            ErrorCode::UNKNOWN_TABLE,
            ErrorCode::TIMEOUT_EXCEEDED,
            ErrorCode::NO_SUCH_COLUMN_IN_TABLE,
        ] {
            assert_eq!(why(passing), RefusalReason::Unavailable, "{passing}");
        }
    }
}
