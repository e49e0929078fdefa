//! Judgement of a piece by what the attempts to store it have shown: whether it only has to come later, or is
//! itself to blame.
//!
//! Errors that mostly pass are the backend's, and nothing that was acknowledged is given up for them. But
//! each of them may also come from one insert: from its size, from a limit of its user's, from a view or a
//! trigger that is slow for its rows. Others of the same shape tell the two cases apart:
//!
//! - A piece is *stuck* when it has failed some times and for a while. Then something else is tried: a part
//!   of the piece, or what comes behind it.
//! - A piece is *suspected* when others were stored while it was stuck. It is narrowed down without waiting.
//! - A suspected piece that goes on to fail, and can't be narrowed, is *hopeless* after a while. It is given
//!   up if at least as many inserts were stored meanwhile as fail, or if all its senders wait. While the
//!   backend says that an attempt of the piece has not ended, the piece is not cut, nor given up for that.
//! - The *reach* of a piece that fails is how far it holds up others. It shrinks with time.
//!
//! An outcome that stays unknown where a repeat isn't recognised is given up after few attempts: each of them
//! may have stored the rows once more.

use std::time::Duration;

use tokio::time::Instant;
use windrow_clickhouse::{ErrorCode, Exception};

use crate::insert::InsertError;

const STUCK_AFTER: u32 = 4;
/// Time for which a piece has to fail to be stuck. It is doubled for each step that has been taken in vain.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
const MOST_DOUBLINGS: u32 = 12;
const HOPELESS_AFTER: u32 = 10;
pub(crate) const LONGEST_HOPE: Duration = Duration::from_secs(30);
/// Time until a piece is given up for an error whose text says that it is of this query or user alone, and
/// until a table is given up that a shard has not. There, nobody else has to be stored.
const LONGEST_HOPE_ALONE: Duration = Duration::from_secs(60);
const PATIENCE_OF_CLIENTS: Duration = Duration::from_secs(2);
/// Time for which a piece holds up its own connection. Nothing else may come than what is sent on that
/// connection: only by that can it be seen who is to blame.
const PATIENCE_OF_A_CONNECTION: Duration = Duration::from_secs(60);
pub(crate) const MOST_UNKNOWN: u32 = 4;
const PAUSE_AFTER_UNKNOWN: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub(crate) struct RetryState {
    began: Instant,
    trouble: Option<FailureStreak>,
    /// Time when this piece failed first, or the piece that it was cut from, and how many inserts had been
    /// stored then.
    first_failure: Option<(Instant, u64)>,
    /// Time of the first of the errors in a row that said that the table is missing.
    without_table_since: Option<Instant>,
    /// The error of the piece that this one was cut from, and how many pieces had been stored then.
    cut_for: Option<(Option<ErrorCode>, u64)>,
    /// The piece was cut since it was proven that a part of it is to blame.
    was_proven: bool,
    /// The pieces before this one hold up no other connection any more.
    waits_for_few: bool,
    too_large: u32,
    own_refusals: u32,
    /// Number of attempts of unknown outcome, where a repeat isn't recognised.
    unknown: u32,
    /// The last attempt found an earlier one under way.
    is_running: bool,
    pub(crate) surely_not_stored: bool,
}

/// Failures in a row that may come from the piece itself.
#[derive(Clone)]
struct FailureStreak {
    since: Instant,
    failures: u32,
    /// Number of failures that only found an earlier attempt under way.
    still_running: u32,
    /// Code of the last failure. `None`: there was no error of the sink's system.
    code: Option<ErrorCode>,
    /// Number of pieces of the shape that were stored before the last failure.
    stored_before: u64,
    /// Others were stored while this piece was stuck with the same error, or after it had been cut off for
    /// that error.
    is_proven: bool,
    is_of_the_server: bool,
}

/// The inserts that stay behind an insert that fails: each variant includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    Nobody,
    /// Inserts of the same connection stay behind it.
    Connection,
    /// Inserts that may be of the same connection stay behind it: of inserts from the journal nobody knows.
    Unknown,
    /// Inserts that may be the same client's, on another connection, stay behind it.
    Clients,
}

