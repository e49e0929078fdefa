//! Tests of batches that their source has put together: they are stored as they come, and are the same when
//! they come again.

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::ErrorCode;
use windrow_engine::{
    sink::{BatchId, Partitioning},
    BatchTicket, GathererOptions, InsertError, InsertStatus, PushError, PushedBatch, PushedMember, Shape, Stores,
};

use crate::support::{outcomes, rows_for, shape_of, Answer, Call, Gate, Told, World, PASSTHROUGH};

async fn told(ticket: BatchTicket) -> Vec<Result<(), Told>> {
    ticket.outcomes().await.into_iter().map(|outcome| outcome.map_err(Told::from)).collect()
}

fn ids(calls: &[Call]) -> Vec<BatchId> {
    calls.iter().map(|call| call.id).collect()
}

#[tokio::test]
async fn a_batch_is_stored_as_it_came() {
    for role in ["a", PASSTHROUGH] {
        let world = World::sealing_on_command();
        let shape = world.shape("t", role);
        let ticket = world.push_batch(&shape, 77, &[&[1, 2, 3], &[10], &[20, 21]]).await;
        assert_eq!(told(ticket).await, [Ok(()); 3]);
        let calls = world.sink.calls();
        assert_eq!((ids(&calls), calls[0].rows.clone()), (vec![BatchId(77)], vec![1, 2, 3, 10, 20, 21]));
        world.settle_down().await;
        assert_eq!(world.gatherer.held_bytes(), 0);
        let logged = [("1", InsertStatus::Ok), ("10", InsertStatus::Ok), ("20", InsertStatus::Ok)];
        assert_eq!(world.logged(), logged.map(|(id, status)| (id.to_owned(), status)));
    }
}

/// Large parts of a member are not copied into one block before rows have to be taken apart.
#[tokio::test]
async fn large_parts_are_stored_and_narrowed_down_like_small_ones() {
    let world = World::sealing_on_command();
    let shape = world.deduplicating_shape("t");
    let rows: Vec<u64> = (0..20_000).collect();
    let large = |rows: &[u64], parts: usize| PushedMember {
        rows: rows.chunks(rows.len() / parts).map(|rows| rows_for(shape.destination(), rows)).collect(),
        ..world.member(&shape, &rows[..1])
    };
    let batch = |id| PushedBatch {
        id: BatchId(id),
        members: vec![large(&rows[..10_000], 3), large(&rows[10_000..12_000], 1), large(&rows[12_000..], 2)],
        sent_before: false,
    };
    let ticket = world.gatherer.push_batch(&shape, batch(1)).await.unwrap();
    assert_eq!(told(ticket).await, [Ok(()); 3]);
    assert_eq!(world.sink.stored(), rows);
    world.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &[11_000]);
    let ticket = world.gatherer.push_batch(&shape, batch(2)).await.unwrap();
    assert_eq!(told(ticket).await, [Ok(()), Err(Told::Exception(ErrorCode::VIOLATED_CONSTRAINT)), Ok(())]);
    let innocent: Vec<u64> = rows.iter().copied().filter(|row| !(10_000..12_000).contains(row)).collect();
    assert_eq!(world.sink.stored()[20_000..], innocent);
    world.settle_down().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
}

