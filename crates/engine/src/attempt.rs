//! One piece of a batch on its way: attempts, and the pauses between them.
//!
//! A piece keeps its id as long as it keeps its members. When members leave it after an attempt (withdrawn, or told
//! that their outcome is unknown), what remains is another piece with another id; that is only done where the sink is
//! known to have stored nothing, or can't recognise a repeat anyway.

use std::time::Duration;

use crate::sink::{is_about_types, Again, Batch, Sink, StoreError};
use tokio::time::Instant;
use windrow_clickhouse::Exception;

use crate::flight::Aloft;
use crate::flush_trace::FlushTrace;
use crate::gatherer::Core;
use crate::insert::InsertError;
use crate::isolate::{concerns_whole_batch, is_of_rows, shows_stale_schema, Piece};
use crate::member::Member;
use crate::settle::{settle, Settled};
#[cfg(test)]
use crate::simulation::sabotage::{self, Sabotage};
use crate::table::Sealed;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const MEMORY_LIMIT_EXCEEDED: i32 = 241;
/// Where it does not pass, it is about partitions: the rows go into too many of them.
const TOO_MANY_PARTS: i32 = 252;

const TOO_MANY_QUERIES: i32 = 202;
const READONLY: i32 = 164;
/// How often, and for how long, an error that may be of one piece is taken for one that passes.
const MOST_OWN_REFUSALS: u32 = 10;
const LONGEST_HOPE: Duration = Duration::from_secs(60);

/// A piece that will not be stored as it is.
pub(crate) struct Refusal {
    pub(crate) piece: Piece,
    pub(crate) exception: Exception,
    /// Whether a part of the piece may be stored without the rest.
    pub(crate) can_be_narrowed: bool,
}

impl Refusal {
    fn new(piece: Piece, exception: Exception, is_pushed: bool) -> Refusal {
        let can_be_narrowed = match is_pushed {
            true => is_of_rows(&exception),
            false => !concerns_whole_batch(exception.code, &piece.contents.rows),
        };
        Refusal { piece, exception, can_be_narrowed }
    }
}

/// What the attempts so far have shown.
struct Experience {
    began: Instant,
    pause: Duration,
    too_large: u32,
    own_refusals: u32,
    surely_not_stored: bool,
}

impl Experience {
    fn new() -> Experience {
        Experience { began: Instant::now(), pause: FIRST_PAUSE, too_large: 0, own_refusals: 0, surely_not_stored: true }
    }

    fn is_over(&self, retry_for: Option<Duration>) -> bool {
        retry_for.is_some_and(|limit| self.began.elapsed() >= limit)
    }

    /// The pause before the next attempt: not past the time at which those who wait are told of too many parts.
    fn next_pause(&self, error: &InsertError, for_parts: Duration) -> Duration {
        match for_parts.saturating_sub(self.began.elapsed()) {
            left if is_about_parts(error) && !left.is_zero() => self.pause.min(left),
            _ => self.pause,
        }
    }

    /// Errors that mostly pass, but may be of this one piece: too large for its user's memory and not to be made
    /// smaller, or of a user that may not write any more. What comes behind it should not wait for ever.
    fn is_hopeless(&mut self, exception: &Exception) -> bool {
        let is_its_own = is_of_the_user_alone(exception) || is_of_the_query_alone(exception);
        self.own_refusals = if is_its_own { self.own_refusals + 1 } else { 0 };
        self.own_refusals >= MOST_OWN_REFUSALS && self.began.elapsed() >= LONGEST_HOPE
    }

    /// Whether an earlier attempt, whose answer was lost, may have stored what is refused now. Not what the values
    /// themselves rule out; but rights, say, may have been there then.
    fn leaves_in_doubt(&self, exception: &Exception) -> bool {
        let was_never_possible = exception.comes_of_values() || exception.code == TOO_MANY_PARTS;
        !self.surely_not_stored && !exception.is_passing() && !was_never_possible
    }

    /// The error to give up with: after a lost answer none is as sure as it sounds.
    fn last_word(&self, error: InsertError) -> InsertError {
        match (&error, self.surely_not_stored) {
            (InsertError::OutcomeUnknown(_), _) | (_, true) => error,
            (_, false) => InsertError::OutcomeUnknown(error.to_string()),
        }
    }
}

