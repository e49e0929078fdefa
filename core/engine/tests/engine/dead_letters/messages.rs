//! Tests of dead letters that were messages of a pipeline.

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_clickhouse::ErrorCode;
use windrow_engine::{
    dead_letters::{
        DeadLetterId, Gone, Kept, MessageDeadLetter, MessagePlace, MessageRows, MessageSource, NotKept, Revived,
        Selection, MAX_VALUE_BYTES,
    },
    AckLevel, DeadLetterStore,
};

use super::disk::{MemoryDisk, Opened};
use super::{dead_letter, ids, name, ALL, ROOM};
use crate::support::{rows_for, shape_of};

fn source(topic: &str) -> Arc<MessageSource> {
    Arc::new(MessageSource {
        pipeline: "clicks".into(),
        topic: topic.into(),
        topic_id: [7; 16],
        database: "default".into(),
        table: "t".into(),
        format: "JSONEachRow".into(),
    })
}

pub fn message(topic: &str, partition: i32, offset: i64) -> MessageDeadLetter {
    MessageDeadLetter {
        source: source(topic),
        partition,
        offset,
        timestamp_ms: 1_700_000_000_123,
        key: Some(b"key".to_vec()),
        headers: vec![("trace".into(), Some(vec![0xff])), ("none".into(), None)],
        value: Some(format!("{{\"number\": no {offset}}}").into_bytes()),
        code: ErrorCode::OK,
        error: format!("Cannot parse number at offset {offset}"),
        was_read: false,
        attempts: 2,
        failed_wall_micros: 1_800_000_000_000_000,
    }
}

fn offsets(opened: &Opened) -> Vec<i64> {
    opened.dead_letters.unread_offsets(&source("a"), 0, i64::MIN..=i64::MAX)
}

fn read(opened: &Opened, id: DeadLetterId) -> MessageDeadLetter {
    match opened.dead_letters.read(id).unwrap().unwrap().kept {
        Kept::Message(message) => *message,
        Kept::Insert(insert) => panic!("{insert:?} is no message"),
    }
}

#[tokio::test]
async fn messages_are_kept_with_all_that_they_had() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    let bare = MessageDeadLetter {
        key: None,
        headers: Vec::new(),
        value: None,
        timestamp_ms: -1,
        ..message("a", 1, i64::MAX)
    };
    let dead_letters = vec![message("a", 0, 41), bare.clone()];
    opened.dead_letters.keep_messages(dead_letters.clone()).await.unwrap();
    let before = opened.dead_letters.list(&Selection::default(), ALL);
    let opened = opened.again(ROOM);
    assert_eq!(opened.dead_letters.list(&Selection::default(), ALL), before);
    assert_eq!(ids(&opened).iter().map(|id| read(&opened, *id)).collect::<Vec<_>>(), dead_letters);
    let [of_bare, of_first] = &before.dead_letters[..] else { panic!("{before:?}") };
    let place = MessagePlace { partition: 0, offset: 41, timestamp_ms: 1_700_000_000_123, was_read: false };
    assert_eq!((of_first.message, of_first.arrived_micros), (Some(place), 1_700_000_000_123_000));
    assert_eq!(
        (of_first.attempts, of_first.code, of_first.rows, of_first.ack),
        (2, ErrorCode::OK, 0, AckLevel::Stored)
    );
    assert_eq!(of_first.payload_bytes, dead_letters[0].value.as_ref().unwrap().len() as u64);
    let origin = &of_first.origin;
    assert_eq!((&*origin.database, &*origin.table, &*origin.user, &*origin.query), ("default", "t", "", ""));
    assert_eq!(origin.stream.as_ref().map(|stream| (&*stream.pipeline, &*stream.topic)), Some(("clicks", "a")));
    assert_eq!(of_bare.arrived_micros, of_bare.failed_micros, "its broker gave it no time");
    assert!(opened.disk.holds("Cannot parse number at offset 41"));
}