/// The judgement of a piece that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// The piece has to come later, and nothing goes before it.
    Waits,
    /// The piece has failed for so long that something else is to be tried.
    Stuck,
    /// The piece is stuck, but its parts would only add to what the backend has too much of.
    StuckWhole,
    /// The piece, or a part of it, is to blame.
    Suspected,
    GivenUp,
}

/// Facts that are known besides the piece's own attempts.
pub(crate) struct Evidence {
    /// Number of pieces of the shape that have been stored.
    pub(crate) stored: u64,
    /// Number of inserts of the shape that have been stored, and (`failing_inserts`) that fail at present.
    pub(crate) stored_inserts: u64,
    pub(crate) failing_inserts: u64,
    /// Number of steps that have been taken in vain since a piece of the batch was stored.
    pub(crate) steps: u32,
    pub(crate) deduplicates: bool,
    /// Every insert in the piece has a sender that waits for the outcome.
    pub(crate) is_asked: bool,
}

impl RetryState {
    pub(crate) fn new(surely_not_stored: bool) -> RetryState {
        RetryState {
            began: Instant::now(),
            trouble: None,
            first_failure: None,
            without_table_since: None,
            cut_for: None,
            was_proven: false,
            waits_for_few: false,
            too_large: 0,
            own_refusals: 0,
            unknown: 0,
            is_running: false,
            surely_not_stored,
        }
    }

    /// Returns the state for a part of the piece, which is another piece. Whether this part is to blame has
    /// to be shown anew: the backend may have gone away since.
    pub(crate) fn of_part(&self) -> RetryState {
        let cut_for = self.trouble.as_ref().map(|trouble| (trouble.code, trouble.stored_before));
        let (unknown, first_failure, without_table_since) =
            (self.unknown, self.first_failure, self.without_table_since);
        let was_proven = self.was_proven || self.is_proven();
        RetryState {
            unknown,
            first_failure,
            without_table_since,
            cut_for,
            was_proven,
            ..RetryState::new(self.surely_not_stored)
        }
    }

    pub(crate) fn is_over(&self, retry_for: Option<Duration>) -> bool {
        retry_for.is_some_and(|limit| self.began.elapsed() >= limit)
    }

    /// Says whether something else may be tried, since the piece is stuck.
    pub(crate) fn is_stuck(&self, steps: u32) -> bool {
        let patience = FIRST_PATIENCE * 2u32.pow(steps.min(MOST_DOUBLINGS));
        self.trouble
            .as_ref()
            .is_some_and(|trouble| trouble.failures >= STUCK_AFTER && trouble.since.elapsed() >= patience)
    }

    /// Says which inserts the piece holds up.
    pub(crate) fn reach(&self) -> Reach {
        let holds_up_for = self.first_failure.map_or(Duration::ZERO, |(since, _)| since.elapsed());
        // Of those errors small inserts are spared, and large ones stored in the end.
        let is_of_the_server = self.trouble.as_ref().is_some_and(|trouble| trouble.is_of_the_server);
        let is_its_own = !is_of_the_server
            && (holds_up_for >= PATIENCE_OF_CLIENTS || self.is_proven() || self.was_proven || self.waits_for_few);
        match holds_up_for {
            long if long >= PATIENCE_OF_A_CONNECTION => Reach::Nobody,
            long if long >= LONGEST_HOPE => Reach::Connection,
            _ if is_its_own => Reach::Unknown,
            _ => Reach::Clients,
        }
    }

    /// Says whether the piece was cut off and has failed for the first time: the other parts may show whether
    /// it is to blame.
    pub(crate) fn is_new_part(&self) -> bool {
        self.cut_for.is_some() && self.trouble.as_ref().is_some_and(|trouble| trouble.failures == 1)
    }

    /// Notes that the piece has to stay behind pieces of this reach. Other connections, which don't wait for
    /// these, don't wait for this piece either.
    pub(crate) fn stays_behind(&mut self, reach: Reach) {
        self.waits_for_few = reach < Reach::Clients;
    }

