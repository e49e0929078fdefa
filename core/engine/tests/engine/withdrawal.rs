//! Tests that an insert which is taken back is not stored, as long as no attempt with it is running.

use windrow_clickhouse::ErrorCode;
use windrow_engine::{InsertError, Withdrawal};

use crate::support::{outcomes, Answer, Gate, Told, World};

const TAKEN_BACK: Withdrawal = Withdrawal::Withdrawn { last_error: None };

#[tokio::test]
async fn from_an_open_buffer() {
    let world = World::sealing_on_command();
    let shape = world.shape("t", "a");
    let mut tickets = world.push_all(&shape, 0..4).await;
    let before = world.gatherer.held_bytes();
    assert_eq!(tickets.remove(1).withdraw().await, TAKEN_BACK);
    assert!(world.gatherer.held_bytes() < before, "its memory is free at once");
    world.flush().await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 3]);
    assert_eq!(world.sink.stored(), [0, 2, 3]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn from_the_queue_behind_a_held_flight() {
    let world = World::sealing_at(3);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let mut tickets = world.push_all(&shape, 0..9).await;
    world.sink.begun(1).await;
    for place in [8, 4, 3] {
        assert_eq!(tickets.remove(place).withdraw().await, TAKEN_BACK, "insert {place}");
    }
    world.sink.open_gate();
    assert_eq!(outcomes(tickets).await, [Ok(()); 6]);
    assert_eq!(world.sink.stored(), [0, 1, 2, 5, 6, 7]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn between_two_attempts() {
    let world = World::sealing_at(3);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::NotSent]);
    let mut tickets = world.push_all(&shape, 0..3).await;
    world.sink.ended(1).await;
    let last_error = Some(InsertError::Unreachable("connection refused".into()));
    assert_eq!(tickets.remove(0).withdraw().await, Withdrawal::Withdrawn { last_error });
    assert_eq!(outcomes(tickets).await, [Ok(()); 2]);
    let calls = world.sink.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].rows, [1, 2], "nothing of it is sent any more");
    assert_ne!(calls[0].id, calls[1].id, "other members, another batch");
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn while_an_attempt_runs_it_is_too_late() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let mut tickets = world.push_all(&shape, 0..2).await;
    world.sink.begun(1).await;
    assert_eq!(tickets.remove(0).withdraw().await, Withdrawal::InFlight);
    world.sink.open_gate();
    assert_eq!(outcomes(tickets).await, [Ok(())]);
    assert_eq!(world.sink.stored(), [0, 1]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn what_may_be_stored_cannot_be_taken_back() {
    let world = World::sealing_at(2);
    let shape = world.deduplicating_shape("t");
    world.sink.answer_first([Answer::LostAfterStoring]);
    let mut tickets = world.push_all(&shape, 0..2).await;
    world.sink.ended(1).await;
    assert_eq!(tickets.remove(0).withdraw().await, Withdrawal::InFlight);
    assert_eq!(outcomes(tickets).await, [Ok(())]);
    assert_eq!(world.sink.stored(), [0, 1]);
}

#[tokio::test]
async fn after_the_end_the_outcome_is_told() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &[1]);
    let mut tickets = world.push_all(&shape, 0..2).await;
    world.flush().await;
    let refused = tickets.remove(1).withdraw().await;
    let Withdrawal::Done(Err(InsertError::Exception(exception))) = &refused else { panic!("{refused:?}") };
    assert_eq!(exception.code, ErrorCode::VIOLATED_CONSTRAINT);
    assert_eq!(tickets.remove(0).withdraw().await, Withdrawal::Done(Ok(())));
}

#[tokio::test]
async fn a_batch_that_all_have_left_is_not_sent() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::NotSent]);
    let on_ground = world.push_all(&shape, 0..2).await;
    let queued = world.push_all(&shape, 2..4).await;
    let open = world.push_all(&shape, 4..5).await;
    world.sink.ended(1).await;
    for ticket in on_ground.into_iter().chain(queued).chain(open) {
        assert!(matches!(ticket.withdraw().await, Withdrawal::Withdrawn { .. }));
    }
    assert_eq!(world.gatherer.held_bytes(), 0);
    let after = world.push_all(&shape, 5..7).await;
    world.flush().await;
    assert_eq!(outcomes(after).await, [Ok(()); 2]);
    assert_eq!(world.sink.stored(), [5, 6]);
    assert_eq!(world.sink.call_count(), 2, "one that was not sent, [5, 6]");
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn it_is_gone_from_a_batch_that_is_narrowed() {
    let world = World::sealing_at(4);
    let shape = world.shape("t", "a");
    world.sink.answer(|call, sent| match call {
        0 => Answer::NotSent,
        _ if sent.rows.contains(&3) => Answer::Refused(ErrorCode::VIOLATED_CONSTRAINT),
        _ => Answer::Ok,
    });
    let mut tickets = world.push_all(&shape, 0..4).await;
    world.sink.ended(1).await;
    assert!(matches!(tickets.remove(1).withdraw().await, Withdrawal::Withdrawn { .. }));
    assert_eq!(outcomes(tickets).await, [Ok(()), Ok(()), Err(Told::Exception(ErrorCode::VIOLATED_CONSTRAINT))]);
    assert_eq!(world.sink.stored(), [0, 2]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}