/// Tries until the piece is stored or finally refused, for as long as the options say: those who wait withdraw when
/// their time is over, and the others were promised that their rows are kept.
pub(crate) async fn attempt<S: Sink>(aloft: &mut Aloft<'_, S>, mut piece: Piece) -> Option<Refusal> {
    let deduplicates = aloft.sealed.shape.destination.deduplicates;
    let is_pushed = aloft.sealed.source.is_some();
    let mut experience = Experience::new();
    // What an earlier life sent may be stored, or even be on its way.
    let was_sent_before = match &aloft.sealed.source {
        Some(source) => source.sent_before,
        None => aloft.sealed.record.is_some() && piece.id == aloft.sealed.id,
    };
    experience.surely_not_stored = !was_sent_before;
    while !piece.contents.members.is_empty() {
        if leave_unkept(aloft, &mut piece) {
            continue;
        }
        let written = aloft.write_down(&piece).await;
        // The records of its inserts stand before it: by now it is known of each whether it does.
        if leave_unkept(aloft, &mut piece) {
            continue;
        }
        let sent = match written {
            Ok(()) => send(aloft.core, aloft.sealed, &mut piece).await,
            Err(error) => Err(StoreError::NotSent(format!("the journal can't be written: {error}"))),
        };
        let error = match sent {
            Ok(()) => {
                aloft.settle(piece.id, piece.contents.members, Ok(()));
                return None;
            }
            // It says nothing of the rows, which nobody else can store any more: they wait until Windrow's account is
            // let in.
            Err(StoreError::Refused(exception))
                if aloft.sealed.shape.destination.own_account && exception.is_about_identity() =>
            {
                InsertError::Unreachable(format!("Windrow's own account is refused: {}", exception.line))
            }
            // Of the others ClickHouse may convert what was read.
            Err(StoreError::Refused(exception))
                if experience.surely_not_stored && refuse_who_sends_again(aloft, &mut piece, &exception) =>
            {
                report_stale(aloft, &exception);
                piece.contents.count_attempt();
                aloft.answer();
                continue;
            }
            Err(StoreError::Refused(exception)) if experience.is_hopeless(&exception) => {
                report_given_up(aloft, &piece, &exception);
                piece.contents.count_attempt();
                aloft.fail(piece, &experience.last_word(InsertError::Exception(exception)));
                return None;
            }
            Err(StoreError::Refused(exception)) => match !exception.is_passing()
                || !is_pushed && has_to_shrink(&exception, &piece, &experience, deduplicates)
            {
                true => {
                    report_stale(aloft, &exception);
                    piece.contents.count_attempt();
                    if experience.leaves_in_doubt(&exception) {
                        aloft.fail(piece, &experience.last_word(InsertError::Exception(exception)));
                        return None;
                    }
                    return Some(Refusal::new(piece, exception, is_pushed));
                }
                false => InsertError::Exception(exception),
            },
            // Nobody knows how much of it is stored: another attempt, of all or of a part, could store rows twice.
            Err(StoreError::Failed(exception)) => {
                report_stale(aloft, &exception);
                piece.contents.count_attempt();
                aloft.fail(piece, &InsertError::Failed(exception));
                return None;
            }
            // The sink's system answers a little before it takes an attempt off its list: where all attempts have
            // ended, this one only has to come later.
            Err(StoreError::StillRunning(text)) if experience.surely_not_stored => InsertError::Unreachable(text),
            Err(StoreError::NotSent(text)) => InsertError::Unreachable(text),
            Err(StoreError::Unknown(text) | StoreError::StillRunning(text)) => InsertError::OutcomeUnknown(text),
        };
        piece.contents.count_attempt();
        if let Some(source) = &aloft.sealed.source {
            source.attempt_failed(&error);
        }
        if experience.is_over(aloft.core.options.retry_for) {
            report_given_up(aloft, &piece, &error);
            aloft.fail(piece, &experience.last_word(error));
            return None;
        }
        report_retry(aloft, &piece, &error);
        if shows_overload(&error) {
            aloft.core.schedule.overloaded();
        }
        experience.too_large += u32::from(is_too_large(&error));
        if let InsertError::OutcomeUnknown(_) = error {
            experience.surely_not_stored = false;
            if !deduplicates {
                leave_the_decision(aloft, &mut piece, &error);
            }
        }
        match is_about_parts(&error) {
            true => refuse_for_parts(aloft, &mut piece, &error, experience.surely_not_stored),
            false => aloft.table().parts_are_not_it(),
        }
        aloft.answer();
        piece = pause(aloft, piece, error, &mut experience).await?;
    }
    None
}