/// Batches of one shape go one after the other, also behind and before a buffer; other shapes and tables go
/// beside them.
#[tokio::test]
async fn batches_of_a_shape_go_in_the_order_of_the_calls() {
    let world = World::sealing_at(1);
    let (shape, other) = (world.shape("t", "a"), world.shape("t", "b"));
    world.sink.set_gate(Gate::ClosedFor("t"));
    let first = world.push_batch(&shape, 1, &[&[1]]).await;
    let inserts = world.push_all(&shape, [2]).await;
    let second = world.push_batch(&shape, 2, &[&[3], &[4]]).await;
    let third = world.push_batch(&shape, 3, &[&[5]]).await;
    let beside = world.push_batch(&other, 4, &[&[100]]).await;
    let of_table = world.push_batch(&world.shape("u", "a"), 5, &[&[200]]).await;
    assert_eq!(told(of_table).await, [Ok(())]);
    world.sink.begun(3).await;
    world.sink.open_gate();
    for ticket in [first, second, third, beside] {
        assert!(told(ticket).await.iter().all(Result::is_ok));
    }
    assert_eq!(outcomes(inserts).await, [Ok(())]);
    let of_shape: Vec<u64> = world.sink.stored().into_iter().filter(|row| *row < 100).collect();
    assert_eq!(of_shape, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn who_waits_for_memory_keeps_its_place() {
    let world = World::with(u64::MAX, GathererOptions { max_buffer_bytes: 2_600, ..GathererOptions::default() });
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let rows: Vec<u64> = (0..60).collect();
    let first = world.push_batch(&shape, 1, &[&rows]).await;
    assert!(world.gatherer.held_bytes() > 1_300, "{}", world.gatherer.held_bytes());
    let (large, small) = (world.batch(&shape, 2, &[&rows, &rows, &rows]), world.batch(&shape, 3, &[&[900]]));
    let push = |batch: PushedBatch| {
        let (gatherer, shape) = (world.gatherer.clone(), shape.clone());
        tokio::spawn(async move { gatherer.push_batch(&shape, batch).await.expect("there will be room") })
    };
    let large = push(large);
    world.settle_down().await;
    let small = push(small);
    world.settle_down().await;
    assert!(!large.is_finished() && !small.is_finished(), "the small one would fit, and is behind the large one");
    assert!(world.gatherer.held_bytes() <= 2_600);
    world.sink.open_gate();
    assert_eq!(told(first).await, [Ok(())]);
    assert_eq!(told(large.await.unwrap()).await, [Ok(()); 3]);
    assert_eq!(told(small.await.unwrap()).await, [Ok(())]);
    assert_eq!(ids(&world.sink.calls()), [BatchId(1), BatchId(2), BatchId(3)]);
    world.settle_down().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
}

/// A push that is given up while it waits leaves nothing behind.
#[tokio::test]
async fn a_push_that_is_given_up_leaves_no_trace() {
    let world = World::with(u64::MAX, GathererOptions { max_buffer_bytes: 2_000, ..GathererOptions::default() });
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let rows: Vec<u64> = (0..40).collect();
    let first = world.push_batch(&shape, 1, &[&rows]).await;
    let given_up = tokio::spawn({
        let (gatherer, shape, batch) = (world.gatherer.clone(), shape.clone(), world.batch(&shape, 2, &[&rows]));
        async move { gatherer.push_batch(&shape, batch).await.map(drop) }
    });
    world.settle_down().await;
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    world.sink.open_gate();
    assert_eq!(told(first).await, [Ok(())]);
    assert_eq!(told(world.push_batch(&shape, 3, &[&rows]).await).await, [Ok(())]);
    assert_eq!(ids(&world.sink.calls()), [BatchId(1), BatchId(3)]);
    world.settle_down().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn only_members_that_are_refused_fail() {
    for names_row in [false, true] {
        let world = World::sealing_on_command();
        let shape = world.deduplicating_shape("t");
        match names_row {
            true => world.sink.constrain(&[12, 40]),
            false => world.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &[12, 40]),
        }
        let ticket = world.push_batch(&shape, 7, &[&[1, 2], &[10, 11, 12], &[20], &[30], &[40], &[50, 51]]).await;
        let ends = ticket.outcomes().await;
        let is_of_rows = |end: &Result<(), InsertError>| end.as_ref().err().is_some_and(InsertError::is_of_rows);
        assert_eq!(ends.iter().map(is_of_rows).collect::<Vec<_>>(), [false, true, false, false, true, false]);
        assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 4);
        assert_eq!(world.sink.stored(), [1, 2, 20, 30, 50, 51]);
        world.settle_down().await;
        assert_eq!((world.gatherer.held_bytes(), world.dead_letters.kept(|_| ()).len()), (0, 0));
    }
}

/// The batch has more culprits than would be searched for in an insert's batch.
#[tokio::test]
async fn no_innocent_is_given_up() {
    for names_row in [false, true] {
        let world = World::sealing_on_command();
        let rows: Vec<u64> = (0..1_500).collect();
        let culprits: Vec<u64> = rows.iter().copied().filter(|row| row % 2 == 1).collect();
        match names_row {
            true => world.sink.constrain(&culprits),
            false => world.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &culprits),
        }
        let members: Vec<&[u64]> = rows.chunks(1).collect();
        let ticket = world.push_batch(&world.deduplicating_shape("t"), 7, &members).await;
        for (row, end) in (0..).zip(ticket.outcomes().await) {
            assert_eq!(end.err().is_some_and(|error| error.is_of_rows()), row % 2 == 1, "row {row}");
        }
        assert_eq!(world.sink.stored().len(), rows.len() / 2);
    }
}