    /// Returns the pause before the next attempt. It ends no later than the time at which senders that wait
    /// are told of too many parts.
    pub(crate) fn next_pause(&self, usual: Duration, error: &InsertError, for_parts: Duration) -> Duration {
        let usual = match self.unknown {
            0 => usual,
            unknown => usual.max(PAUSE_AFTER_UNKNOWN * 2u32.pow(unknown.min(MOST_UNKNOWN) - 1)),
        };
        match for_parts.saturating_sub(self.began.elapsed()) {
            left if is_about_parts(error) && !left.is_zero() => usual.min(left),
            _ => usual,
        }
    }

    /// Says whether the piece is given up for errors of its own query or user, which mostly pass. It counts
    /// these errors.
    pub(crate) fn is_hopeless_alone(&mut self, exception: &Exception) -> bool {
        let is_its_own = is_of_the_user_alone(exception) || is_of_the_query_alone(exception);
        self.own_refusals = if is_its_own { self.own_refusals + 1 } else { 0 };
        self.own_refusals >= HOPELESS_AFTER && self.began.elapsed() >= LONGEST_HOPE_ALONE
    }

    /// Says whether a table that is missing is still waited for, and begins to count the time.
    pub(crate) fn may_get_its_table(&mut self) -> bool {
        self.without_table_since.get_or_insert_with(Instant::now).elapsed() < LONGEST_HOPE_ALONE
    }

    /// Says whether a batch has to be cut that is too large for its user's memory, since waiting makes it no
    /// smaller. After a lost answer it is not cut: a part would not be recognised as what may be stored
    /// already.
    pub(crate) fn has_to_shrink(&self, exception: &Exception, deduplicates: bool) -> bool {
        exception.code == ErrorCode::MEMORY_LIMIT_EXCEEDED && self.too_large >= 2 && self.may_be_cut(deduplicates)
    }

    /// Says whether a part may go under another id. A piece that is being stored is not cut: all of it would
    /// be there twice.
    pub(crate) fn may_be_cut(&self, deduplicates: bool) -> bool {
        !self.is_running && (self.surely_not_stored || !deduplicates)
    }

    /// Says whether an earlier attempt, whose answer was lost, may have stored what is refused now. Values
    /// that are refused were refused then as well; but rights, say, may have been there.
    pub(crate) fn leaves_in_doubt(&self, exception: &Exception) -> bool {
        let was_never_possible = exception.comes_of_values() || exception.code == ErrorCode::TOO_MANY_PARTS;
        !self.surely_not_stored && !exception.is_passing() && !was_never_possible
    }

    /// Returns the error to give up with: after a lost answer no error is as sure as it sounds.
    pub(crate) fn last_word(&self, error: InsertError) -> InsertError {
        match (&error, self.surely_not_stored) {
            (InsertError::OutcomeUnknown(_), _) | (_, true) => error,
            (_, false) => InsertError::OutcomeUnknown(error.to_string()),
        }
    }

    /// Notes that an attempt was answered. `still_running` says that an earlier attempt has not ended; where
    /// that can't be one of this piece, it says nothing of the piece.
    pub(crate) fn answered(&mut self, still_running: bool) {
        self.is_running = still_running && !self.surely_not_stored;
    }

