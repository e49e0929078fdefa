//! Tests of the log of inserts that have ended.

use std::sync::Arc;

use windrow_clickhouse::{ErrorCode, Exception};
use windrow_engine::{policy::FlushLimits, DataKind, GathererOptions, InsertKind, InsertStatus, QueryId, Withdrawal};

use crate::support::{outcomes, shape_of, Answer, World};

fn entry(id: &str, status: InsertStatus) -> (String, InsertStatus) {
    (id.to_owned(), status)
}

#[tokio::test]
async fn each_insert_is_in_it_with_its_own_status() {
    let world = World::sealing_at(4);
    let shape = world.shape("t", "a");
    world.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &[12]);
    let mut tickets = Vec::new();
    for rows in [&[0][..], &[10, 11, 12], &[20]] {
        tickets.push(world.push_rows(&shape, rows).await);
    }
    world.leave(&shape, 30).await;
    outcomes(tickets).await;
    let log = world.gatherer.log();
    for piece in &log {
        assert_eq!(*piece.destination, shape_of("t", "a"));
        assert_eq!(piece.timeout_ms, 0, "it was sealed by count");
        let calls = world.sink.calls();
        let call = calls.iter().find(|call| Some(call.id) == piece.flush_query_id).expect("it names its store");
        let rows: usize = piece.inserts.iter().map(|insert| insert.rows as usize).sum();
        assert_eq!(rows, call.rows.len(), "the inserts of a store are together");
    }
    let mut inserts: Vec<_> = log.iter().flat_map(|piece| piece.inserts.iter()).collect();
    inserts.sort_by_key(|insert| insert.query_id.to_string());
    for (insert, (id, rows)) in inserts.iter().zip([("0", 1), ("10", 3), ("20", 1), ("30", 1)]) {
        assert_eq!((insert.query_id.to_string().as_str(), insert.rows, insert.bytes), (id, rows, 30 * rows));
        let expected = if id == "10" { InsertStatus::FlushError } else { InsertStatus::Ok };
        assert_eq!(insert.status, expected, "insert {id}");
        assert_eq!(insert.exception.is_some(), id == "10");
        assert!(insert.event_time_micros <= log[0].flush_time_micros);
    }
}

#[tokio::test]
async fn every_way_to_end_is_in_it() {
    for (answer, status) in [
        (Answer::Ok, InsertStatus::Ok),
        (Answer::Refused(ErrorCode::UNKNOWN_TABLE), InsertStatus::FlushError),
        (Answer::Failed(ErrorCode::VIOLATED_CONSTRAINT), InsertStatus::FlushError),
        (Answer::LostAfterStoring, InsertStatus::FlushError),
    ] {
        let world = World::sealing_at(2);
        world.sink.answer(move |_, _| answer);
        outcomes(world.push_all(&world.shape("t", "a"), 1..3).await).await;
        assert_eq!(world.logged(), [entry("1", status), entry("2", status)], "{answer:?}");
    }
}

#[tokio::test]
async fn the_oldest_is_forgotten() {
    let world = World::with(1, GathererOptions { log_entries: 3, ..GathererOptions::default() });
    let shape = world.shape("t", "a");
    for row in 0..5 {
        outcomes(vec![world.push(&shape, row).await]).await;
    }
    let ok = |id| entry(id, InsertStatus::Ok);
    assert_eq!(world.logged(), [ok("2"), ok("3"), ok("4")]);
}

#[tokio::test]
async fn what_was_taken_back_leaves_nothing_in_it() {
    let world = World::sealing_on_command();
    let shape = world.shape("t", "a");
    for row in 0..5 {
        assert_eq!(world.push(&shape, row).await.withdraw().await, Withdrawal::Withdrawn { last_error: None });
        world.flush().await;
    }
    assert!(world.gatherer.log().is_empty(), "an entry without inserts is never forgotten");
}

#[tokio::test]
async fn an_unreadable_payload_is_in_it() {
    let world = World::sealing_on_command();
    let kind = InsertKind {
        query: "INSERT".into(),
        format: "CSV".into(),
        data_kind: DataKind::Parsed,
        limits: FlushLimits::default(),
    };
    world.gatherer.log_without_batch(
        shape_of("t", "a").into(),
        Arc::new(kind),
        QueryId::Given("mine".into()),
        17,
        Some(Exception::new(ErrorCode::CANNOT_PARSE_INPUT_ASSERTION_FAILED, "Cannot parse input", "")),
    );
    let log = world.gatherer.log();
    assert_eq!(log[0].flush_query_id, None);
    let insert = &log[0].inserts[0];
    assert_eq!((insert.rows, insert.bytes, insert.status), (0, 17, InsertStatus::ParsingError));
    assert!(insert.exception.as_ref().is_some_and(|text| text.contains("Cannot parse input")));
}
