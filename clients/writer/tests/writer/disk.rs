//! Rows on a disk: left-overs of a dead writer, limits, and neighbours in one folder.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use windrow_writer::{
    AppendError, Buffer, BufferError, BufferEvents, Destination, DiskBuffer, DiskOptions, DiskSync, Gathering, Kept,
    Next, Options, Reason, Rows,
};

use crate::support::{append, left_overs, load, open, table, Folder};

fn small() -> DiskOptions {
    DiskOptions { batch_rows: 3, segment_bytes: 16 << 10, ..DiskOptions::default() }
}

#[test]
fn the_next_writer_finds_batches_under_their_ids_and_the_rest() {
    let folder = Folder::new();
    let dead = open(folder.path(), &small());
    append(&dead, &["a", "b", "c", "d", "e"]);
    append(&dead, &["f", "g"]);
    let stored = dead.seal().unwrap().unwrap();
    let sealed = dead.seal().unwrap().unwrap();
    assert_eq!(
        (load(&dead, &stored), load(&dead, &sealed)),
        (vec!["a".into(), "b".into(), "c".into()], vec!["d".into(), "e".into()])
    );
    dead.done(stored.id).unwrap();
    drop(dead);

    let next = open(folder.path(), &small());
    let found = left_overs(&next);
    assert_eq!((found.damaged_bytes, found.complaints), (0, vec![]));
    let [first, second] = &found.batches[..] else { panic!("{:?}", found.batches) };
    assert_eq!((first.id, load(&next, first)), (sealed.id, vec!["d".into(), "e".into()]));
    assert_eq!(load(&next, second), ["f", "g"]);
    assert_eq!(first.destination, Some(table("t")));
    next.done(first.id).unwrap();
    drop(next);

    let last = open(folder.path(), &small());
    let found = left_overs(&last);
    let [again] = &found.batches[..] else { panic!("{:?}", found.batches) };
    assert_eq!((again.id, load(&last, again)), (second.id, vec!["f".into(), "g".into()]), "its id was recorded");
    last.done(again.id).unwrap();
    assert_eq!(folder.sub_folders().len(), 1, "what is done with is removed");
    last.close();
    assert_eq!(folder.sub_folders().len(), 0);
}

#[test]
fn one_append_becomes_as_many_batches_as_its_bytes_need() {
    let folder = Folder::new();
    let buffer = open(folder.path(), &DiskOptions { batch_rows: 100, batch_bytes: 10, ..small() });
    append(&buffer, &["aaaa", "bbbb", "cccc", "too long for a batch", "dddd"]);
    let sealed: Vec<_> = std::iter::from_fn(|| buffer.seal().unwrap()).map(|batch| batch.positions).collect();
    assert_eq!(sealed, [0..2, 2..3, 3..4, 4..5]);
}

#[test]
fn pieces_of_a_batch_survive_as_such() {
    let folder = Folder::new();
    let dead = open(folder.path(), &DiskOptions { batch_rows: 10, ..small() });
    append(&dead, &["a", "b", "c"]);
    append(&dead, &["d"]);
    let whole = dead.seal().unwrap().unwrap();
    let pieces = dead.split(whole.id, &[1, 2]).unwrap();
    assert_eq!(pieces.iter().map(|piece| piece.positions.clone()).collect::<Vec<_>>(), [0..1, 1..2, 2..4]);
    assert_eq!(pieces.iter().map(|piece| piece.held_bytes).sum::<u64>(), whole.held_bytes);
    assert!(matches!(dead.load(whole.id), Err(BufferError::UnknownBatch(_))));
    dead.done(pieces[0].id).unwrap();
    drop(dead);
    let next = open(folder.path(), &small());
    let found = left_overs(&next).batches;
    assert_eq!(found.iter().map(|batch| batch.id).collect::<Vec<_>>(), [pieces[1].id, pieces[2].id]);
    assert_eq!((load(&next, &found[0]), load(&next, &found[1])), (vec!["b".into()], vec!["c".into(), "d".into()]));
}

#[test]
fn many_segments_are_read_through_and_removed_as_they_are_done() {
    let folder = Folder::new();
    let row = "x".repeat(3000);
    let dead = open(folder.path(), &small());
    (0..30).for_each(|_| append(&dead, &[&row, &row]));
    let segments = folder.files(".segment").len();
    assert!(segments > 10, "{segments}");
    let sealed: Vec<_> = std::iter::from_fn(|| dead.seal().unwrap()).collect();
    sealed[..15].iter().for_each(|batch| dead.done(batch.id).unwrap());
    assert!(folder.files(".segment").len() < segments / 2 + 3);
    drop(dead);
    let next = open(folder.path(), &small());
    let found = left_overs(&next);
    assert_eq!(found.complaints, Vec::<String>::new());
    assert_eq!(
        found.batches.iter().map(|batch| batch.id).collect::<Vec<_>>(),
        sealed[15..].iter().map(|batch| batch.id).collect::<Vec<_>>()
    );
    for batch in &found.batches {
        assert!(load(&next, batch).iter().all(|text| *text == row));
        next.done(batch.id).unwrap();
    }
    assert_eq!(folder.sub_folders().len(), 1);
}