    /// Judges the piece after an attempt has failed with an error that may pass.
    pub(crate) fn failed(&mut self, error: &InsertError, evidence: &Evidence) -> Judgement {
        self.too_large += u32::from(is_too_large(error));
        if !matches!(error, InsertError::Exception(exception) if exception.code.says_no_such_table()) {
            self.without_table_since = None;
        }
        if let InsertError::OutcomeUnknown(_) = error {
            self.surely_not_stored = false;
            self.unknown += u32::from(!evidence.deduplicates);
            if self.unknown >= MOST_UNKNOWN {
                return Judgement::GivenUp;
            }
        }
        if let InsertError::Unreachable(_) = error {
            // The batch was never seen: it is the backend, and what was shown before may have been it as well.
            (self.trouble, self.first_failure) = (None, None);
            return Judgement::Waits;
        }
        let code = if let InsertError::Exception(exception) = error { Some(exception.code) } else { None };
        let was_stuck = self.is_stuck(0);
        let (_, stored_at_first) = *self.first_failure.get_or_insert((Instant::now(), evidence.stored_inserts));
        self.waits_for_few = false;
        let others_passed =
            self.cut_for.is_some_and(|(cut_for, stored_before)| cut_for == code && evidence.stored > stored_before);
        let trouble = self.trouble.get_or_insert(FailureStreak {
            since: Instant::now(),
            failures: 0,
            still_running: 0,
            code,
            stored_before: evidence.stored,
            is_proven: false,
            is_of_the_server: false,
        });
        let is_same = trouble.code == code;
        let passed = was_stuck && evidence.stored > trouble.stored_before;
        trouble.is_proven = is_same && (trouble.is_proven || passed || others_passed);
        (trouble.code, trouble.stored_before) = (code, evidence.stored);
        trouble.is_of_the_server = is_of_the_server(error);
        trouble.failures += 1;
        trouble.still_running += u32::from(self.is_running);
        // What is being stored has failed with nothing yet, however slow it is.
        let failures = trouble.failures - trouble.still_running;
        let is_hopeless = failures >= HOPELESS_AFTER && trouble.since.elapsed() >= LONGEST_HOPE && !self.is_running;
        // A backend that comes and goes lets some through as well, but not most. Who waits hears its error, and loses
        // nothing by that.
        let are_most_stored = evidence.stored_inserts - stored_at_first >= evidence.failing_inserts;
        let is_of_number = matches!(code, Some(ErrorCode::TOO_MANY_PARTS | ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES));
        let is_proven = trouble.is_proven;
        let is_certain = evidence.is_asked || are_most_stored;
        match (is_proven, self.is_stuck(evidence.steps)) {
            (true, _) if is_hopeless && is_certain && !is_of_the_server(error) => Judgement::GivenUp,
            (true, _) if is_hopeless || !is_of_number => Judgement::Suspected,
            (false, false) => Judgement::Waits,
            _ if is_of_number => Judgement::StuckWhole,
            _ => Judgement::Stuck,
        }
    }

    /// Says whether others were stored while the piece was stuck.
    pub(crate) fn is_proven(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.is_proven)
    }

    pub(crate) fn stays_unknown(&self) -> bool {
        self.unknown >= 2
    }
}

/// Says whether the error is of the user alone. Errors of the table, or of a server that starts, are not:
/// these pass.
fn is_of_the_user_alone(exception: &Exception) -> bool {
    let line = &exception.line;
    exception.code == ErrorCode::READONLY
        && line.contains("readonly mode")
        && !line.contains("eeper")
        && !line.contains("Table is in")
}

/// Says whether the error comes from a limit of this one query, and not of the server or of all that its user
/// does.
fn is_of_the_query_alone(exception: &Exception) -> bool {
    exception.code == ErrorCode::MEMORY_LIMIT_EXCEEDED
        && (exception.line.contains("Query memory limit") || exception.line.contains("Memory limit (for query)"))
}

fn is_too_large(error: &InsertError) -> bool {
    matches!(error, InsertError::Exception(exception) if exception.code == ErrorCode::MEMORY_LIMIT_EXCEEDED)
}

/// Says whether the error is about too many parts, which passes, or too many partitions of one insert, which
/// does not.
pub(crate) fn is_about_parts(error: &InsertError) -> bool {
    matches!(error, InsertError::Exception(exception) if exception.code == ErrorCode::TOO_MANY_PARTS)
}

/// Says whether the whole server has too little or too much of something. Some inserts are let through all
/// the same, and the error passes in the end.
fn is_of_the_server(error: &InsertError) -> bool {
    let InsertError::Exception(exception) = error else { return false };
    match exception.code {
        ErrorCode::TOO_MANY_PARTS | ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES | ErrorCode::NOT_ENOUGH_SPACE => true,
        ErrorCode::MEMORY_LIMIT_EXCEEDED => exception.line.contains("(total)"),
        _ => false,
    }
}

/// Says whether the backend has too much to do, whoever asks: parts, memory, queries.
pub(crate) fn shows_overload(error: &InsertError) -> bool {
    let InsertError::Exception(exception) = error else { return false };
    match exception.code {
        ErrorCode::TOO_MANY_PARTS | ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES => true,
        ErrorCode::MEMORY_LIMIT_EXCEEDED => !is_of_the_query_alone(exception),
        _ => false,
    }
}