/// A batch that is too large for its user's memory gets no smaller by waiting. Not after a lost answer: a part would
/// not be recognised as what may be stored already.
fn has_to_shrink(exception: &Exception, piece: &Piece, experience: &Experience, deduplicates: bool) -> bool {
    exception.code == MEMORY_LIMIT_EXCEEDED
        && experience.too_large >= 2
        && piece.contents.members.len() > 1
        && (experience.surely_not_stored || !deduplicates)
}

/// Where the table has other types by now: who can send his rows again, and leaves others in the piece, is refused. More
/// may be done for those without him. False: nobody is.
fn refuse_who_sends_again<S: Sink>(aloft: &mut Aloft<'_, S>, piece: &mut Piece, exception: &Exception) -> bool {
    if aloft.sealed.source.is_some() || !is_about_types(exception, &aloft.sealed.shape.destination) {
        return false;
    }
    let of_values: fn(&Member) -> bool = |member| member.is_asked() && !member.kind.is_text();
    let members = &piece.contents.members;
    let parts = |picked: &fn(&Member) -> bool| members.iter().any(picked) && !members.iter().all(picked);
    let Some(sends_again) = [of_values, Member::is_asked].into_iter().find(parts) else { return false };
    let refused = piece.contents.extract(sends_again);
    leave(aloft, piece, refused, &InsertError::Exception(exception.clone()));
    true
}

/// Who can bring the piece's rows again.
fn again_of(members: &[Member], is_pushed: bool) -> Again {
    let is_asked = |member: &&Member| is_pushed || member.is_asked();
    match members.iter().any(|member| is_asked(&member)) {
        false => Again::Never,
        true if !is_pushed && members.iter().filter(is_asked).all(|member| member.kind.is_text()) => Again::Text,
        true => Again::Values,
    }
}

/// Not of the table, nor of a server that starts: these pass.
fn is_of_the_user_alone(exception: &Exception) -> bool {
    let line = &exception.line;
    exception.code == READONLY
        && line.contains("readonly mode")
        && !line.contains("eeper")
        && !line.contains("Table is in")
}

/// A limit of this one query, and not of the server or of all that its user does.
fn is_of_the_query_alone(exception: &Exception) -> bool {
    exception.code == MEMORY_LIMIT_EXCEEDED
        && (exception.line.contains("Query memory limit") || exception.line.contains("Memory limit (for query)"))
}

fn is_too_large(error: &InsertError) -> bool {
    matches!(error, InsertError::Exception(exception) if exception.code == MEMORY_LIMIT_EXCEEDED)
}

fn is_about_parts(error: &InsertError) -> bool {
    matches!(error, InsertError::Exception(exception) if exception.code == TOO_MANY_PARTS)
}

/// The backend has too much to do, whoever asks: parts, memory, queries.
fn shows_overload(error: &InsertError) -> bool {
    matches!(error, InsertError::Exception(exception) if matches!(exception.code, MEMORY_LIMIT_EXCEEDED | TOO_MANY_PARTS | TOO_MANY_QUERIES)
        && !is_of_the_query_alone(exception))
}

/// Another attempt could store the rows twice. Whoever waits is told so and decides; whoever was promised that the rows
/// are kept is kept to, at that risk.
fn leave_the_decision<S: Sink>(aloft: &mut Aloft<'_, S>, piece: &mut Piece, error: &InsertError) {
    let asked = piece.contents.extract(Member::is_asked);
    leave(aloft, piece, asked, error);
}

/// Who has waited long enough for parts to be merged hears that there are too many, in the sink's own words. So does
/// who waits behind the piece: it would be refused as well. Of the piece itself nobody can leave that may be stored
/// already.
fn refuse_for_parts<S: Sink>(aloft: &mut Aloft<'_, S>, piece: &mut Piece, error: &InsertError, can_leave: bool) {
    let InsertError::Exception(exception) = error else { return };
    let (table, patience) = (aloft.table(), aloft.core.options.too_many_parts_wait);
    let now = table.clock.now();
    let has_waited = |member: &Member| {
        member.is_asked() && member.outcome.is_some() && u128::from((now - member.arrived_at).0) >= patience.as_micros()
    };
    let behind = table.has_too_many_parts(&aloft.sealed.shape, exception, has_waited);
    let refused = behind.into_iter().map(|member| Settled::new(member, piece.id, Err(error.clone()))).collect();
    settle(aloft.core, aloft.sealed, aloft.flight, refused);
    if can_leave {
        let refused = piece.contents.extract(has_waited);
        leave(aloft, piece, refused, error);
    }
}

