//! Tests of the inserts that share a batch, of flights at the same time, and of their order.

use std::sync::Arc;

use windrow_clickhouse::ErrorCode;

use crate::support::{outcomes, Answer, Gate, Told, World};

#[tokio::test]
async fn equal_destinations_are_one_shape() {
    let world = World::sealing_at(2);
    let one = world.shape("t", "a");
    assert!(Arc::ptr_eq(&one, &world.shape("t", "a")));
    let tickets = [world.push(&one, 1).await, world.push(&world.shape("t", "a"), 2).await];
    assert_eq!(outcomes(tickets.into()).await, [Ok(()), Ok(())]);
    assert_eq!(world.sink.call_count(), 1);
}

#[tokio::test]
async fn shapes_of_a_table_fly_side_by_side_one_flight_each() {
    let world = World::sealing_at(1);
    let (a, b) = (world.shape("t", "a"), world.shape("t", "b"));
    world.sink.set_gate(Gate::Closed);
    let mut tickets = vec![world.push(&a, 1).await, world.push(&b, 2).await];
    world.sink.begun(2).await;
    tickets.extend([world.push(&a, 3).await, world.push(&b, 4).await]);
    world.settle_down().await;
    assert_eq!(world.sink.call_count(), 2, "a second flight of a shape took off beside the first");
    world.sink.open_gate();
    assert_eq!(outcomes(tickets).await, [Ok(()); 4]);
    for call in world.sink.calls() {
        let expected: &[u64] = if call.destination.roles == ["a"] { &[1, 3] } else { &[2, 4] };
        assert!(expected.contains(&call.rows[0]), "{call:?} holds another shape's row");
    }
}

#[tokio::test]
async fn rows_keep_their_order_behind_a_held_flight() {
    let world = World::sealing_at(3);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let first = world.push_all(&shape, 0..3).await;
    world.sink.begun(1).await;
    let rest = world.push_all(&shape, 3..14).await;
    world.settle_down().await;
    assert_eq!(world.sink.call_count(), 1);
    world.sink.open_gate();
    assert_eq!(outcomes(first).await, [Ok(()); 3]);
    world.flush().await;
    assert_eq!(outcomes(rest).await, [Ok(()); 11]);
    assert_eq!(world.sink.stored(), (0..14).collect::<Vec<_>>());
    let sizes: Vec<usize> = world.sink.calls().iter().map(|call| call.rows.len()).collect();
    assert_eq!(sizes, [3, 3, 3, 3, 2]);
}

#[tokio::test]
async fn a_retried_batch_is_not_overtaken() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::NotSent, Answer::Refused(ErrorCode::TOO_MANY_PARTS)]);
    let tickets = world.push_all(&shape, 0..6).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 6]);
    assert_eq!(world.sink.stored(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(world.sink.call_count(), 5);
}

#[tokio::test]
async fn each_waiting_insert_gets_its_own_outcome() {
    let world = World::sealing_at(6);
    let shape = world.shape("t", "a");
    world.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &[11, 51]);
    let mut tickets = Vec::new();
    for first in [10, 20, 30, 40, 50, 60] {
        tickets.push(world.push_rows(&shape, &[first, first + 1, first + 2]).await);
    }
    let refused = Err(Told::Exception(ErrorCode::VIOLATED_CONSTRAINT));
    assert_eq!(outcomes(tickets).await, [refused, Ok(()), Ok(()), Ok(()), refused, Ok(())]);
    assert_eq!(world.sink.stored(), [20, 21, 22, 30, 31, 32, 40, 41, 42, 60, 61, 62]);
}

#[tokio::test]
async fn a_held_table_stops_no_other() {
    let world = World::sealing_at(2);
    let (slow, quick) = (world.shape("slow", "a"), world.shape("quick", "a"));
    world.sink.set_gate(Gate::ClosedFor("slow"));
    let held = world.push_all(&slow, 0..4).await;
    world.sink.begun(1).await;
    for round in 0..5 {
        let tickets = world.push_all(&quick, [100 + 2 * round, 101 + 2 * round]).await;
        assert_eq!(outcomes(tickets).await, [Ok(()); 2]);
    }
    assert_eq!(world.sink.stored(), (100..110).collect::<Vec<_>>());
    world.sink.open_gate();
    assert_eq!(outcomes(held).await, [Ok(()); 4]);
}

#[tokio::test]
async fn who_does_not_wait_has_its_rows_stored_all_the_same() {
    let world = World::sealing_on_command();
    let shape = world.shape("t", "a");
    world.leave(&shape, 1).await;
    drop(world.push(&shape, 2).await);
    world.leave(&shape, 3).await;
    world.flush().await;
    assert_eq!(world.sink.stored(), [1, 2, 3], "a ticket that is dropped takes nothing back");
}
