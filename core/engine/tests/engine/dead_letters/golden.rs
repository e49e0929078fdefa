//! Tests that dead letters of earlier versions are read: the folders in `tests/golden/`, one for each version
//! of the format. With WINDROW_WRITE_GOLDEN=1 the folder of this version is made anew. A change of the format
//! needs that, under another name.

use std::path::PathBuf;

use windrow_engine::{
    dead_letters::{Gone, Kept, Selection},
    DeadLetterStore,
};

use super::disk::{MemoryDisk, Opened};
use super::messages::message;
use super::{dead_letter, ids, insert_of, ALL, ROOM};

/// The folder of the version that has only inserts.
const WITHOUT_MESSAGES: &str = "dead-letters-1";
const WITH_MESSAGES: &str = "dead-letters-2";

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The size of a segment's file. Its end, which was set aside and not written, is left out of the golden files.
const SEGMENT_BYTES: usize = 256 << 10;

fn golden(name: &str) -> Opened {
    let entries = std::fs::read_dir(folder(name)).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| {
        let mut bytes = std::fs::read(entry.path()).unwrap();
        bytes.resize(SEGMENT_BYTES, 0);
        (entry.file_name().into_string().unwrap(), bytes)
    });
    Opened::on(MemoryDisk::of(files), ROOM)
}

/// Writes the folder. Each dead letter is on the disk before the next comes, so that the files are always the
/// same.
async fn write(name: &str) {
    let opened = Opened::on(MemoryDisk::default(), ROOM);
    for number in 0..6 {
        opened.dead_letters.keep(vec![dead_letter("t", number)]).await.unwrap();
        if name == WITH_MESSAGES {
            opened.dead_letters.keep_messages(vec![message("a", 3, number as i64)]).await.unwrap();
        }
    }
    opened.dead_letters.forget(&ids(&opened)[1..2], Gone::Discarded).await.unwrap();
    let disk = opened.disk.clone();
    drop(opened.again(ROOM));
    std::fs::create_dir_all(folder(name)).unwrap();
    for (file, bytes) in disk.files() {
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        std::fs::write(folder(name).join(file), &bytes[..end]).unwrap();
    }
}

#[tokio::test]
async fn dead_letters_of_all_versions_are_read() {
    if std::env::var_os("WINDROW_WRITE_GOLDEN").is_some() {
        write(WITH_MESSAGES).await;
    }
    let old = golden(WITHOUT_MESSAGES);
    let inserts = |opened: &Opened| {
        let dead_letters = ids(opened).into_iter().map(|id| opened.dead_letters.read(id).unwrap().unwrap());
        let numbers = dead_letters.filter_map(|dead_letter| match dead_letter.kept {
            Kept::Insert(_) => {
                let kept = insert_of(dead_letter.kept);
                Some(crate::support::numbers_of(kept.destination.into(), kept.rows)[0])
            }
            Kept::Message(_) => None,
        });
        numbers.collect::<Vec<_>>()
    };
    assert_eq!(inserts(&old), [0, 2, 3, 4, 5]);
    assert!(old
        .dead_letters
        .list(&Selection::default(), ALL)
        .dead_letters
        .iter()
        .all(|dead_letter| dead_letter.message.is_none()));
    let new = golden(WITH_MESSAGES);
    assert_eq!(inserts(&new), [0, 1, 2, 3, 4, 5]);
    let messages: Vec<_> = ids(&new)
        .into_iter()
        .filter_map(|id| match new.dead_letters.read(id).unwrap().unwrap().kept {
            Kept::Message(message) => Some(*message),
            Kept::Insert(_) => None,
        })
        .collect();
    assert_eq!(messages, [1, 2, 3, 4, 5].map(|offset| message("a", 3, offset)));
}
