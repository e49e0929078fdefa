//! Tests that the held bytes are bounded, and that all are given back in the end.

use std::time::Duration;

use windrow_clickhouse::ErrorCode;
use windrow_engine::{AckLevel, GathererOptions, PushError};

use crate::support::{outcomes, Answer, Gate, Told, World};

/// Returns options with room for a few inserts of one row: each takes 256 bytes and its own few.
fn room_for_three() -> GathererOptions {
    GathererOptions { max_buffer_bytes: 1000, max_table_bytes: 1000, ..GathererOptions::default() }
}

#[tokio::test]
async fn bytes_are_given_back_whatever_the_end() {
    let ends = [
        Answer::Ok,
        Answer::Refused(ErrorCode::VIOLATED_CONSTRAINT),
        Answer::Refused(ErrorCode::UNKNOWN_TABLE),
        Answer::Failed(ErrorCode::VIOLATED_CONSTRAINT),
        Answer::LostAfterStoring,
    ];
    for answer in ends {
        let world = World::sealing_at(4);
        let shape = world.shape("t", "a");
        world.sink.answer(move |_, _| answer);
        let tickets = world.push_all(&shape, 0..3).await;
        assert!(world.gatherer.held_bytes() > 0);
        let last = world.push(&shape, 3).await;
        outcomes(tickets).await;
        outcomes(vec![last]).await;
        assert_eq!(world.gatherer.held_bytes(), 0, "{answer:?}");
    }
}

#[tokio::test]
async fn over_the_bound_an_insert_is_refused_in_the_end() {
    let options = GathererOptions { overload_wait: Duration::from_millis(20), ..room_for_three() };
    let world = World::with(1, options);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let held = world.push_all(&shape, 0..3).await;
    let bytes = world.gatherer.held_bytes();
    let refused = world.try_push(&shape, 3).await.err();
    assert_eq!(refused, Some(PushError::Overloaded { max_bytes: 1000, whose: "this table" }));
    assert_eq!(world.gatherer.held_bytes(), bytes, "a refused insert leaves no trace");
    world.sink.open_gate();
    assert_eq!(outcomes(held).await, [Ok(()); 3]);
    assert_eq!(world.sink.stored(), [0, 1, 2]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn over_the_bound_an_insert_waits_for_room() {
    let options = GathererOptions { overload_wait: Duration::from_secs(3600), ..room_for_three() };
    let world = World::with(1, options);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let mut tickets = world.push_all(&shape, 0..3).await;
    world.sink.begun(1).await;
    let waiting = world.push(&shape, 3);
    tokio::pin!(waiting);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("there was no room"),
        () = world.settle_down() => {}
    }
    assert!(world.gatherer.held_bytes() <= 1000);
    world.sink.open_gate();
    tickets.push(waiting.await);
    assert_eq!(outcomes(tickets).await, [Ok(()); 4]);
    assert_eq!(world.sink.stored(), [0, 1, 2, 3]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn who_gives_up_waiting_for_room_takes_none() {
    let options = GathererOptions { overload_wait: Duration::from_secs(3600), ..room_for_three() };
    let world = World::with(1, options);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let tickets = world.push_all(&shape, 0..3).await;
    tokio::select! {
        biased;
        _ = world.push(&shape, 3) => panic!("there was no room"),
        () = world.settle_down() => {}
    }
    world.sink.open_gate();
    assert_eq!(outcomes(tickets).await, [Ok(()); 3]);
    world.flush().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
    assert_eq!(world.sink.stored(), [0, 1, 2]);
}

#[tokio::test]
async fn a_table_takes_its_share_only() {
    let options = GathererOptions {
        max_buffer_bytes: 1600,
        max_table_bytes: 1000,
        overload_wait: Duration::ZERO,
        ..GathererOptions::default()
    };
    let world = World::with(1, options);
    let (greedy, other) = (world.shape("greedy", "a"), world.shape("other", "a"));
    world.sink.set_gate(Gate::Closed);
    let mut tickets = world.push_all(&greedy, 0..3).await;
    let refused = world.try_push(&greedy, 3).await.err();
    assert_eq!(refused, Some(PushError::Overloaded { max_bytes: 1000, whose: "this table" }));
    tickets.extend(world.push_all(&other, 10..12).await);
    let refused = world.try_push(&other, 12).await.err();
    assert_eq!(refused, Some(PushError::Overloaded { max_bytes: 1600, whose: "all tables" }));
    world.sink.open_gate();
    assert_eq!(outcomes(tickets).await, [Ok(()); 5]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn what_can_never_fit_is_refused_without_waiting() {
    let world = World::with(1, GathererOptions { overload_wait: Duration::from_secs(3600), ..room_for_three() });
    let rows: Vec<u64> = (0..100).collect();
    let shape = world.shape("t", "a");
    let refused = world.gatherer.push(&shape, world.insert(&shape, &rows, true)).await.err();
    assert!(matches!(refused, Some(PushError::Overloaded { .. })));
    assert_eq!(world.gatherer.held_bytes(), 0);
    assert!(!world.gatherer.could_hold(1000, AckLevel::Stored));
    assert!(world.gatherer.could_hold(400, AckLevel::Stored));
}

#[tokio::test]
async fn who_hears_of_an_unknown_outcome_holds_nothing_any_more() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::LostAfterStoring]);
    world.sink.set_gate(Gate::Closed);
    let asked = world.push(&shape, 1).await;
    world.leave(&shape, 2).await;
    let both = world.gatherer.held_bytes();
    world.sink.let_one_go();
    world.sink.begun(2).await;
    assert_eq!(outcomes(vec![asked]).await, [Err(Told::OutcomeUnknown)]);
    assert!(world.gatherer.held_bytes() < both);
    world.sink.open_gate();
    world.flush().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
}
