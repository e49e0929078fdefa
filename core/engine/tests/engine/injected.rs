//! Tests with an error that comes again and again for one insert, whatever its code: inserts behind it don't
//! wait, no row is stored twice, no innocent insert is refused, and the culprit's sender is told or has a
//! dead letter.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_engine::sink::{Destination, ShardTable};
use windrow_engine::{AckLevel, Insert, Shape};

use crate::support::{outcomes, shape_of, Answer, Told, World};

const CULPRIT: u64 = 2;
const PER_BATCH: u64 = 4;
const BATCHES: u64 = 12;
/// The rows of the first batch: the culprit and its neighbours.
const FIRST: std::ops::Range<u64> = 0..PER_BATCH;
/// Errors after which no insert is given up: too many parts or queries, too little room. Some inserts are let
/// through, and the error passes in the end.
const NEVER_GIVEN_UP: [ErrorCode; 3] =
    [ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES, ErrorCode::NOT_ENOUGH_SPACE, ErrorCode::TOO_MANY_PARTS];
/// Errors that only get worse when the batch is cut.
const OF_NUMBER: [ErrorCode; 2] = [ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES, ErrorCode::TOO_MANY_PARTS];

/// Returns all codes that ClickHouse has or may get, and some that it will hardly get.
fn codes() -> impl Iterator<Item = ErrorCode> {
    (1..=1_010).chain([5_000, 99_999, i32::MAX, 0, -1]).map(ErrorCode::from_number)
}

/// Returns the answer that a sink draws from the code.
fn answer(code: ErrorCode) -> Answer {
    match code {
        ErrorCode::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING => Answer::StillRunning,
        _ if Exception::new(code, "", "").leaves_outcome_open() => Answer::LostBeforeStoring,
        _ => Answer::Refused(code),
    }
}

fn world_with_a_culprit(answer: Answer) -> World {
    let world = World::sealing_at(PER_BATCH);
    world.sink.answer(move |_, call| match call.rows.contains(&CULPRIT) {
        true => answer,
        false => Answer::Ok,
    });
    world
}

fn copies(world: &World, row: u64) -> usize {
    world.sink.stored().iter().filter(|stored| **stored == row).count()
}

