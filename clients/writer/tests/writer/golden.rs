//! Files of earlier releases are read for ever.

use std::path::Path;

use windrow_writer::{BatchId, DiskOptions};

use crate::support::{copy, left_overs, load, open, table, Folder};

#[test]
fn version_1_is_read() {
    let folder = Folder::new();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/disk-1"), folder.path());
    let buffer = open(folder.path(), &DiskOptions::default());
    let found = left_overs(&buffer);
    assert_eq!(found.complaints, Vec::<String>::new());
    let batches: Vec<_> = found.batches.iter().map(|batch| (batch.id, load(&buffer, batch))).collect();
    let id = |text| BatchId::parse(text).unwrap();
    let sealed = (id("11a1cd69-b469-4458-a256-8c6a761d6e34"), vec!["three".into(), String::new()]);
    let pieces = [
        (id("40e355a7-5cf1-424e-a9f4-a06b7f9ee6ae"), vec!["five".to_owned()]),
        (id("6c2ac4e4-9f2d-4a9c-856e-fc2840a64458"), vec!["six".into()]),
    ];
    assert_eq!(batches[0], sealed);
    assert_eq!(batches[1..3], pieces);
    assert_eq!(batches[3].1, ["seven"]);
    assert_eq!(found.batches[0].destination, Some(table("t")));
    assert_eq!(batches.len(), 4, "one and two were done");
}
