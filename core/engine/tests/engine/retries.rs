//! Tests of retries: which batches are tried again, under which id, and with which members.

use windrow_clickhouse::ErrorCode;
use windrow_engine::InsertStatus;

use crate::support::{outcomes, Answer, Gate, Told, World};

/// Asserts that all calls so far were attempts of one batch.
fn assert_same_batch(world: &World, calls: usize) {
    let made = world.sink.calls();
    assert_eq!(made.len(), calls);
    for call in &made {
        assert_eq!((call.id, &call.rows), (made[0].id, &made[0].rows));
    }
}

#[tokio::test]
async fn what_was_not_sent_is_tried_again_under_its_id() {
    let world = World::sealing_at(3);
    world.sink.answer_first([Answer::NotSent, Answer::NotSent]);
    let tickets = world.push_all(&world.shape("t", "a"), 0..3).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 3]);
    assert_same_batch(&world, 3);
    assert_eq!(world.sink.stored(), [0, 1, 2]);
}

#[tokio::test]
async fn a_passing_refusal_is_tried_again_under_its_id() {
    for answer in [
        Answer::RefusedSaying(ErrorCode::TOO_MANY_PARTS, "Too many parts (3000)."),
        Answer::Refused(ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES),
        Answer::Refused(ErrorCode::TABLE_IS_READ_ONLY),
    ] {
        let world = World::sealing_at(3);
        world.sink.answer_first([answer]);
        let tickets = world.push_all(&world.shape("t", "a"), 0..3).await;
        assert_eq!(outcomes(tickets).await, [Ok(()); 3]);
        assert_same_batch(&world, 2);
    }
}

#[tokio::test]
async fn what_failed_is_not_tried_again() {
    // 241 and 252 would pass; but nobody knows what the failed attempt has stored.
    for answer in [
        Answer::Failed(ErrorCode::VIOLATED_CONSTRAINT),
        Answer::Failed(ErrorCode::MEMORY_LIMIT_EXCEEDED),
        Answer::FailedInPart(ErrorCode::TOO_MANY_PARTS, 2),
    ] {
        let world = World::sealing_at(3);
        let shape = world.shape("t", "a");
        world.sink.answer_first([answer]);
        world.leave(&shape, 0).await;
        let tickets = world.push_all(&shape, 1..3).await;
        let told = outcomes(tickets).await;
        assert!(told.iter().all(|outcome| matches!(outcome, Err(Told::Exception(_)))), "{told:?}");
        world.flush().await;
        assert_eq!(world.sink.call_count(), 1);
        assert_eq!(world.gatherer.held_bytes(), 0);
    }
}

#[tokio::test]
async fn who_waits_hears_that_the_outcome_is_unknown_and_is_not_sent_again() {
    let world = World::sealing_at(3);
    world.sink.answer_first([Answer::LostAfterStoring]);
    let tickets = world.push_all(&world.shape("t", "a"), 0..3).await;
    assert_eq!(outcomes(tickets).await, [Err(Told::OutcomeUnknown); 3]);
    world.flush().await;
    assert_eq!(world.sink.call_count(), 1);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn who_does_not_wait_is_sent_again_apart_from_those_who_do() {
    let world = World::sealing_at(4);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::LostBeforeStoring]);
    world.leave(&shape, 0).await;
    let mut tickets = vec![world.push(&shape, 1).await];
    world.leave(&shape, 2).await;
    tickets.push(world.push(&shape, 3).await);
    assert_eq!(outcomes(tickets).await, [Err(Told::OutcomeUnknown); 2]);
    world.flush().await;
    assert_eq!(world.sink.stored(), [0, 2]);
    let calls = world.sink.calls();
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0].id, calls[1].id, "other members, another batch");
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn when_nobody_leaves_an_unknown_batch_it_keeps_its_id() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::LostBeforeStoring]);
    world.leave(&shape, 0).await;
    world.leave(&shape, 1).await;
    world.flush().await;
    assert_same_batch(&world, 2);
    assert_eq!(world.sink.stored(), [0, 1]);
}

