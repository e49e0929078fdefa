//! A refused batch is narrowed down until only the guilty inserts fail.

use crate::support::{outcomes, Answer, Told, World};

const INSERTS: u64 = 450;

async fn one_culprit(culprit: u64) {
    let world = World::sealing_at(INSERTS);
    let shape = world.shape("t", "a");
    world.sink.refuse(469, &[culprit]);
    let tickets = world.push_all(&shape, 0..INSERTS).await;
    for (row, outcome) in (0..).zip(outcomes(tickets).await) {
        let expected = if row == culprit { Err(Told::Exception(469)) } else { Ok(()) };
        assert_eq!(outcome, expected, "insert {row}, culprit {culprit}");
    }
    let innocent: Vec<u64> = (0..INSERTS).filter(|&row| row != culprit).collect();
    assert_eq!(world.sink.stored(), innocent, "each once, and in order; culprit {culprit}");
    let most = 2.0 * (INSERTS as f64).log2() + 2.0;
    assert!((world.sink.call_count() as f64) <= most, "{} calls, culprit {culprit}", world.sink.call_count());
    assert_eq!(world.gatherer.held_bytes(), 0);
    assert_eq!(world.stale_tables(), [""; 0]);
}

#[tokio::test]
async fn one_culprit_among_many_fails_alone() {
    for culprit in [0, 1, 112, 224, 225, 337, 448, 449] {
        one_culprit(culprit).await;
    }
}

#[tokio::test]
async fn each_part_of_a_refused_batch_has_an_id_of_its_own() {
    let world = World::sealing_at(8);
    world.sink.refuse(469, &[5]);
    outcomes(world.push_all(&world.shape("t", "a"), 0..8).await).await;
    let mut ids: Vec<u128> = world.sink.calls().iter().map(|call| call.id.0).collect();
    let calls = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), calls);
}

#[tokio::test]
async fn what_concerns_the_whole_batch_is_not_narrowed() {
    for code in [16, 20, 48, 53, 60, 81, 115, 192, 193, 194, 201, 497, 511, 516] {
        let world = World::sealing_at(20);
        world.sink.answer(move |_, _| Answer::Refused(code));
        let tickets = world.push_all(&world.shape("t", "a"), 0..20).await;
        assert_eq!(outcomes(tickets).await, [Err(Told::Exception(code)); 20]);
        assert_eq!(world.sink.call_count(), 1, "code {code}");
        assert_eq!(world.gatherer.held_bytes(), 0);
    }
}

#[tokio::test]
async fn a_table_that_has_changed_is_reported() {
    for (code, is_reported) in [(16, true), (60, true), (81, true), (469, false), (497, false)] {
        for answer in [Answer::Refused(code), Answer::Failed(code)] {
            let world = World::sealing_at(1);
            world.sink.answer_first([answer]);
            let tickets = world.push_all(&world.shape("changed", "a"), [1]).await;
            assert_eq!(outcomes(tickets).await, [Err(Told::Exception(code))]);
            let expected: &[&str] = if is_reported { &["changed"] } else { &[] };
            assert_eq!(world.stale_tables(), expected, "{answer:?}");
        }
    }
}

#[tokio::test]
async fn a_flood_of_culprits_is_given_up() {
    let world = World::sealing_at(INSERTS);
    world.sink.answer(|_, _| Answer::Refused(469));
    let tickets = world.push_all(&world.shape("t", "a"), 0..INSERTS).await;
    assert_eq!(outcomes(tickets).await, [Err(Told::Exception(469)); INSERTS as usize]);
    // 128 that may be narrowed, and one try for each part that was left then.
    assert!(world.sink.call_count() <= 128 + 9, "{} calls", world.sink.call_count());
    assert_eq!(world.gatherer.held_bytes(), 0);
}

#[tokio::test]
async fn too_many_partitions_are_too_many_for_the_batch_only() {
    let world = World::sealing_at(8);
    world.sink.answer(|_, call| match call.rows.len() > 2 {
        true => Answer::RefusedSaying(252, "Too many partitions for single INSERT block (more than 100)."),
        false => Answer::Ok,
    });
    let tickets = world.push_all(&world.shape("t", "a"), 0..8).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 8]);
    let sizes: Vec<usize> = world.sink.calls().iter().map(|call| call.rows.len()).collect();
    assert_eq!(sizes, [8, 4, 2, 2, 4, 2, 2]);
    assert_eq!(world.sink.stored(), (0..8).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_batch_too_large_for_the_memory_is_halved_after_three_attempts() {
    let world = World::sealing_at(4);
    world.sink.answer(|_, call| match call.rows.len() > 2 {
        true => Answer::Refused(241),
        false => Answer::Ok,
    });
    let tickets = world.push_all(&world.shape("t", "a"), 0..4).await;
    assert_eq!(outcomes(tickets).await, [Ok(()); 4]);
    let calls = world.sink.calls();
    let sizes: Vec<usize> = calls.iter().map(|call| call.rows.len()).collect();
    assert_eq!(sizes, [4, 4, 4, 2, 2]);
    assert!(calls[..3].iter().all(|call| call.id == calls[0].id), "the attempts of a batch are under one id");
    assert_eq!(world.sink.stored(), [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_lone_insert_too_large_for_the_memory_is_tried_on() {
    let world = World::sealing_at(1);
    world.sink.answer_first([Answer::Refused(241); 4]);
    let tickets = world.push_all(&world.shape("t", "a"), [7]).await;
    assert_eq!(outcomes(tickets).await, [Ok(())]);
    assert_eq!(world.sink.call_count(), 5);
    assert_eq!(world.sink.stored(), [7]);
}
