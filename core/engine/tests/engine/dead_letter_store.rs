//! Tests that an insert which can't be stored becomes a dead letter if no client waits for it, and only then.

use std::time::Duration;

use windrow_clickhouse::ErrorCode;
use windrow_engine::{AckLevel, FailedInsert, GathererOptions, InsertError, PushError};

use crate::support::{numbers_of, outcomes, Answer, Told, World, PASSTHROUGH};

fn code(dead_letter: &FailedInsert) -> ErrorCode {
    match &dead_letter.error {
        InsertError::Exception(exception) | InsertError::Failed(exception) => exception.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_culprit_at_level_memory_is_kept_with_its_rows() {
    for role in ["a", PASSTHROUGH] {
        let world = World::sealing_at(4);
        let shape = world.shape("t", role);
        world.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &[1, 3]);
        world.leave(&shape, 0).await;
        world.leave(&shape, 1).await;
        let tickets = world.push_all(&shape, 2..4).await;
        assert_eq!(outcomes(tickets).await, [Ok(()), Err(Told::Exception(ErrorCode::VIOLATED_CONSTRAINT))]);
        world.flush().await;
        assert_eq!(world.sink.stored(), [0, 2]);
        let dead_letters = world.dead_letters.kept(|dead_letter| {
            assert_eq!(
                (code(dead_letter), dead_letter.ack, dead_letter.journal_id),
                (ErrorCode::VIOLATED_CONSTRAINT, AckLevel::Memory, None)
            );
            assert_eq!((dead_letter.query_id.to_string().as_str(), dead_letter.payload_bytes), ("1", 30));
            assert_eq!(dead_letter.attempts, 3, "with all, with half, alone");
            numbers_of(dead_letter.destination.clone(), dead_letter.rows.clone())
        });
        assert_eq!(dead_letters, [[1]], "who waits is told instead");
        assert_eq!(world.gatherer.held_bytes(), 0);
    }
}

#[tokio::test]
async fn dead_letters_that_can_not_be_written_are_tried_again_and_the_lane_goes_on() {
    tokio::time::pause();
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.dead_letters.fail(3);
    world.sink.answer_first([Answer::Failed(ErrorCode::VIOLATED_CONSTRAINT)]);
    world.leave(&shape, 0).await;
    world.leave(&shape, 1).await;
    let next = world.push_all(&shape, 2..4).await;
    assert_eq!(outcomes(next).await, [Ok(()); 2]);
    assert!(world.dead_letters.kept(|_| ()).is_empty());
    assert!(world.gatherer.held_bytes() > 0, "what is not kept yet is held");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(
        world.dead_letters.kept(|dead_letter| numbers_of(dead_letter.destination.clone(), dead_letter.rows.clone())),
        [[0], [1]]
    );
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn after_its_time_a_batch_is_given_up() {
    tokio::time::pause();
    let options = GathererOptions { retry_for: Some(Duration::from_secs(60)), ..GathererOptions::default() };
    let world = World::with(2, options);
    let shape = world.shape("t", "a");
    world.sink.answer(|_, call| match call.rows.contains(&0) {
        true => Answer::NotSent,
        false => Answer::Ok,
    });
    world.leave(&shape, 0).await;
    let mut tickets = vec![world.push(&shape, 1).await];
    tickets.extend(world.push_all(&shape, 2..4).await);
    assert_eq!(outcomes(tickets).await, [Err(Told::Unreachable), Ok(()), Ok(())]);
    world.flush().await;
    assert_eq!(world.dead_letters.kept(|dead_letter| matches!(dead_letter.error, InsertError::Unreachable(_))), [true]);
    let attempts = world.sink.calls().iter().filter(|call| call.rows.contains(&0)).count();
    assert!((25..100).contains(&attempts), "{attempts} attempts in a minute");
}

#[tokio::test]
async fn what_was_given_up_after_a_lost_answer_may_be_stored() {
    tokio::time::pause();
    let options = GathererOptions { retry_for: Some(Duration::from_secs(60)), ..GathererOptions::default() };
    let world = World::with(1, options);
    world.sink.answer(|call, _| if call == 0 { Answer::LostAfterStoring } else { Answer::NotSent });
    world.leave(&world.deduplicating_shape("t"), 0).await;
    world.flush().await;
    assert_eq!(
        world.dead_letters.kept(|dead_letter| matches!(dead_letter.error, InsertError::OutcomeUnknown(_))),
        [true]
    );
}

#[tokio::test]
async fn without_room_for_dead_letters_only_those_who_wait_are_taken() {
    let world = World::sealing_at(1);
    let shape = world.shape("t", "a");
    world.dead_letters.fill();
    let left = world.gatherer.push(&shape, world.insert(&shape, &[1], false)).await;
    assert_eq!(left.err(), Some(PushError::DeadLettersFull { max_bytes: 7 }));
    assert_eq!(world.gatherer.held_bytes(), 0);
    let ticket = world.push(&shape, 2).await;
    assert_eq!(outcomes(vec![ticket]).await, [Ok(())]);
}