/// A gateway ends in the middle of any attempt, and another one pushes the same batch again: each row is
/// stored once.
#[tokio::test]
async fn a_repeat_sends_what_was_sent() {
    let members: [&[u64]; 5] = [&[1], &[2, 3], &[4], &[5], &[6, 7]];
    for names_row in [false, true] {
        let world = world_with_culprits(names_row);
        let refused = Err(Told::Exception(ErrorCode::VIOLATED_CONSTRAINT));
        let expected = [Ok(()), refused, Ok(()), refused, Ok(())];
        let ticket = world.push_batch(&world.deduplicating_shape("t"), 7, &members).await;
        assert_eq!(told(ticket).await, expected);
        let whole = ids(&world.sink.calls());
        assert!(whole.len() > 4, "{whole:?}");
        for last in 0..whole.len() {
            let first = world_with_culprits(names_row);
            first.sink.set_gate(Gate::Closed);
            drop(first.push_batch(&first.deduplicating_shape("t"), 7, &members).await);
            for done in 0..last {
                first.sink.begun(done + 1).await;
                first.sink.let_one_go();
            }
            first.sink.begun(last + 1).await;
            first.sink.crash();
            let second = World::on(
                first.sink.clone(),
                first.dead_letters.clone(),
                Stores::none(),
                u64::MAX,
                GathererOptions::default(),
            );
            let shape = second.deduplicating_shape("t");
            let again = PushedBatch { sent_before: true, ..second.batch(&shape, 7, &members) };
            let ticket = second.gatherer.push_batch(&shape, again).await.unwrap();
            assert_eq!(told(ticket).await, expected, "crash at {last}");
            assert_eq!(ids(&second.sink.calls()[last + 1..]), whole, "crash at {last}");
            let mut stored = second.sink.stored();
            stored.sort_unstable();
            assert_eq!(stored, [1, 4, 6, 7], "crash at {last}");
        }
    }
}

fn world_with_culprits(names_row: bool) -> World {
    let world = World::sealing_on_command();
    match names_row {
        true => world.sink.constrain(&[3, 5]),
        false => world.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &[3, 5]),
    }
    world
}

