//! Tests that a batch is cut so that it goes into no more partitions than one INSERT may write to, and that
//! no insert is cut.

use std::collections::HashSet;
use std::sync::Arc;

use windrow_clickhouse::ErrorCode;
use windrow_columns::PartitionKey;
use windrow_engine::{sink::Partitioning, Shape};

use crate::support::{outcomes, shape_of, Answer, World};

/// Returns a shape with partitions of ten numbers each.
fn partitioned(world: &World, max_per_insert: u64) -> Arc<Shape> {
    let mut destination = shape_of("t", "a");
    let key = PartitionKey::parse("intDiv(id, 10)", "UTC");
    destination.partitioning = Some(Partitioning { key, max_per_insert: Some(max_per_insert) });
    world.gatherer.shape(destination)
}

async fn cut(inserts: &[&[u64]], max_per_insert: u64) -> Vec<Vec<u64>> {
    let world = World::sealing_at(inserts.len() as u64);
    let shape = partitioned(&world, max_per_insert);
    let mut tickets = Vec::new();
    for rows in inserts {
        tickets.push(world.push_rows(&shape, rows).await);
    }
    assert!(outcomes(tickets).await.iter().all(Result::is_ok));
    assert_eq!(world.gatherer.held_bytes(), 0);
    let calls = world.sink.calls();
    let ids: HashSet<_> = calls.iter().map(|call| call.id).collect();
    assert_eq!(ids.len(), calls.len(), "each piece has an id of its own");
    calls.into_iter().map(|call| call.rows).collect()
}

#[tokio::test]
async fn a_batch_is_cut_where_it_would_be_too_much() {
    let pieces = cut(&[&[1], &[11], &[21], &[2], &[31], &[32, 22]], 2).await;
    assert_eq!(pieces, [vec![1, 11], vec![21, 2], vec![31, 32, 22]]);
}

#[tokio::test]
async fn a_batch_within_the_limit_is_whole() {
    assert_eq!(cut(&[&[1], &[11], &[2], &[12], &[3]], 2).await, [vec![1, 11, 2, 12, 3]]);
    assert_eq!(cut(&[&[1], &[2], &[3]], 1).await, [vec![1, 2, 3]]);
}

#[tokio::test]
async fn an_insert_that_is_too_much_by_itself_stands_alone() {
    let pieces = cut(&[&[1], &[11, 21, 31], &[2], &[3]], 2).await;
    assert_eq!(pieces, [vec![1], vec![11, 21, 31], vec![2, 3]]);
}

#[tokio::test]
async fn many_pieces_keep_the_order() {
    let rows: Vec<u64> = (0..450).map(|n| n * 10).collect();
    let inserts: Vec<&[u64]> = rows.chunks(1).collect();
    let pieces = cut(&inserts, 7).await;
    assert_eq!(pieces.len(), 450usize.div_ceil(7));
    assert_eq!(pieces.concat(), rows);
    assert!(pieces.iter().all(|piece| piece.len() <= 7));
}

/// A piece that was stored is answered even if the next one takes long.
#[tokio::test]
async fn pieces_are_answered_one_by_one() {
    let world = World::sealing_at(4);
    let shape = partitioned(&world, 2);
    world.sink.answer_first([Answer::Ok, Answer::NotSent]);
    let mut tickets = world.push_all(&shape, [1, 11, 21, 31]).await;
    let rest = tickets.split_off(2);
    assert_eq!(outcomes(tickets).await, [Ok(()); 2]);
    assert_eq!(outcomes(rest).await, [Ok(()); 2]);
    assert_eq!(world.sink.stored(), [1, 11, 21, 31]);
}

#[tokio::test]
async fn where_the_limit_was_not_known_the_batch_is_halved() {
    let world = World::sealing_at(4);
    world.sink.answer(|_, call| match call.rows.len() > 2 {
        true => Answer::RefusedSaying(
            ErrorCode::TOO_MANY_PARTS,
            "Too many partitions for single INSERT block (more than 2).",
        ),
        false => Answer::Ok,
    });
    let shape = partitioned(&world, 100);
    let tickets = world.push_all(&shape, [1, 11, 21, 31]).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 4]);
    assert_eq!(world.sink.stored(), [1, 11, 21, 31]);
}