#[tokio::test]
async fn a_message_is_one_dead_letter_however_often_it_comes_back() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    let later = MessageDeadLetter { error: "otherwise".into(), attempts: 3, ..message("a", 0, 41) };
    opened.dead_letters.keep_messages(vec![message("a", 0, 41)]).await.unwrap();
    opened.dead_letters.keep_messages(vec![later.clone(), message("a", 0, 42)]).await.unwrap();
    assert_eq!(offsets(&opened), [41, 42]);
    let opened = opened.again(ROOM);
    opened.dead_letters.keep_messages(vec![later]).await.unwrap();
    assert_eq!(offsets(&opened), [41, 42]);
    assert_eq!(read(&opened, ids(&opened)[0]).error, "Cannot parse number at offset 41", "the first is kept");
    let made_anew = MessageSource { topic_id: [8; 16], ..(*source("a")).clone() };
    let others_pipeline = MessageSource { pipeline: "other".into(), ..(*source("a")).clone() };
    let of = |source: MessageSource| MessageDeadLetter { source: Arc::new(source), ..message("a", 0, 41) };
    let others = [of(made_anew), of(others_pipeline), message("b", 0, 41), message("a", 1, 41)];
    opened.dead_letters.keep_messages(others.to_vec()).await.unwrap();
    assert_eq!(opened.dead_letters.amount().dead_letters, 6, "these are other messages");
    opened.dead_letters.forget(&ids(&opened)[..1], Gone::Discarded).await.unwrap();
    assert_eq!(offsets(&opened), [42]);
    opened.dead_letters.keep_messages(vec![message("a", 0, 41)]).await.unwrap();
    assert_eq!(offsets(&opened.again(ROOM)), [41, 42]);
}

#[tokio::test]
async fn a_message_that_is_kept_twice_at_once_is_one_dead_letter() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    let twice = (message("a", 0, 1), MessageDeadLetter { attempts: 9, ..message("a", 0, 1) });
    let both = tokio::join!(
        opened.dead_letters.keep_messages(vec![twice.0, message("a", 0, 2)]),
        opened.dead_letters.keep_messages(vec![twice.1]),
    );
    both.0.and(both.1).unwrap();
    let one = Opened::on(MemoryDisk::default(), ROOM);
    one.dead_letters.keep_messages(vec![message("a", 0, 1), message("a", 0, 2)]).await.unwrap();
    assert_eq!(opened.dead_letters.amount(), one.dead_letters.amount());
    let before = ids(&opened);
    let opened = opened.again(ROOM);
    assert_eq!((ids(&opened), offsets(&opened)), (before, vec![1, 2]));
    opened.dead_letters.forget(&ids(&opened), Gone::Retried).await.unwrap();
    assert_eq!(ids(&opened.again(ROOM)), []);
}

#[tokio::test]
async fn what_could_not_be_read_of_a_range_can_be_asked_for() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    let dead_letters = [3, 5, 8, 13].map(|offset| message("a", 0, offset));
    opened.dead_letters.keep_messages(dead_letters.to_vec()).await.unwrap();
    opened.dead_letters.keep_messages(vec![message("a", 1, 6), message("b", 0, 7)]).await.unwrap();
    // This one was in its batch.
    opened.dead_letters.keep_messages(vec![MessageDeadLetter { was_read: true, ..message("a", 0, 6) }]).await.unwrap();
    let opened = opened.again(ROOM);
    let of = |first, last| opened.dead_letters.unread_offsets(&source("a"), 0, first..=last);
    assert_eq!((of(5, 8), of(6, 7), of(0, 4), of(14, 99)), (vec![5, 8], vec![], vec![3], vec![]));
    assert!(of(8, 5).is_empty(), "an empty range has none");
}

#[tokio::test]
async fn at_the_bound_a_message_is_told_to_wait() {
    let one = Opened::on(MemoryDisk::default(), ROOM);
    one.dead_letters.keep_messages(vec![message("a", 0, 1)]).await.unwrap();
    let room = one.dead_letters.amount().bytes;
    let opened = Opened::on(MemoryDisk::default(), room);
    let dead_letters = [1, 2].map(|offset| message("a", 0, offset));
    let error = opened.dead_letters.keep_messages(dead_letters.to_vec()).await.unwrap_err();
    assert_eq!(error.why, NotKept::Full { max_bytes: room });
    assert!(error.why.to_string().contains("dead_letters.max_bytes"));
    assert_eq!(error.dead_letters[0], message("a", 0, 2));
    assert!(opened.dead_letters.refuses(&name("t")).is_some());
    opened.dead_letters.forget(&ids(&opened), Gone::Discarded).await.unwrap();
    opened.dead_letters.keep_messages(vec![message("a", 0, 2)]).await.unwrap();
    assert_eq!(offsets(&opened), [2]);
}

#[tokio::test]
async fn a_disk_that_fails_keeps_no_message() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    opened.disk.break_down(true);
    let error = opened.dead_letters.keep_messages(vec![message("a", 0, 1)]).await.unwrap_err();
    assert!(matches!(&error.why, NotKept::NotWritten(why) if why.contains("broken")), "{}", error.why);
    opened.disk.break_down(false);
    opened.dead_letters.keep_messages(error.dead_letters).await.unwrap();
    assert_eq!(offsets(&opened.again(ROOM)), [1]);
}