/// The batch is cut by partitions the same way each time.
#[tokio::test]
async fn a_batch_over_many_partitions_is_cut_the_same_again() {
    let world = World::sealing_on_command();
    let key = windrow_columns::PartitionKey::parse("id", "UTC");
    let partitioning = Some(Partitioning { key, max_per_insert: Some(2) });
    let shape = world.gatherer.shape(windrow_engine::sink::Destination {
        partitioning,
        deduplicates: true,
        ..shape_of("t", "a")
    });
    let members: [&[u64]; 5] = [&[1, 1], &[2], &[3], &[4, 4], &[5]];
    for sent_before in [false, true] {
        let batch = PushedBatch { sent_before, ..world.batch(&shape, 9, &members) };
        assert_eq!(told(world.gatherer.push_batch(&shape, batch).await.unwrap()).await, [Ok(()); 5]);
    }
    let calls = world.sink.calls();
    assert_eq!(calls.len(), 6);
    assert_eq!(ids(&calls[..3]), ids(&calls[3..]));
    assert_eq!(world.sink.stored(), [1, 1, 2, 3, 4, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again_under_the_same_id() {
    let world = World::sealing_on_command();
    let shape = world.shape("t", "a");
    world.sink.answer_first([
        Answer::NotSent,
        Answer::Refused(ErrorCode::TOO_MANY_PARTS),
        Answer::Refused(ErrorCode::MEMORY_LIMIT_EXCEEDED),
        Answer::LostBeforeStoring,
    ]);
    let ticket = world.push_batch(&shape, 7, &[&[1], &[2]]).await;
    let progress = ticket.progress();
    assert_eq!(
        told(ticket).await,
        [Ok(()); 2],
        "where nothing is recognised too: its source would send it again anyway"
    );
    assert_eq!(ids(&world.sink.calls()), [BatchId(7); 5]);
    assert_eq!(progress.get().failed_attempts, 4);
    assert!(matches!(progress.get().last_error, Some(InsertError::OutcomeUnknown(_))));
}

/// Parts of the batch would not be recognised when it comes again, and then goes through as a whole.
#[tokio::test(start_paused = true)]
async fn what_is_too_large_for_the_moment_is_not_cut() {
    let world = World::sealing_on_command();
    world.sink.answer_first([Answer::Refused(ErrorCode::MEMORY_LIMIT_EXCEEDED); 8]);
    let ticket = world.push_batch(&world.deduplicating_shape("t"), 7, &[&[1], &[2]]).await;
    assert_eq!(told(ticket).await, [Ok(()); 2]);
    assert_eq!(ids(&world.sink.calls()), [BatchId(7); 9]);
}

#[tokio::test]
async fn what_is_not_of_its_rows_fails_as_a_whole() {
    for code in [
        ErrorCode::NO_SUCH_COLUMN_IN_TABLE,
        ErrorCode::LOGICAL_ERROR,
        ErrorCode::UNKNOWN_TABLE,
        ErrorCode::ACCESS_DENIED,
        ErrorCode::TYPE_MISMATCH,
    ] {
        let world = World::sealing_on_command();
        world.sink.answer_first([Answer::Refused(code)]);
        let ends = world.push_batch(&world.deduplicating_shape("t"), 7, &[&[1], &[2]]).await.outcomes().await;
        assert_eq!(world.sink.call_count(), 1, "code {code}");
        assert!(ends.iter().all(|end| end.as_ref().is_err_and(|error| !error.is_of_rows())), "code {code}");
        world.settle_down().await;
        assert_eq!((world.gatherer.held_bytes(), world.dead_letters.kept(|_| ()).len()), (0, 0));
    }
}

#[tokio::test]
async fn what_may_be_stored_in_part_is_told_as_such() {
    let world = World::sealing_on_command();
    world.sink.answer_first([Answer::FailedInPart(ErrorCode::VIOLATED_CONSTRAINT, 1)]);
    let ends = world.push_batch(&world.shape("t", "a"), 7, &[&[1], &[2]]).await.outcomes().await;
    assert!(
        ends.iter().all(|end| matches!(end, Err(error @ InsertError::Failed(_)) if !error.is_of_rows())),
        "{ends:?}"
    );
    assert_eq!(world.sink.call_count(), 1);
}

/// A right that was there when the batch was sent before may be gone: it is unknown which rows are stored.
#[tokio::test]
async fn a_repeat_that_is_refused_stays_in_doubt() {
    let world = World::sealing_on_command();
    let shape = world.deduplicating_shape("t");
    world.sink.answer_first([Answer::Refused(ErrorCode::ACCESS_DENIED)]);
    let batch = PushedBatch { sent_before: true, ..world.batch(&shape, 7, &[&[1], &[2]]) };
    let ticket = world.gatherer.push_batch(&shape, batch).await.unwrap();
    assert_eq!(told(ticket).await, [Err(Told::OutcomeUnknown); 2]);
}

#[tokio::test]
async fn a_sink_that_panics_costs_its_batch_and_no_memory() {
    let world = World::sealing_on_command();
    let shape = world.shape("t", "a");
    world.sink.answer_first([Answer::Panic]);
    let lost = world.push_batch(&shape, 1, &[&[1], &[2]]).await;
    let next = world.push_batch(&shape, 2, &[&[3]]).await;
    assert_eq!(told(lost).await, [Err(Told::OutcomeUnknown); 2]);
    assert_eq!(told(next).await, [Ok(())]);
    world.settle_down().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_flies_lands_or_is_told_to_be_unknown() {
    let world = World::sealing_on_command();
    let shape = world.shape("t", "a");
    let in_time = world.push_batch(&shape, 1, &[&[1]]).await;
    world.gatherer.shut_down(Duration::from_secs(60)).await;
    assert_eq!(told(in_time).await, [Ok(())]);
    let refused = world.gatherer.push_batch(&shape, world.batch(&shape, 2, &[&[2]])).await;
    assert!(matches!(refused, Err(PushError::ShuttingDown)));

    let world = World::sealing_on_command();
    let shape = world.shape("t", "a");
    world.sink.set_gate(Gate::Closed);
    let hangs = world.push_batch(&shape, 1, &[&[1], &[2]]).await;
    let behind = world.push_batch(&shape, 2, &[&[3]]).await;
    let ended = world.gatherer.shut_down(Duration::from_secs(1)).await;
    assert_eq!(ended.lost_inserts, 0, "their source has them");
    assert_eq!(told(hangs).await, [Err(Told::OutcomeUnknown); 2]);
    assert_eq!(told(behind).await, [Err(Told::OutcomeUnknown)]);
}

/// A source that has dropped its ticket hears nothing, and the batch is stored all the same.
#[tokio::test]
async fn a_batch_flies_on_without_its_ticket() {
    let world = World::sealing_on_command();
    let shape: Arc<Shape> = world.shape("t", "a");
    drop(world.push_batch(&shape, 1, &[&[1], &[2]]).await);
    world.flush().await;
    assert_eq!(world.sink.stored(), [1, 2]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}
