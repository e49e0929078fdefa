//! Tests that a sink that panics costs the batch it panicked on, and nothing else.

use windrow_engine::Withdrawal;

use crate::support::{outcomes, Answer, Told, World};

#[tokio::test]
async fn its_members_hear_that_the_outcome_is_unknown_and_the_lane_goes_on() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::Panic]);
    let lost = world.push_all(&shape, 0..2).await;
    let next = world.push_all(&shape, 2..4).await;
    assert_eq!(outcomes(lost).await, [Err(Told::OutcomeUnknown); 2]);
    assert_eq!(outcomes(next).await, [Ok(()); 2]);
    world.flush().await;
    assert_eq!(world.sink.stored(), [2, 3]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn a_flush_does_not_wait_for_it_for_ever() {
    let world = World::sealing_on_command();
    world.sink.answer_first([Answer::Panic]);
    world.leave(&world.shape("t", "a"), 1).await;
    world.flush().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn what_was_given_back_before_is_not_given_back_again() {
    let world = World::sealing_at(3);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::NotSent, Answer::Panic]);
    let mut tickets = world.push_all(&shape, 0..3).await;
    world.sink.ended(1).await;
    assert!(matches!(tickets.remove(1).withdraw().await, Withdrawal::Withdrawn { .. }));
    assert_eq!(outcomes(tickets).await, [Err(Told::OutcomeUnknown); 2]);
    world.flush().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
    let after = world.push_all(&shape, 3..6).await;
    assert_eq!(outcomes(after).await, [Ok(()); 3]);
}

#[tokio::test]
async fn what_was_answered_before_is_not_given_back_again() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::LostBeforeStoring, Answer::Panic]);
    world.leave(&shape, 0).await;
    let asked = world.push_all(&shape, [1]).await;
    assert_eq!(outcomes(asked).await, [Err(Told::OutcomeUnknown)]);
    world.flush().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
}
