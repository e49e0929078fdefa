//! One attempt to store a piece of a batch, and what follows from its result.
//!
//! A piece keeps its id as long as it keeps its members. When members leave it after an attempt (withdrawn,
//! or told that their outcome is unknown), the rest is another piece with another id. That is only done where
//! the sink is known to have stored nothing, or can't recognise a repeat anyway.

use crate::sink::{is_about_types, Again, Batch, Sink, StoreError};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::flight::FlushContext;
use crate::flush_trace::FlushTrace;
use crate::insert::InsertError;
use crate::isolate::{shows_stale_schema, Piece, Refusal, Scope};
use crate::member::Member;
use crate::retry_state::{is_about_parts, shows_overload, Evidence, Judgement};
use crate::settle::{settle, Settled};

/// The result of an attempt.
pub(crate) enum Attempted {
    /// The piece has come to its end.
    Ended,
    Refused(Refusal),
    /// The piece is to be tried again, as it is or in parts.
    Failed(Piece, Judgement),
}

/// Tries to store the piece once. Pieces are tried again for as long as the options say: senders that wait
/// withdraw their inserts when their time is over, and the others were promised that their rows are kept.
pub(crate) async fn attempt<S: Sink>(context: &mut FlushContext<'_, S>, mut piece: Piece) -> Attempted {
    let is_pushed = context.sealed.source.is_some();
    let deduplicates = context.sealed.shape.destination.deduplicates;
    let written = write_down(context, &mut piece).await;
    if piece.contents.members.is_empty() {
        return Attempted::Ended;
    }
    let sent = match written {
        Ok(()) => send(context, &mut piece).await,
        Err(error) => Err(StoreError::NotSent(format!("the journal can't be written: {error}"))),
    };
    piece.retry_state.answered(matches!(sent, Err(StoreError::StillRunning(_))));
    let error = match sent {
        Ok(()) => {
            context.sealed.shape.line.was_stored(&piece.contents.members);
            context.settle(piece.id, piece.contents.members, Ok(()));
            return Attempted::Ended;
        }
        // It says nothing of the rows, which nobody else can store any more: they wait until Windrow's account is
        // let in.
        Err(StoreError::Refused(exception))
            if context.sealed.shape.destination.own_account && exception.is_about_identity() =>
        {
            InsertError::Unreachable(format!("Windrow's own account is refused: {}", exception.line))
        }
        Err(StoreError::Refused(exception)) if may_get_its_table(context, &mut piece, &exception) => {
            report_stale(context, &exception);
            InsertError::Exception(exception)
        }
        // Of the others ClickHouse may convert what was read.
        Err(StoreError::Refused(exception))
            if piece.retry_state.surely_not_stored && refuse_who_sends_again(context, &mut piece, &exception) =>
        {
            report_stale(context, &exception);
            piece.contents.count_attempt();
            context.answer();
            return Box::pin(attempt(context, piece)).await;
        }
        Err(StoreError::Refused(exception)) if piece.retry_state.is_hopeless_alone(&exception) => {
            piece.contents.count_attempt();
            return give_up(context, piece, InsertError::Exception(exception));
        }
        Err(StoreError::Refused(exception)) => {
            let is_too_large = piece.contents.members.len() > 1
                && !is_pushed
                && piece.retry_state.has_to_shrink(&exception, deduplicates);
            if !exception.is_passing() || is_too_large {
                return refused(context, piece, exception);
            }
            InsertError::Exception(exception)
        }
        // Nobody knows how much of it is stored: another attempt, of all or of a part, could store rows twice.
        Err(StoreError::Failed(exception)) => {
            report_stale(context, &exception);
            piece.contents.count_attempt();
            context.fail(piece, &InsertError::Failed(exception));
            return Attempted::Ended;
        }
        // The sink's system answers a little before it takes an attempt off its list: where all attempts have
        // ended, this one only has to come later.
        Err(StoreError::StillRunning(text)) if piece.retry_state.surely_not_stored => {
            InsertError::Exception(still_running(&text))
        }
        Err(StoreError::NotSent(text)) => InsertError::Unreachable(text),
        Err(StoreError::Unknown(text) | StoreError::StillRunning(text)) => InsertError::OutcomeUnknown(text),
    };
    failed(context, piece, error)
}

/// Says whether a shard's table may still come: it may be attached again in a moment, or be made soon on a
/// new shard.
fn may_get_its_table<S: Sink>(context: &FlushContext<'_, S>, piece: &mut Piece, exception: &Exception) -> bool {
    let is_of_shard = context.sealed.shape.destination.shard.is_some();
    is_of_shard && exception.code.says_no_such_table() && piece.retry_state.may_get_its_table()
}