/// The rest of the batch may take hours; a client that waits is to know at once.
#[tokio::test]
async fn an_unknown_outcome_is_told_before_the_rest_is_stored() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::LostBeforeStoring]);
    world.sink.set_gate(Gate::Closed);
    let tickets = vec![world.push(&shape, 0).await];
    world.leave(&shape, 1).await;
    world.sink.let_one_go();
    world.sink.begun(2).await;
    assert_eq!(outcomes(tickets).await, [Err(Told::OutcomeUnknown)]);
    world.sink.open_gate();
    world.flush().await;
    assert_eq!(world.sink.stored(), [1]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn what_is_stored_is_told_before_the_rest_is_tried_again() {
    let world = World::sealing_at(4);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::Refused(ErrorCode::VIOLATED_CONSTRAINT), Answer::Ok, Answer::NotSent]);
    let mut tickets = world.push_all(&shape, 0..4).await;
    world.sink.ended(2).await;
    world.sink.set_gate(Gate::Closed);
    world.sink.begun(4).await;
    let rest = tickets.split_off(2);
    assert_eq!(outcomes(tickets).await, [Ok(()); 2]);
    world.sink.open_gate();
    assert_eq!(outcomes(rest).await, [Ok(()); 2]);
    assert_eq!(world.sink.stored(), [0, 1, 2, 3]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn a_deduplicating_table_is_sent_the_same_batch_until_it_answers() {
    let world = World::sealing_at(3);
    let shape = world.deduplicating_shape("t");
    world.sink.answer_first([Answer::LostAfterStoring, Answer::LostBeforeStoring]);
    world.leave(&shape, 0).await;
    let tickets = world.push_all(&shape, 1..3).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 2]);
    assert_same_batch(&world, 3);
    assert_eq!(world.sink.stored(), [0, 1, 2], "the repeat stores nothing twice");
}

/// The sink's system takes an attempt off its list a little after it has answered.
#[tokio::test]
async fn an_id_that_is_still_in_use_is_tried_again() {
    let world = World::sealing_at(3);
    world.sink.answer_first([Answer::Refused(ErrorCode::TABLE_IS_READ_ONLY), Answer::StillRunning]);
    let tickets = world.push_all(&world.shape("t", "a"), 0..3).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 3]);
    assert_same_batch(&world, 3);
    assert_eq!(world.sink.stored(), [0, 1, 2]);
}

#[tokio::test]
async fn an_id_that_is_still_in_use_after_a_lost_answer_is_tried_again_where_a_repeat_is_recognised() {
    let world = World::sealing_at(2);
    let shape = world.deduplicating_shape("t");
    world.sink.answer_first([Answer::LostBeforeStoring, Answer::StillRunning]);
    let tickets = world.push_all(&shape, 0..2).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 2]);
    assert_same_batch(&world, 3);
}

/// A half under another id would not be recognised as rows that the lost attempt may have stored.
#[tokio::test]
async fn a_batch_that_may_be_stored_is_not_halved() {
    let world = World::sealing_at(2);
    let shape = world.deduplicating_shape("t");
    world.sink.answer_first([
        Answer::LostAfterStoring,
        Answer::Refused(ErrorCode::MEMORY_LIMIT_EXCEEDED),
        Answer::Refused(ErrorCode::MEMORY_LIMIT_EXCEEDED),
        Answer::Refused(ErrorCode::MEMORY_LIMIT_EXCEEDED),
    ]);
    let tickets = world.push_all(&shape, 0..2).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 2]);
    assert_same_batch(&world, 5);
    assert_eq!(world.sink.stored(), [0, 1]);
}

