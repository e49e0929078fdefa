//! Tests of the store of dead letters, on a disk in memory.

mod disk;
mod golden;
mod messages;
mod model;

use std::sync::Arc;

use windrow_clickhouse::{Credentials, ErrorCode, Exception};
use windrow_engine::{
    dead_letters::{DeadLetter, DeadLetterId, Gone, Kept, KeptInsert, Page, Revived, Selection},
    policy::FlushLimits,
    sink::{BatchId, Destination},
    AckLevel, DataKind, DeadLetterStore, FailedInsert, Insert, InsertError, InsertKind, QueryId, TableKey,
};

use self::disk::{MemoryDisk, Opened};
use crate::support::{numbers_of, rows_for, shape_of, PASSTHROUGH};

const ROOM: u64 = 1 << 20;
const ALL: Page = Page { offset: 0, limit: usize::MAX };

/// Returns a dead letter of one row.
fn dead_letter(table: &str, number: u64) -> FailedInsert {
    dead_letter_of(shape_of(table, if number.is_multiple_of(2) { "a" } else { PASSTHROUGH }), number)
}

fn dead_letter_of(destination: Destination, number: u64) -> FailedInsert {
    let rows = rows_for(&destination, &[number]);
    let password = "the password".to_owned();
    let credentials = Credentials { password, ..destination.credentials.clone() };
    FailedInsert {
        destination: Arc::new(Destination { credentials, ..destination }),
        kind: Arc::new(InsertKind {
            query: "INSERT".into(),
            format: "CSV".into(),
            data_kind: DataKind::Parsed,
            limits: FlushLimits::default(),
        }),
        rows,
        query_id: QueryId::Given("id".into()),
        payload_bytes: 30,
        dedup: None,
        ack: AckLevel::Disk,
        journal_id: Some(number),
        arrived_wall_micros: 1_000_000,
        failed_wall_micros: 2_000_000 + number,
        attempts: 3,
        batch: BatchId(5),
        error: InsertError::Exception(Exception::new(ErrorCode::VIOLATED_CONSTRAINT, &format!("no {number}"), "")),
    }
}

fn numbers(opened: &Opened) -> Vec<u64> {
    let listing = opened.dead_letters.list(&Selection::default(), ALL);
    assert_eq!(listing.total, listing.dead_letters.len());
    let number = |id| {
        let dead_letter = opened.dead_letters.read(id).unwrap().expect("it is in the list");
        let kept = insert_of(dead_letter.kept);
        numbers_of(Arc::new(kept.destination), kept.rows)[0]
    };
    listing.dead_letters.iter().rev().map(|dead_letter| number(dead_letter.id)).collect()
}

fn insert_of(kept: Kept) -> KeptInsert {
    match kept {
        Kept::Insert(insert) => *insert,
        Kept::Message(message) => panic!("{message:?} is no insert"),
    }
}

fn ids(opened: &Opened) -> Vec<DeadLetterId> {
    opened.dead_letters.select(&Selection::default())
}

fn name(table: &str) -> TableKey {
    TableKey { database: "default".into(), table: table.into() }
}

#[tokio::test]
async fn dead_letters_are_kept_with_all_that_is_known_of_them_but_the_password() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    opened.dead_letters.keep(vec![dead_letter("t", 6), dead_letter("t", 7)]).await.unwrap();
    let before = opened.dead_letters.list(&Selection::default(), ALL);
    let opened = opened.again(ROOM);
    assert_eq!(opened.dead_letters.list(&Selection::default(), ALL), before);
    assert_eq!(numbers(&opened), [6, 7], "one in columns, one as text");
    let read = opened.dead_letters.read(ids(&opened)[0]).unwrap().unwrap();
    let summary = &read.summary;
    assert_eq!((summary.arrived_micros, summary.failed_micros, summary.attempts), (1_000_000, 2_000_006, 3));
    assert_eq!(
        (summary.code, summary.rows, summary.payload_bytes, summary.ack),
        (ErrorCode::VIOLATED_CONSTRAINT, 1, 30, AckLevel::Disk)
    );
    assert_eq!((&*summary.origin.table, &*summary.origin.user, &*summary.origin.format), ("t", "joe", "CSV"));
    assert!(read.error.contains("no 6") && summary.query_id.to_string() == "id");
    assert!(opened.disk.holds("no 6") && !opened.disk.holds("the password"));
}

#[tokio::test]
async fn a_journaled_insert_is_one_dead_letter_however_often_it_fails() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    opened.dead_letters.keep(vec![dead_letter("t", 1)]).await.unwrap();
    opened.dead_letters.keep(vec![dead_letter("t", 1), dead_letter("t", 2)]).await.unwrap();
    assert_eq!(numbers(&opened), [1, 2]);
    assert!(opened.dead_letters.holds(1) && opened.dead_letters.holds(2) && !opened.dead_letters.holds(3));
    assert_eq!(opened.dead_letters.journal_ids(&ids(&opened)), [1, 2]);
    let opened = opened.again(ROOM);
    assert!(opened.dead_letters.holds(1) && !opened.dead_letters.holds(3));
    opened.dead_letters.forget(&ids(&opened)[..1], Gone::Discarded).await.unwrap();
    assert!(!opened.dead_letters.holds(1));
}

