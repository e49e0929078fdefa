//! Tests of flushing on command, and of the end.

use std::time::Duration;

use windrow_engine::PushError;

use crate::support::{outcomes, Gate, World};

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_flush_waits_for_what_is_under_way_queued_and_open() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let tickets = world.push_all(&shape, 0..5).await;
    world.sink.begun(1).await;
    let flush = world.flush();
    tokio::pin!(flush);
    for batch in 1..=3 {
        tokio::select! {
            biased;
            () = &mut flush => panic!("batch {batch} of 3 is not stored yet"),
            () = world.settle_down() => {}
        }
        world.sink.begun(batch).await;
        world.sink.let_one_go();
        world.sink.ended(batch).await;
    }
    flush.await;
    assert_eq!(world.sink.stored(), [0, 1, 2, 3, 4]);
    assert_eq!(outcomes(tickets).await, [Ok(()); 5]);
}

#[tokio::test]
async fn a_flush_waits_for_a_flight_that_nothing_follows() {
    let world = World::sealing_at(1);
    world.sink.set_gate(Gate::Closed);
    let tickets = world.push_all(&world.shape("t", "a"), [1]).await;
    world.sink.begun(1).await;
    let flush = world.flush();
    tokio::pin!(flush);
    tokio::select! {
        biased;
        () = &mut flush => panic!("nothing is stored yet"),
        () = world.settle_down() => {}
    }
    world.sink.open_gate();
    flush.await;
    assert_eq!(world.sink.stored(), [1]);
    assert_eq!(outcomes(tickets).await, [Ok(())]);
}

/// The lane is free before the batch's senders are answered: a flush that finds no lane still has to wait for
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_waits_for_the_answers_of_a_batch_that_has_just_been_stored() {
    let world = World::sealing_at(1);
    let shape = world.shape("t", "a");
    for row in 0..5_000 {
        world.leave(&shape, row).await;
        world.sink.ended(row as usize + 1).await;
        world.flush_table("t").await;
        assert_eq!(world.logged().len() as u64, row + 1, "the flush has ended before the insert was logged");
    }
}

#[tokio::test]
async fn a_flush_does_not_wait_for_what_comes_later() {
    let world = World::sealing_on_command();
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    world.leave(&shape, 1).await;
    let flush = world.flush();
    tokio::pin!(flush);
    tokio::select! {
        biased;
        () = &mut flush => panic!("nothing is stored yet"),
        () = world.sink.begun(1) => {}
    }
    world.leave(&shape, 2).await;
    world.sink.open_gate();
    flush.await;
    assert_eq!(world.sink.stored(), [1]);
}

#[tokio::test]
async fn a_flush_of_a_table_is_of_that_table() {
    let world = World::sealing_on_command();
    let (one, two) = (world.shape("one", "a"), world.shape("two", "a"));
    world.leave(&one, 1).await;
    world.leave(&world.shape("one", "b"), 2).await;
    world.leave(&two, 3).await;
    world.flush_table("one").await;
    let mut stored = world.sink.stored();
    stored.sort_unstable();
    assert_eq!(stored, [1, 2]);
    assert_eq!(world.gatherer.buffers().len(), 1);
}

#[tokio::test]
async fn a_flush_with_nothing_to_do_is_done() {
    let world = World::sealing_on_command();
    world.flush().await;
    let _shape = world.shape("t", "a");
    world.flush().await;
    world.flush_table("unknown").await;
    assert_eq!(world.sink.call_count(), 0);
}

#[tokio::test]
async fn the_end_stores_everything_and_takes_nothing_more() {
    let world = World::sealing_at(2);
    let (one, two) = (world.shape("one", "a"), world.shape("two", "a"));
    let tickets = world.push_all(&one, 0..3).await;
    world.leave(&two, 10).await;
    assert_eq!(world.gatherer.shut_down(LONG).await.lost_inserts, 0);
    let mut stored = world.sink.stored();
    stored.sort_unstable();
    assert_eq!(stored, [0, 1, 2, 10]);
    assert_eq!(outcomes(tickets).await, [Ok(()); 3]);
    assert_eq!(world.try_push(&one, 4).await.err(), Some(PushError::ShuttingDown));
    assert_eq!(world.gatherer.held_bytes(), 0, "a refused insert holds nothing");
    assert_eq!(world.sink.call_count(), 3);
}

#[tokio::test]
async fn the_end_is_told_when_not_everything_is_stored() {
    let world = World::sealing_at(1);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    world.leave(&shape, 1).await;
    world.sink.begun(1).await;
    assert_eq!(world.gatherer.shut_down(Duration::from_millis(10)).await.lost_inserts, 1);
    assert_eq!(world.sink.stored(), [0; 0]);
    // It may be asked again, once the sink is back.
    world.sink.open_gate();
    assert_eq!(world.gatherer.shut_down(LONG).await.lost_inserts, 0);
    assert_eq!(world.sink.stored(), [1]);
}

#[tokio::test]
async fn what_waits_is_shown_without_what_was_taken_back() {
    let world = World::sealing_at(2);
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let mut tickets = world.push_all(&shape, 0..5).await;
    world.sink.begun(1).await;
    drop(tickets.remove(3).withdraw().await);
    let shown: Vec<Vec<String>> = world
        .gatherer
        .buffers()
        .iter()
        .map(|buffer| {
            assert_eq!(buffer.destination.table, "t");
            buffer.entries.iter().map(|entry| entry.query_id.to_string()).collect()
        })
        .collect();
    assert_eq!(shown, [vec!["2"], vec!["4"]], "the queued batch, then the open one; not the one on its way");
    world.sink.open_gate();
    world.flush().await;
    assert!(world.gatherer.buffers().is_empty());
}