#[tokio::test]
async fn a_refusal_after_a_lost_answer_leaves_the_outcome_open_unless_the_values_are_to_blame() {
    let world = World::sealing_at(2);
    let shape = world.deduplicating_shape("t");
    // Stored; then the rights are revoked.
    world.sink.answer_first([Answer::LostAfterStoring, Answer::Refused(ErrorCode::ACCESS_DENIED)]);
    let tickets = world.push_all(&shape, 0..2).await;
    assert_eq!(outcomes(tickets).await, [Err(Told::OutcomeUnknown); 2]);
    assert_eq!(world.sink.stored(), [0, 1]);

    let world = World::sealing_at(2);
    let shape = world.deduplicating_shape("t");
    // What violates a constraint now did so then.
    world.sink.answer_first([
        Answer::LostBeforeStoring,
        Answer::Refused(ErrorCode::VIOLATED_CONSTRAINT),
        Answer::Refused(ErrorCode::VIOLATED_CONSTRAINT),
    ]);
    let tickets = world.push_all(&shape, 0..2).await;
    assert_eq!(outcomes(tickets).await, [Err(Told::Exception(ErrorCode::VIOLATED_CONSTRAINT)), Ok(())]);
    assert_eq!(world.sink.stored(), [1]);
}

/// The error may concern this one query, and inserts behind it can't wait for ever.
#[tokio::test]
async fn what_never_passes_for_one_insert_is_given_up_in_the_end() {
    tokio::time::pause();
    for error in [
        (ErrorCode::MEMORY_LIMIT_EXCEEDED, "Query memory limit exceeded: would use 10.00 GiB"),
        (ErrorCode::READONLY, "Cannot execute query in readonly mode"),
    ] {
        let world = World::sealing_at(1);
        let shape = world.shape("t", "a");
        world.sink.answer(move |_, call| match call.rows.contains(&0) {
            true => Answer::RefusedSaying(error.0, error.1),
            false => Answer::Ok,
        });
        let began = tokio::time::Instant::now();
        world.leave(&shape, 0).await;
        world.leave(&shape, 1).await;
        world.flush().await;
        assert_eq!(world.sink.stored(), [1]);
        assert_eq!(world.dead_letters.kept(|dead_letter| dead_letter.attempts > 10), [true]);
        assert!(began.elapsed() >= std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_server_without_memory_is_waited_for() {
    tokio::time::pause();
    let world = World::sealing_at(1);
    let text = "(total) memory limit exceeded: would use 10.00 GiB";
    world.sink.answer(move |call, _| {
        if call < 200 {
            Answer::RefusedSaying(ErrorCode::MEMORY_LIMIT_EXCEEDED, text)
        } else {
            Answer::Ok
        }
    });
    let tickets = world.push_all(&world.shape("t", "a"), [0]).await;
    assert_eq!(outcomes(tickets).await, [Ok(())]);
}

const TOO_MANY_PARTS: Answer = Answer::RefusedSaying(ErrorCode::TOO_MANY_PARTS, "Too many parts (3000).");

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_of_too_many_parts_when_the_time_for_them_is_over() {
    let world = World::sealing_at(3);
    let shape = world.shape("t", "a");
    world.sink.answer(|_, _| TOO_MANY_PARTS);
    let began = tokio::time::Instant::now();
    world.leave(&shape, 0).await;
    // In flight, sealed behind it, and in the open buffer.
    let tickets = world.push_all(&shape, 1..8).await;
    assert_eq!(outcomes(tickets).await, [Err(Told::Exception(ErrorCode::TOO_MANY_PARTS)); 7]);
    assert_eq!(began.elapsed().as_secs(), 5, "not before, and not at the end of a pause");
    world.sink.answer(|_, _| Answer::Ok);
    world.flush().await;
    assert_eq!(world.sink.stored(), [0], "who doesn't wait is kept");
    assert_eq!(world.gatherer.held_bytes(), 0);
    let failed = world.logged().iter().filter(|(_, status)| *status == InsertStatus::FlushError).count();
    assert_eq!(failed, 7);
}

#[tokio::test(start_paused = true)]
async fn who_may_be_stored_is_not_told_of_too_many_parts() {
    let world = World::sealing_at(1);
    let shape = world.deduplicating_shape("t");
    world.sink.answer(|call, _| match call {
        0 => Answer::LostAfterStoring,
        1..30 => TOO_MANY_PARTS,
        _ => Answer::Ok,
    });
    let tickets = world.push_all(&shape, 0..1).await;
    assert_eq!(outcomes(tickets).await, [Ok(())]);
    assert_same_batch(&world, 31);
}