/// An insert that is to be on the disk before it is sent, and isn't, is told so. True: some were.
fn leave_unkept<S: Sink>(aloft: &mut Aloft<'_, S>, piece: &mut Piece) -> bool {
    let unkept = aloft.take_unkept(piece);
    if unkept.is_empty() {
        return false;
    }
    leave(aloft, piece, unkept, &InsertError::Unreachable("the journal can't be written".into()));
    aloft.answer();
    true
}

/// Members leave the piece, which goes on as another one.
fn leave<S: Sink>(aloft: &mut Aloft<'_, S>, piece: &mut Piece, members: Vec<Member>, error: &InsertError) {
    if !members.is_empty() {
        let sent_as = piece.id;
        piece.rename(aloft.sealed.id);
        aloft.settle(sent_as, members, Err(error.clone()));
    }
}

/// Waits for the next attempt. `None`: nothing is left to be tried.
async fn pause<S: Sink>(
    aloft: &Aloft<'_, S>,
    mut piece: Piece,
    error: InsertError,
    experience: &mut Experience,
) -> Option<Piece> {
    if piece.contents.members.is_empty() {
        return None;
    }
    let length = experience.next_pause(&error, aloft.core.options.too_many_parts_wait);
    if experience.surely_not_stored {
        let members = piece.contents.members.len();
        aloft.flight.attempt_failed(piece.contents, error);
        tokio::time::sleep(length).await;
        piece.contents = aloft.flight.take_off()?;
        if let Some(cleared) = piece.contents.drop_left() {
            aloft.flight.leave(cleared.bytes);
            aloft.table().give_back([cleared]);
        }
        if piece.contents.members.len() < members {
            piece.rename(aloft.sealed.id);
        }
    } else {
        tokio::time::sleep(length).await;
    }
    let chance = (aloft.core.stores.environment.random_u128() as u32) as f64 / f64::from(u32::MAX);
    experience.pause = (experience.pause * 2).min(LONGEST_PAUSE).mul_f64(0.75 + 0.25 * chance);
    aloft.table().metrics.retries.inc();
    #[cfg(test)]
    if sabotage::is(Sabotage::ForgetsIdOnRetry) {
        piece.id = crate::sink::BatchId(aloft.core.stores.environment.random_u128());
    }
    Some(piece)
}

async fn send<S: Sink>(core: &Core<S>, sealed: &Sealed, piece: &mut Piece) -> Result<(), StoreError> {
    let destination = sealed.shape.destination.clone();
    let attempt = sealed.trace.as_ref().map(FlushTrace::begin_attempt);
    let traceparent = attempt.as_ref().map(|attempt| attempt.context.traceparent());
    let again = again_of(&piece.contents.members, sealed.source.is_some());
    let batch = Batch { id: piece.id, destination, rows: piece.contents.rows.take(), again, traceparent };
    let result = core.sink.store(&batch).await;
    if let (Some(trace), Some(attempt)) = (&sealed.trace, attempt) {
        trace.end_attempt(attempt, piece.id, batch.rows.count() as u64, result.as_ref().err());
    }
    piece.contents.rows = batch.rows;
    if result.as_ref().is_ok_and(|stored| stored.has_other_types) {
        (core.on_stale_schema)(&sealed.shape.table.name);
    }
    result.map(|_stored| ())
}

fn report_stale<S: Sink>(aloft: &Aloft<'_, S>, exception: &Exception) {
    if shows_stale_schema(exception.code) {
        (aloft.core.on_stale_schema)(&aloft.table().name);
    }
}

fn report_retry<S: Sink>(aloft: &Aloft<'_, S>, piece: &Piece, error: &InsertError) {
    let name = &aloft.table().name;
    tracing::warn!(
        database = name.database, table = name.table, batch = %piece.id, inserts = piece.contents.members.len(), %error,
        "a batch could not be stored; trying again"
    );
}

fn report_given_up<S: Sink>(aloft: &Aloft<'_, S>, piece: &Piece, error: &dyn std::fmt::Display) {
    let name = &aloft.table().name;
    tracing::error!(
        database = name.database, table = name.table, batch = %piece.id, inserts = piece.contents.members.len(), %error,
        "a batch could not be stored for as long as it is tried; given up"
    );
}