#[tokio::test]
async fn of_a_long_message_the_beginning_is_kept() {
    let opened = Opened::on(MemoryDisk::default(), 1 << 30);
    let (value, error) = (vec![b'x'; MAX_VALUE_BYTES + 5], "é".repeat(100_000));
    let long = MessageDeadLetter { value: Some(value), error, ..message("a", 0, 1) };
    opened.dead_letters.keep_messages(vec![long]).await.unwrap();
    let opened = opened.again(1 << 30);
    let summary = opened.dead_letters.list(&Selection::default(), ALL).dead_letters[0].clone();
    let kept = read(&opened, summary.id);
    assert_eq!(kept.value.map(|value| value.len()), Some(MAX_VALUE_BYTES));
    assert_eq!(summary.payload_bytes, MAX_VALUE_BYTES as u64 + 5, "how long it was is known");
    assert!(kept.error.len() < 20_000 && kept.error.ends_with('é'));
}

#[tokio::test]
async fn messages_are_chosen_by_where_they_stand() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    opened.dead_letters.keep(vec![dead_letter("t", 2)]).await.unwrap();
    let dead_letters = [("a", 0), ("a", 1), ("b", 1)].map(|(topic, partition)| message(topic, partition, 5));
    opened.dead_letters.keep_messages(dead_letters.to_vec()).await.unwrap();
    let chosen = |conditions: &[(&str, &str)]| {
        let mut selection = Selection::default();
        conditions.iter().for_each(|(name, value)| selection.add(name, value, 0).unwrap());
        opened.dead_letters.select(&selection).len()
    };
    assert_eq!((chosen(&[]), chosen(&[("table", "t")]), chosen(&[("user", "joe")])), (4, 4, 1));
    assert_eq!((chosen(&[("pipeline", "clicks")]), chosen(&[("pipeline", "x")])), (3, 0));
    assert_eq!((chosen(&[("topic", "a")]), chosen(&[("partition", "1")])), (2, 2));
    assert_eq!(chosen(&[("topic", "a"), ("partition", "1")]), 1);
    assert!(Selection::default().add("partition", "x", 0).is_err());
}

#[tokio::test]
async fn a_retried_message_is_one_insert() {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    opened.dead_letters.keep_messages(vec![message("a", 0, 1), message("a", 0, 2)]).await.unwrap();
    let revived = |at: usize| {
        let destination = shape_of("t", "a");
        let rows = rows_for(&destination, &[7]);
        let dead_letter = opened.dead_letters.read(ids(&opened)[at]).unwrap().unwrap();
        Revived::of_message(dead_letter.summary, MessageRows { destination, rows })
    };
    let first = revived(0);
    assert!(first.destination.own_account);
    assert_eq!((first.insert.ack, first.insert.history.unwrap().attempts), (AckLevel::Disk, 2));
    let key = |revived: Revived| revived.insert.dedup.unwrap().encode();
    assert_eq!(key(first), key(revived(0)), "retried twice it is one insert");
    assert_ne!(key(revived(0)), key(revived(1)));
}

#[tokio::test]
async fn whatever_happens_each_message_is_there_once() {
    for seed in 0..40 {
        println!("seed {seed}");
        live(seed).await;
    }
}

async fn live(seed: u64) {
    const MAX_BYTES: u64 = 30_000;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut opened = Opened::on(MemoryDisk::default(), MAX_BYTES);
    let mut expected = BTreeSet::new();
    for _ in 0..random.usize(5..60) {
        match random.u8(..10) {
            0..=5 => {
                let new: BTreeSet<i64> = (0..random.u8(1..6)).map(|_| random.i64(0..40)).collect();
                let dead_letters = new.iter().map(|&offset| message("a", 0, offset)).collect();
                let left = opened.dead_letters.keep_messages(dead_letters).await.err().map(|error| error.dead_letters);
                let left: BTreeSet<i64> =
                    left.unwrap_or_default().iter().map(|dead_letter| dead_letter.offset).collect();
                assert!(left.is_disjoint(&expected), "what is a dead letter is kept, also where there is no room");
                expected.extend(new.difference(&left));
            }
            6..=7 => {
                let some: Vec<_> = ids(&opened).into_iter().filter(|_| random.u8(..3) == 0).collect();
                some.iter().for_each(|id| assert!(expected.remove(&read(&opened, *id).offset)));
                assert_eq!(opened.dead_letters.forget(&some, Gone::Discarded).await, Ok(some.len() as u64));
            }
            8 => opened = opened.again(MAX_BYTES),
            _ => opened = Opened::on(opened.disk.copy(), MAX_BYTES),
        }
        assert_eq!(offsets(&opened), expected.iter().copied().collect::<Vec<_>>());
        assert_eq!(opened.dead_letters.amount().dead_letters, expected.len() as u64);
    }
}