#[test]
fn a_full_folder_refuses_and_takes_again_when_something_is_done() {
    let folder = Folder::new();
    let options = DiskOptions { max_disk_bytes: 64 << 10, ..small() };
    let buffer = open(folder.path(), &options);
    let row = "x".repeat(1000);
    let rows = [row.as_bytes(), row.as_bytes()].concat();
    let mut taken = 0;
    let refused = loop {
        match buffer.append(Rows::new(&rows, &[1000, 1000])) {
            Ok(_) => taken += 2,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, AppendError::Full), "{refused}");
    assert!((40..64).contains(&taken), "{taken}");
    let bytes: u64 = folder.files(".segment").iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(bytes <= 64 << 10);
    let huge = vec![0; 100 << 10];
    assert!(matches!(buffer.append(Rows::new(&huge, &[100 << 10])), Err(AppendError::TooLarge { .. })));
    assert_eq!(buffer.next_position(), taken);
    while let Some(batch) = buffer.seal().unwrap() {
        taken -= batch.rows;
        buffer.done(batch.id).unwrap();
    }
    assert_eq!(taken, 0);
    (0..20).for_each(|_| append(&buffer, &[&row]));
}

#[test]
fn rows_larger_than_a_segment_get_a_larger_one() {
    let folder = Folder::new();
    let buffer = open(folder.path(), &small());
    let large = "y".repeat(1 << 20);
    append(&buffer, &["a", &large, "b"]);
    let batches: Vec<_> = std::iter::from_fn(|| buffer.seal().unwrap()).collect();
    let rows: Vec<_> = batches.iter().flat_map(|batch| load(&buffer, batch)).collect();
    assert_eq!(rows.iter().map(String::len).collect::<Vec<_>>(), [1, 1 << 20, 1]);
}

#[test]
fn living_neighbours_and_other_tables_are_left_alone() {
    let folder = Folder::new();
    let living = open(folder.path(), &small());
    append(&living, &["a"]);
    let other = DiskBuffer::open(folder.path(), table("other"), small()).unwrap();
    append(&other, &["b"]);
    drop(other);
    let buffer = open(folder.path(), &small());
    assert_eq!(left_overs(&buffer).batches, []);
    let other = DiskBuffer::open(folder.path(), table("other"), small()).unwrap();
    assert_eq!(load(&other, &left_overs(&other).batches[0]), ["b"]);
    assert_eq!(load(&living, &living.seal().unwrap().unwrap()), ["a"]);
}

#[test]
fn left_overs_of_one_who_died_later_are_found_then() {
    let folder = Folder::new();
    let first = open(folder.path(), &small());
    let second = open(folder.path(), &small());
    assert_eq!(left_overs(&second).batches, []);
    append(&first, &["a"]);
    assert_eq!(left_overs(&second).batches, []);
    drop(first);
    let found = left_overs(&second).batches;
    assert_eq!(load(&second, &found[0]), ["a"]);
    assert_eq!(left_overs(&second).batches, [], "each is given once");
}

#[derive(Default)]
struct Told(Mutex<Vec<u64>>);

impl BufferEvents for Told {
    fn kept(&self, before: u64) {
        self.0.lock().unwrap().push(before);
    }
    fn refused(&self, _: Range<u64>, _: u64, _: BufferError) {}
    fn stored_elsewhere(&self, _: Range<u64>, _: u64) {}
    fn wake(&self) {}
}

#[test]
fn synced_appends_are_confirmed_when_they_are_on_the_disk() {
    let folder = Folder::new();
    let buffer = open(folder.path(), &DiskOptions { sync: DiskSync::Always, ..small() });
    let told = Arc::new(Told::default());
    buffer.attach(told.clone());
    let appended = buffer.append(Rows::new(b"ab", &[1, 1])).unwrap();
    assert_eq!(appended.kept, Kept::Later);
    buffer.close();
    assert_eq!(told.0.lock().unwrap().last(), Some(&2));
}

#[test]
fn a_batch_is_not_sent_before_its_id_is_on_the_disk() {
    let folder = Folder::new();
    let buffer = Arc::new(open(folder.path(), &DiskOptions { sync: DiskSync::Always, ..small() }));
    let _gathering = Gathering::new(buffer.clone(), table("t"), Options::default());
    append(&*buffer, &["a"]);
    let sealed = buffer.seal().unwrap().unwrap();
    while let Err(error) = buffer.load(sealed.id) {
        assert!(matches!(error, BufferError::NotYet), "{error}");
        std::thread::yield_now();
    }
}

#[test]
fn rows_that_cannot_be_read_any_more_are_told_as_lost() {
    let folder = Folder::new();
    let buffer = Arc::new(open(folder.path(), &small()));
    let destination: Arc<Destination> = table("t");
    let options = Options { flush_interval_ms: 0, ..Options::default() };
    let gathering = Gathering::new(buffer, destination, options);
    gathering.append(Rows::new(b"precious", &[8])).unwrap();
    let segment = &folder.files(".segment")[0];
    let mut bytes = std::fs::read(segment).unwrap();
    let at = bytes.windows(8).position(|window| window == b"precious").unwrap();
    bytes[at] = b'q';
    std::fs::write(segment, bytes).unwrap();
    assert!(matches!(gathering.next(0), Next::Wait { .. }));
    let error = gathering.take_error().unwrap();
    assert_eq!((error.reason, error.row_count, error.rows.count()), (Reason::Lost, 1, 0));
    gathering.close();
    assert!(matches!(gathering.next(1), Next::Drained));
    gathering.abandon();
    assert_eq!(folder.files(".segment").len(), 1, "the damaged segment is kept aside");
    assert!(folder.files(".segment")[0].starts_with(folder.path().join("damaged")));
}
