#![no_main]
//! Opens a log whose files have any bytes: it opens, or says why it can't and is not changed then. Records
//! that were read once are read again.

use libfuzzer_sys::fuzz_target;
use windrow_log::{simulation::SimDisk, Disk, DiskFile, LogOptions, Room};

const OPTIONS: LogOptions = LogOptions { segment_bytes: 4096, max_bytes: 1 << 16, reserve_bytes: 512 };

fuzz_target!(|changes: &[u8]| {
    let disk = SimDisk::new(1, 1 << 20);
    write(&disk);
    let names = disk.list().expect("a calm disk answers");
    // Which file, where, and what.
    for change in changes.chunks_exact(4) {
        let name = &names[usize::from(change[0]) % names.len()];
        let file = disk.open(name).expect("it was listed");
        let offset = u64::from(u16::from_le_bytes([change[1], change[2]])) % file.len().unwrap_or(1).max(1);
        file.write_at(offset, &change[3..]).expect("a calm disk takes it");
    }
    let mut ids = Vec::new();
    let Ok((log, committer)) = windrow_log::open(disk.clone(), OPTIONS, &mut |record| ids.push(record.id)) else {
        return;
    };
    assert!(ids.is_sorted());
    ids.iter().for_each(|id| drop(log.read(*id).expect("what was found can be read")));
    drop((log, committer));
});

fn write(disk: &SimDisk) {
    let Ok((log, mut committer)) = windrow_log::open(disk.clone(), OPTIONS, &mut |_| ()) else { return };
    let context = log.context(b"shared".to_vec());
    for number in 0..40u8 {
        let _ = log.append(1, Some(&context), vec![number; 150], Room::Ordinary);
        while committer.turn() {}
    }
}