/// Refuses the members whose senders can send their rows again, where the table has other types by now and
/// other members stay in the piece. More may be done for the others without them. Returns false if nobody was
/// refused.
fn refuse_who_sends_again<S: Sink>(
    context: &mut FlushContext<'_, S>,
    piece: &mut Piece,
    exception: &Exception,
) -> bool {
    if context.sealed.source.is_some() || !is_about_types(exception, &context.sealed.shape.destination) {
        return false;
    }
    let of_values: fn(&Member) -> bool = |member| member.is_asked() && !member.kind.is_text();
    let members = &piece.contents.members;
    let parts = |picked: &fn(&Member) -> bool| members.iter().any(picked) && !members.iter().all(picked);
    let Some(sends_again) = [of_values, Member::is_asked].into_iter().find(parts) else { return false };
    let refused = piece.contents.extract(sends_again);
    leave(context, piece, refused, &InsertError::Exception(exception.clone()));
    true
}

/// Says whether somebody can bring the piece's rows again, and in which form.
fn again_of(members: &[Member], is_pushed: bool) -> Again {
    let is_asked = |member: &&Member| is_pushed || member.is_asked();
    match members.iter().any(|member| is_asked(&member)) {
        false => Again::Never,
        true if !is_pushed && members.iter().filter(is_asked).all(|member| member.kind.is_text()) => Again::Text,
        true => Again::Values,
    }
}

/// Writes the piece to the journal, for the next start after a crash. Members whose own records are not
/// written leave the piece.
async fn write_down<S: Sink>(context: &mut FlushContext<'_, S>, piece: &mut Piece) -> Result<(), String> {
    loop {
        leave_unkept(context, piece);
        if piece.contents.members.is_empty() {
            return Ok(());
        }
        let written = context.write_down(piece).await;
        // The records of its inserts stand before it: by now it is known of each whether it does.
        if !leave_unkept(context, piece) {
            return written;
        }
    }
}

fn still_running(text: &str) -> Exception {
    let line = text.to_owned();
    Exception { line, ..Exception::new(ErrorCode::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING, "", "") }
}

/// Decides what follows from a refusal that is for good, or that is of the piece as a whole because of its
/// size.
fn refused<S: Sink>(context: &mut FlushContext<'_, S>, mut piece: Piece, exception: Exception) -> Attempted {
    report_stale(context, &exception);
    piece.contents.count_attempt();
    if piece.retry_state.leaves_in_doubt(&exception) {
        let error = piece.retry_state.last_word(InsertError::Exception(exception));
        context.fail(piece, &error);
        return Attempted::Ended;
    }
    let scope = Scope::of(&exception, &piece.contents.rows, context.sealed.source.is_some());
    Attempted::Refused(Refusal { piece, exception, scope })
}

/// Decides what follows from an error after which the piece may still be stored later.
fn failed<S: Sink>(context: &mut FlushContext<'_, S>, mut piece: Piece, error: InsertError) -> Attempted {
    piece.contents.count_attempt();
    if let Some(source) = &context.sealed.source {
        source.attempt_failed(&error);
    }
    if piece.retry_state.is_over(context.core.options.retry_for) {
        return give_up(context, piece, error);
    }
    report_retry(context, &piece, &error);
    let judgement = judge(context, &mut piece, &error);
    // What is to blame itself shows nothing of the others.
    if shows_overload(&error) && !piece.retry_state.is_proven() {
        context.core.schedule.overloaded();
    }
    if judgement == Judgement::GivenUp {
        return give_up(context, piece, error);
    }
    let deduplicates = context.sealed.shape.destination.deduplicates;
    if matches!(error, InsertError::OutcomeUnknown(_)) && !deduplicates {
        leave_the_decision(context, &mut piece, &error);
    }
    match is_about_parts(&error) {
        true => refuse_for_parts(context, &mut piece, &error),
        false => context.table().parts_are_not_it(),
    }
    context.answer();
    piece.last_error = Some(error);
    Attempted::Failed(piece, judgement)
}

fn judge<S: Sink>(context: &FlushContext<'_, S>, piece: &mut Piece, error: &InsertError) -> Judgement {
    let is_pushed = context.sealed.source.is_some();
    let line = &context.sealed.shape.line;
    let evidence = Evidence {
        stored: line.stored(),
        stored_inserts: line.stored_inserts(),
        failing_inserts: context.failing_inserts(),
        steps: context.probes + line.doubts(),
        // Its source would send it again anyway.
        deduplicates: context.sealed.shape.destination.deduplicates || is_pushed,
        is_asked: piece.contents.members.iter().all(Member::is_asked),
    };
    match piece.retry_state.failed(error, &evidence) {
        // Its source waits for it, and what comes behind is to stay behind.
        _ if is_pushed => Judgement::Waits,
        judgement => judgement,
    }
}