#[tokio::test]
async fn what_was_forgotten_stays_so() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    opened.dead_letters.keep((0..5).map(|number| dead_letter("t", number)).collect()).await.unwrap();
    let known = ids(&opened);
    let some = [known[1], known[3], known[1], DeadLetterId(9999)];
    assert_eq!(opened.dead_letters.forget(&some, Gone::Retried).await, Ok(2));
    assert_eq!(opened.dead_letters.forget(&some, Gone::Retried).await, Ok(0));
    assert_eq!(opened.dead_letters.read(known[1]).unwrap().map(|dead_letter| dead_letter.error), None);
    let killed = Opened::on(opened.disk.copy(), ROOM);
    for opened in [killed, opened.again(ROOM)] {
        assert_eq!(numbers(&opened), [0, 2, 4]);
        opened.dead_letters.keep(vec![dead_letter("t", 9)]).await.unwrap();
        assert!(ids(&opened)[3] > known[4], "no number is given twice");
    }
}

#[tokio::test]
async fn at_the_bound_nothing_is_thrown_away() {
    let one = Opened::on(MemoryDisk::default(), ROOM);
    one.dead_letters.keep(vec![dead_letter("t", 0)]).await.unwrap();
    let bytes_of_one = one.dead_letters.amount().bytes;
    let opened = Opened::on(MemoryDisk::default(), 2 * bytes_of_one);
    assert!(opened.dead_letters.refuses(&name("t")).is_none());
    opened.dead_letters.keep(vec![dead_letter("t", 0), dead_letter("t", 2)]).await.unwrap();
    assert_eq!(opened.dead_letters.refuses(&name("t")).map(|full| full.max_bytes), Some(2 * bytes_of_one));
    assert!(opened.dead_letters.refuses(&name("other")).is_none(), "it has no dead letters");
    let error = opened.dead_letters.keep(vec![dead_letter("other", 4), dead_letter("t", 2)]).await.unwrap_err();
    assert_eq!(error.dead_letters.iter().map(|dead_letter| dead_letter.journal_id).collect::<Vec<_>>(), [Some(4)]);
    assert!(opened.dead_letters.refuses(&name("other")).is_some(), "it has one that found no room");
    let opened = opened.again(2 * bytes_of_one);
    assert!(opened.dead_letters.refuses(&name("t")).is_some(), "it is as full after a restart");
    opened.dead_letters.forget(&ids(&opened)[..1], Gone::Discarded).await.unwrap();
    assert!(opened.dead_letters.refuses(&name("t")).is_none());
    opened.dead_letters.keep(error.dead_letters).await.unwrap();
    assert_eq!(numbers(&opened), [2, 4]);
}

#[tokio::test]
async fn a_disk_that_fails_keeps_nothing_and_is_tried_again() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    opened.dead_letters.keep(vec![dead_letter("t", 0)]).await.unwrap();
    opened.disk.break_down(true);
    let error = opened.dead_letters.keep(vec![dead_letter("t", 2)]).await.unwrap_err();
    assert!(error.dead_letters.len() == 1 && error.why.contains("broken"), "{}", error.why);
    assert!(opened.dead_letters.forget(&ids(&opened), Gone::Discarded).await.is_err());
    assert_eq!(numbers(&opened), [0]);
    opened.disk.break_down(false);
    opened.dead_letters.keep(error.dead_letters).await.unwrap();
    assert_eq!(numbers(&opened), [0, 2]);
    assert_eq!(numbers(&opened.again(ROOM)), [0, 2]);
}

#[tokio::test]
async fn a_retried_dead_letter_is_the_insert_it_was() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    opened.dead_letters.keep(vec![dead_letter("t", 4), dead_letter("t", 5)]).await.unwrap();
    let revived = |at: usize| {
        let DeadLetter { summary, kept, .. } = opened.dead_letters.read(ids(&opened)[at]).unwrap().unwrap();
        Revived::of_insert(summary, insert_of(kept))
    };
    let Revived { destination, insert } = revived(0);
    assert!(destination.own_account && destination.credentials.user == "joe");
    let Insert { ack, history, dedup, query_id, payload_bytes, .. } = insert;
    assert_eq!((ack, query_id.to_string().as_str(), payload_bytes), (AckLevel::Disk, "id", 30));
    let history = history.unwrap();
    assert_eq!((history.arrived_wall_micros, history.attempts), (1_000_000, 3));
    let key = |revived: Revived| revived.insert.dedup.unwrap().encode();
    assert_eq!(dedup.unwrap().encode(), key(revived(0)), "retried twice it is one insert");
    assert_ne!(key(revived(0)), key(revived(1)));
}

#[test]
fn what_is_damaged_is_told() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    runtime.block_on(opened.dead_letters.keep(vec![dead_letter("t", 0), dead_letter("t", 2)])).unwrap();
    runtime.block_on(opened.dead_letters.keep(vec![dead_letter("t", 4)])).unwrap();
    let damaged = opened.disk.copy();
    damaged.flip("no 0");
    let error = Opened::try_on(damaged, ROOM).err().expect("damage is not passed over").to_string();
    assert!(error.starts_with("dead letters: segment"), "{error}");
}