/// Pushes a batch of other inserts every few seconds, which is stored before the next one comes.
async fn others_come(world: &World, shape: &Arc<Shape>, what: &str) {
    for batch in 1..BATCHES {
        let rows = PER_BATCH * batch..PER_BATCH * (batch + 1);
        for row in rows.clone() {
            world.leave(shape, row).await;
        }
        tokio::time::sleep(Duration::from_secs(8)).await;
        let stored = world.sink.stored();
        let there: Vec<u64> = stored.into_iter().filter(|row| rows.contains(row)).collect();
        assert_eq!(there, rows.collect::<Vec<_>>(), "{what}: they wait, or are there twice");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_an_insert_that_is_not_waited_for() {
    for (code, deduplicates) in codes().flat_map(|code| [(code, false), (code, true)]) {
        let what = format!("code {code}, deduplicates: {deduplicates}");
        let world = world_with_a_culprit(answer(code));
        let shape = if deduplicates { world.deduplicating_shape("t") } else { world.shape("t", "a") };
        for row in FIRST {
            world.leave(&shape, row).await;
        }
        if NEVER_GIVEN_UP.contains(&code) {
            // Small inserts are spared where a large one is not: half a minute it may last.
            tokio::time::sleep(Duration::from_secs(35)).await;
        }
        others_come(&world, &shape, &what).await;
        assert_eq!(copies(&world, CULPRIT), 0, "{what}");
        let dead = world.dead_letters.kept(|dead_letter| dead_letter.rows.count()).len();
        // Of a batch that may be stored nothing is sent under another id, where the table would know this one again.
        let is_whole = deduplicates && answer(code) == Answer::LostBeforeStoring;
        let stored = FIRST.filter(|row| copies(&world, *row) == 1).count();
        let expected = match code {
            _ if is_whole => (4, 0),
            _ if OF_NUMBER.contains(&code) => (0, stored),
            _ if NEVER_GIVEN_UP.contains(&code) => (0, 3),
            _ => (1, 3),
        };
        assert_eq!((dead, stored), expected, "{what}");
        if NEVER_GIVEN_UP.contains(&code) {
            world.sink.answer(|_, _| Answer::Ok);
        }
        world.flush().await;
        assert_eq!(world.gatherer.held_bytes(), 0, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_and_nobody_else_is() {
    for (code, deduplicates) in codes().flat_map(|code| [(code, false), (code, true)]) {
        let what = format!("code {code}, deduplicates: {deduplicates}");
        let world = world_with_a_culprit(answer(code));
        let shape = if deduplicates { world.deduplicating_shape("t") } else { world.shape("t", "a") };
        let mut tickets = world.push_all(&shape, FIRST).await;
        if NEVER_GIVEN_UP.contains(&code) {
            // It is its time that ends.
            drop(tickets.remove(CULPRIT as usize));
            others_come(&world, &shape, &what).await;
            world.sink.answer(|_, _| Answer::Ok);
            world.flush().await;
            continue;
        }
        others_come(&world, &shape, &what).await;
        let told = outcomes(tickets).await;
        // Nobody knows whether the batch that they shared is stored.
        let is_unknown = answer(code) == Answer::LostBeforeStoring;
        for (row, told) in FIRST.zip(told) {
            let expected = match row {
                _ if is_unknown => Err(Told::OutcomeUnknown),
                CULPRIT => Err(Told::Exception(code)),
                _ => Ok(()),
            };
            assert_eq!(told, expected, "{what}, insert {row}");
            assert!(copies(&world, row) <= 1, "{what}, insert {row}");
        }
        assert_eq!(copies(&world, CULPRIT), 0, "{what}");
        world.flush().await;
        assert_eq!(world.gatherer.held_bytes(), 0, "{what}");
    }
}

/// A view is too slow for the user's own limit of time: each attempt stores the rows, and reports a failure.
#[tokio::test(start_paused = true)]
async fn what_may_be_stored_each_time_is_not_sent_for_ever() {
    let world = world_with_a_culprit(Answer::LostAfterStoring);
    let shape = world.shape("t", "a");
    for row in FIRST {
        world.leave(&shape, row).await;
    }
    others_come(&world, &shape, "a slow view").await;
    assert_eq!(copies(&world, CULPRIT), 4);
    assert!(FIRST.clone().all(|row| copies(&world, row) <= 4));
    let told = world.dead_letters.kept(|dead_letter| dead_letter.error.to_string());
    assert_eq!(told.len(), 1, "only the last part that could not be told apart: {told:?}");
    assert!(told[0].contains("may or may not be stored"), "{told:?}");
    world.flush().await;
    assert_eq!(world.gatherer.held_bytes(), 0);
}

/// A table that recognises a repeat stores the insert once; the insert is given up as well.
#[tokio::test(start_paused = true)]
async fn what_is_stored_once_however_often_it_is_sent_is_not_sent_for_ever_either() {
    let world = world_with_a_culprit(Answer::LostAfterStoring);
    let shape = world.deduplicating_shape("t");
    let alone = Insert { at_once: true, ..world.insert(&shape, &[CULPRIT], false) };
    assert!(world.gatherer.push(&shape, alone).await.expect("there is room").is_none());
    others_come(&world, &shape, "a slow view").await;
    assert_eq!(copies(&world, CULPRIT), 1);
    let told = world.dead_letters.kept(|dead_letter| dead_letter.error.to_string());
    assert!(told.len() == 1 && told[0].contains("may or may not be stored"), "{told:?}");
}

/// A view takes minutes for these rows: while ClickHouse works on them, they are not given up, and delay no
/// others.
#[tokio::test(start_paused = true)]
async fn what_is_still_being_stored_is_waited_for() {
    let world = World::sealing_at(PER_BATCH);
    let shape = world.deduplicating_shape("t");
    let ends = Instant::now() + Duration::from_secs(300);
    let mut was_sent = false;
    world.sink.answer(move |_, call| match call.rows.contains(&CULPRIT) {
        true if !std::mem::replace(&mut was_sent, true) => Answer::LostAfterStoring,
        true if Instant::now() < ends => Answer::StillRunning,
        _ => Answer::Ok,
    });
    let alone = Insert { at_once: true, ..world.insert(&shape, &[CULPRIT], false) };
    assert!(world.gatherer.push(&shape, alone).await.expect("there is room").is_none());
    others_come(&world, &shape, "a slow view").await;
    tokio::time::sleep_until(ends + Duration::from_secs(5)).await;
    world.flush().await;
    assert_eq!(copies(&world, CULPRIT), 1);
    assert_eq!(world.dead_letters.kept(|dead_letter| dead_letter.error.to_string()), [""; 0]);
    assert_eq!(world.gatherer.held_bytes(), 0);
}

/// A repeat is not recognised here, so no piece of the batch may be sent under another id meanwhile: it would
/// be stored twice.
#[tokio::test(start_paused = true)]
async fn what_is_still_being_stored_is_not_cut_up() {
    let world = World::sealing_at(PER_BATCH);
    let shape = world.shape("t", "a");
    let mut running = None;
    world.sink.answer(move |_, call| match call.rows.contains(&CULPRIT) {
        true if running.is_none() => {
            running = Some(call.id);
            Answer::LostAfterStoring
        }
        true if running == Some(call.id) => Answer::StillRunning,
        _ => Answer::Ok,
    });
    for row in FIRST {
        world.leave(&shape, row).await;
    }
    others_come(&world, &shape, "a slow view").await;
    assert!(FIRST.clone().all(|row| copies(&world, row) == 1), "{:?}", world.sink.stored());
    let told = world.dead_letters.kept(|dead_letter| dead_letter.error.to_string());
    assert_eq!(told.len(), FIRST.count());
    assert!(told.iter().all(|told| told.contains("may or may not be stored")), "{told:?}");
    assert_eq!(world.gatherer.held_bytes(), 0);
}

/// An outage is no insert's fault: whatever its error, and however long it lasts, all is stored in the end,
/// in order.
#[tokio::test(start_paused = true)]
async fn in_an_outage_nothing_is_given_up_and_order_is_kept() {
    let passing = codes().filter(|code| Exception::new(*code, "", "").is_passing());
    let unknown = Answer::LostBeforeStoring;
    for (answer, deduplicates) in
        passing.map(|code| (Answer::Refused(code), false)).chain([(unknown, true), (Answer::NotSent, false)])
    {
        let world = World::sealing_at(PER_BATCH);
        let shape = if deduplicates { world.deduplicating_shape("t") } else { world.shape("t", "a") };
        let ends = Instant::now() + Duration::from_secs(200);
        world.sink.answer(move |_, _| if Instant::now() < ends { answer } else { Answer::Ok });
        for row in 0..PER_BATCH * BATCHES {
            world.leave(&shape, row).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        world.flush().await;
        let all: Vec<u64> = (0..PER_BATCH * BATCHES).collect();
        assert_eq!(world.sink.stored(), all, "{answer:?}");
        assert_eq!(world.dead_letters.kept(|_| ()).len(), 0, "{answer:?}");
        let parts = world.sink.calls().iter().filter(|call| !call.stored.is_empty()).count();
        assert!(parts <= 3 * BATCHES as usize, "{answer:?}: {parts} parts");
    }
}

/// An insert never fits, and no insert behind it shows that: its neighbours are stored, and it is given up.
#[tokio::test(start_paused = true)]
async fn neighbours_alone_show_who_it_is() {
    for code in [
        ErrorCode::TIMEOUT_EXCEEDED,
        ErrorCode::READONLY,
        ErrorCode::MEMORY_LIMIT_EXCEEDED,
        ErrorCode::TABLE_IS_READ_ONLY,
        ErrorCode::KEEPER_EXCEPTION,
    ] {
        let world = world_with_a_culprit(Answer::Refused(code));
        let shape = world.shape("t", "a");
        for row in FIRST {
            world.leave(&shape, row).await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(world.sink.stored(), [0, 1, 3], "code {code}");
        world.flush().await;
        assert_eq!(world.dead_letters.kept(|_| ()).len(), 1, "code {code}");
    }
}

/// The neighbours' own later inserts do not wait: their rows of the batch are stored.
#[tokio::test(start_paused = true)]
async fn who_shared_a_batch_with_a_culprit_is_not_held_up_by_it() {
    for code in [
        ErrorCode::MEMORY_LIMIT_EXCEEDED,
        ErrorCode::TABLE_IS_READ_ONLY,
        ErrorCode::NOT_ENOUGH_SPACE,
        ErrorCode::KEEPER_EXCEPTION,
    ] {
        let world = world_with_a_culprit(Answer::Refused(code));
        let shape = world.shape("t", "a");
        for row in FIRST {
            world.leave(&shape, row).await;
        }
        tokio::time::sleep(Duration::from_secs(40)).await;
        for neighbour in FIRST.filter(|row| *row != CULPRIT) {
            let again = Insert { writer: neighbour, at_once: true, ..world.insert(&shape, &[neighbour + 100], true) };
            let ticket = world.gatherer.push(&shape, again).await.expect("there is room").expect("it waits");
            let told = tokio::time::timeout(Duration::from_secs(8), outcomes(vec![ticket])).await;
            assert_eq!(told.ok(), Some(vec![Ok(())]), "code {code}, connection {neighbour}");
        }
        world.sink.answer(|_, _| Answer::Ok);
        world.flush().await;
    }
}

/// No other connection uses the table: only the same connection's later inserts can show which insert is to
/// blame.
#[tokio::test(start_paused = true)]
async fn a_connection_does_not_wait_for_ever_for_its_own_insert() {
    for (code, waits) in [
        (ErrorCode::TIMEOUT_EXCEEDED, false),
        (ErrorCode::MEMORY_LIMIT_EXCEEDED, true),
        (ErrorCode::KEEPER_EXCEPTION, false),
        (ErrorCode::KEEPER_EXCEPTION, true),
    ] {
        let world = world_with_a_culprit(Answer::Refused(code));
        let shape = world.shape("t", "a");
        for row in [CULPRIT].into_iter().chain(10..10 + BATCHES) {
            let ack = if waits && row != CULPRIT { AckLevel::Stored } else { AckLevel::Memory };
            let insert = Insert { writer: 1, at_once: true, ack, ..world.insert(&shape, &[row], false) };
            world.gatherer.push(&shape, insert).await.expect("there is room");
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        assert_eq!(world.sink.stored(), (10..10 + BATCHES).collect::<Vec<_>>(), "code {code}");
        assert_eq!(world.dead_letters.kept(|_| ()).len(), 1, "code {code}: the culprit is given up");
        world.flush().await;
    }
}

/// The backend goes away twice with the same error, and stores one insert between: that proves nothing
/// against the others.
#[tokio::test(start_paused = true)]
async fn a_backend_that_comes_and_goes_has_nothing_given_up() {
    for code in [
        ErrorCode::TIMEOUT_EXCEEDED,
        ErrorCode::MEMORY_LIMIT_EXCEEDED,
        ErrorCode::TABLE_IS_READ_ONLY,
        ErrorCode::KEEPER_EXCEPTION,
    ] {
        let world = World::sealing_at(2 * PER_BATCH);
        let shape = world.shape("t", "a");
        let begin = Instant::now();
        let mut is_let_through = false;
        world.sink.answer(move |_, _| match begin.elapsed().as_secs() {
            0..5 => Answer::Refused(code),
            5..125 if !std::mem::replace(&mut is_let_through, true) => Answer::Ok,
            5..125 => Answer::Refused(code),
            _ => Answer::Ok,
        });
        for row in 0..2 * PER_BATCH {
            world.leave(&shape, row).await;
        }
        world.flush().await;
        assert_eq!(world.dead_letters.kept(|_| ()).len(), 0, "code {code}");
        let mut stored = world.sink.stored();
        stored.sort_unstable();
        assert_eq!(stored, (0..2 * PER_BATCH).collect::<Vec<_>>(), "code {code}");
    }
}

/// A shard's table is waited for as long as it may be attached again, or created: for a minute, even if other
/// inserts can be stored.
#[tokio::test(start_paused = true)]
async fn a_table_that_a_shard_has_not_is_waited_for_a_minute() {
    // It may have had another trouble before, which is no part of the minute.
    for (code, other, seconds) in [ErrorCode::UNKNOWN_TABLE, ErrorCode::UNKNOWN_DATABASE]
        .into_iter()
        .flat_map(|code| [(code, 0, 1), (code, 0, 40), (code, 90, 40), (code, 0, 10_000), (code, 90, 10_000)])
    {
        let what = format!("code {code}, {other} + {seconds} s");
        let world = World::sealing_at(PER_BATCH);
        let begin = Instant::now();
        world.sink.answer(move |_, _| match begin.elapsed().as_secs() {
            passed if passed < other => Answer::Refused(ErrorCode::TABLE_IS_READ_ONLY),
            passed if passed < other + seconds => Answer::Refused(code),
            _ => Answer::Ok,
        });
        let of_shard = ShardTable {
            number: 2,
            topology: 1,
            replicas: vec!["tcp://a:9000".into()],
            database: "default".into(),
            table: "local".into(),
        };
        let shape = world.gatherer.shape(Destination { shard: Some(Arc::new(of_shard)), ..shape_of("t", "a") });
        for row in FIRST {
            world.leave(&shape, row).await;
        }
        world.flush().await;
        let dead = world.dead_letters.kept(|dead_letter| dead_letter.rows.count()).len();
        let is_lasting = seconds > 60;
        assert_eq!((world.sink.stored().len(), dead), if is_lasting { (0, 4) } else { (4, 0) }, "{what}");
        let waited = begin.elapsed().as_secs().saturating_sub(other);
        assert!(is_lasting == (60..150).contains(&waited), "{what}: {waited} s");
        assert_eq!(world.gatherer.held_bytes(), 0, "{what}");
    }
}