fn give_up<S: Sink>(context: &mut FlushContext<'_, S>, piece: Piece, error: InsertError) -> Attempted {
    report_given_up(context, &piece, &error);
    context.table().metrics.given_up.inc();
    if let [member] = &*piece.contents.members {
        context.sealed.shape.line.was_refused(member.writer);
    }
    let error = piece.retry_state.last_word(error);
    context.fail(piece, &error);
    Attempted::Ended
}

/// Leaves the decision to the senders that wait, since another attempt could store the rows twice: they are
/// told so, and leave. Senders that were promised that their rows are kept can rely on it: their inserts are
/// tried again, at that risk, for some attempts.
fn leave_the_decision<S: Sink>(context: &mut FlushContext<'_, S>, piece: &mut Piece, error: &InsertError) {
    let asked = piece.contents.extract(Member::is_asked);
    leave(context, piece, asked, error);
}

/// Refuses inserts whose senders have waited long enough for parts to be merged: they hear that there are too
/// many, in the sink's own words. So do inserts that have waited so long behind the piece: they would be
/// refused as well. Nothing leaves a piece that may be stored already.
fn refuse_for_parts<S: Sink>(context: &mut FlushContext<'_, S>, piece: &mut Piece, error: &InsertError) {
    let InsertError::Exception(exception) = error else { return };
    let (table, patience) = (context.table(), context.core.options.too_many_parts_wait);
    let now = table.clock.now();
    let has_waited = |member: &Member| {
        member.is_asked() && member.outcome.is_some() && u128::from((now - member.arrived_at).0) >= patience.as_micros()
    };
    let behind = table.has_too_many_parts(&context.sealed.shape, exception, has_waited);
    let refused = behind.into_iter().map(|member| Settled::new(member, piece.id, Err(error.clone()))).collect();
    settle(context.core, context.sealed, context.flight, refused);
    if piece.retry_state.surely_not_stored {
        let refused = piece.contents.extract(has_waited);
        leave(context, piece, refused, error);
    }
}

/// Refuses members whose records should be on the disk before they are sent, and are not. Returns true if
/// there were any.
fn leave_unkept<S: Sink>(context: &mut FlushContext<'_, S>, piece: &mut Piece) -> bool {
    let unkept = context.take_unkept(piece);
    if unkept.is_empty() {
        return false;
    }
    leave(context, piece, unkept, &InsertError::Unreachable("the journal can't be written".into()));
    context.answer();
    true
}

/// Ends members that have left the piece with an error. The piece goes on as another one.
fn leave<S: Sink>(context: &mut FlushContext<'_, S>, piece: &mut Piece, members: Vec<Member>, error: &InsertError) {
    if !members.is_empty() {
        let sent_as = piece.id;
        piece.rename(context.sealed.id);
        context.settle(sent_as, members, Err(error.clone()));
    }
}

async fn send<S: Sink>(context: &FlushContext<'_, S>, piece: &mut Piece) -> Result<(), StoreError> {
    let (core, sealed) = (context.core, context.sealed);
    let destination = sealed.shape.destination.clone();
    // After a lost answer none is made that is known to be in vain: it may store the rows once more, and in an outage it
    // shows nothing of the piece.
    if !piece.retry_state.surely_not_stored && !core.sink.answers(&destination).await {
        return Err(StoreError::NotSent("it does not answer".to_owned()));
    }
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

fn report_stale<S: Sink>(context: &FlushContext<'_, S>, exception: &Exception) {
    if shows_stale_schema(exception.code) {
        (context.core.on_stale_schema)(&context.table().name);
    }
}

fn report_retry<S: Sink>(context: &FlushContext<'_, S>, piece: &Piece, error: &InsertError) {
    let name = &context.table().name;
    tracing::warn!(
        database = name.database, table = name.table, batch = %piece.id, inserts = piece.contents.members.len(), %error,
        "a batch could not be stored; trying again"
    );
}

fn report_given_up<S: Sink>(context: &FlushContext<'_, S>, piece: &Piece, error: &dyn std::fmt::Display) {
    let name = &context.table().name;
    tracing::error!(
        database = name.database, table = name.table, batch = %piece.id, inserts = piece.contents.members.len(), %error,
        "a batch could not be stored for as long as it is tried; given up"
    );
}
