//! Tests of the deduplication index as its users see it: alone, against a model, and over restarts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use windrow_log::{Committer, Folder, LogOptions};

use super::*;

const TABLE: u128 = 1;
const FOR_EVER: DeduplicationBounds = DeduplicationBounds { entries: 100, age_micros: None };
const OPTIONS: LogOptions = LogOptions { segment_bytes: 4 << 10, max_bytes: 1 << 20, reserve_bytes: 64 << 10 };

/// An environment whose wall clock is set by hand.
#[derive(Default)]
struct Clock(AtomicU64);

impl Environment for Clock {
    fn wall_micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn random_u128(&self) -> u128 {
        4
    }

    fn reads_in_threads(&self) -> bool {
        false
    }
}

fn in_memory() -> (DeduplicationIndex, Arc<Clock>) {
    let clock = Arc::new(Clock::default());
    (DeduplicationIndex::in_memory(clock.clone()), clock)
}

fn keys(key: u128, partitions: &[u64]) -> DedupKeys {
    DedupKeys::new(TABLE, key, partitions.to_vec(), FOR_EVER)
}

/// Resolves keys. Returns `None` for a repeat.
async fn resolve(deduplication: &DeduplicationIndex, keys: DedupKeys) -> Option<(DedupKeys, Vec<u64>)> {
    match deduplication.resolve(keys, AckLevel::Stored).await {
        Resolved::Repeat => None,
        Resolved::Mine { keys, known } => Some((keys, known)),
    }
}

async fn store(deduplication: &DeduplicationIndex, keys: DedupKeys) -> bool {
    match resolve(deduplication, keys).await {
        None => false,
        Some((keys, _)) => {
            drop(deduplication.enter(vec![keys]));
            true
        }
    }
}

#[tokio::test]
async fn a_repeat_is_recognised_once_the_first_is_stored() {
    let (deduplication, _) = in_memory();
    assert!(store(&deduplication, keys(1, &[])).await);
    assert!(!store(&deduplication, keys(1, &[])).await);
    assert!(store(&deduplication, keys(2, &[])).await);
    assert!(store(&deduplication, DedupKeys::new(2, 1, vec![], FOR_EVER)).await, "another table");
}

#[tokio::test]
async fn what_was_not_stored_frees_its_keys() {
    let (deduplication, _) = in_memory();
    drop(resolve(&deduplication, keys(1, &[5])).await);
    assert!(store(&deduplication, keys(1, &[5])).await);
    assert_eq!(deduplication.entries(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_waits_for_the_first_to_end() {
    let (deduplication, _) = in_memory();
    for is_stored in [true, false] {
        let (first, _) = resolve(&deduplication, keys(u128::from(is_stored), &[])).await.expect("it is new");
        let repeat = resolve(&deduplication, first.clone());
        tokio::pin!(repeat);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut repeat).await.is_err(), "it waits");
        if is_stored {
            drop(deduplication.enter(vec![first]));
        } else {
            drop(first);
        }
        assert_eq!(repeat.await.is_none(), is_stored);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_asks_for_the_disk_waits_until_the_first_is_there() {
    let (deduplication, _) = in_memory();
    let (first, _) = resolve(&deduplication, keys(1, &[])).await.expect("it is new");
    let repeat = deduplication.resolve(first.clone(), AckLevel::Disk);
    tokio::pin!(repeat);
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut repeat).await.is_err(), "it waits");
    first.handle().expect("it is claimed").tell_durable();
    assert!(matches!(repeat.await, Resolved::Repeat));
    let stored = deduplication.resolve(first.clone(), AckLevel::Stored);
    assert!(tokio::time::timeout(Duration::from_secs(1), stored).await.is_err(), "who asks for more waits on");
}

#[tokio::test]
async fn a_part_of_a_repeat_is_new_where_its_partition_is() {
    let (deduplication, _) = in_memory();
    assert!(store(&deduplication, keys(1, &[10, 20])).await);
    let (second, known) = resolve(&deduplication, keys(1, &[20, 30])).await.expect("a part of it is new");
    assert_eq!((second.partitions.as_slice(), known.as_slice()), ([30].as_slice(), [20].as_slice()));
    drop(deduplication.enter(vec![second]));
    assert!(!store(&deduplication, keys(1, &[10, 20, 30])).await);
    assert!(!store(&deduplication, keys(1, &[])).await, "nobody can tell its partitions");
    assert!(store(&deduplication, keys(2, &[])).await);
    assert!(!store(&deduplication, keys(2, &[10])).await, "nobody could tell those of the first");
}

#[tokio::test]
async fn entries_go_by_number_and_by_age() {
    let (deduplication, clock) = in_memory();
    let bounded =
        |key, entries| DedupKeys::new(TABLE, key, vec![], DeduplicationBounds { entries, age_micros: Some(1_000) });
    for key in 0..5 {
        assert!(store(&deduplication, bounded(key, 3)).await);
    }
    assert!(!store(&deduplication, bounded(4, 3)).await && !store(&deduplication, bounded(2, 3)).await);
    assert!(store(&deduplication, bounded(1, 3)).await, "it was pushed out");
    clock.0.store(1_000, Ordering::Relaxed);
    assert!(!store(&deduplication, bounded(4, 3)).await);
    clock.0.store(1_001, Ordering::Relaxed);
    assert!(store(&deduplication, bounded(4, 3)).await, "it is too old");
    assert_eq!(deduplication.entries(), 1);
}

#[tokio::test]
async fn a_table_whose_rows_are_gone_is_forgotten_but_for_what_is_on_its_way() {
    let (deduplication, _) = in_memory();
    assert!(store(&deduplication, keys(1, &[7])).await);
    let (on_its_way, _) = resolve(&deduplication, keys(2, &[7])).await.expect("it is new");
    deduplication.forget(TABLE).await;
    drop(deduplication.enter(vec![on_its_way]));
    assert!(store(&deduplication, keys(1, &[7])).await && !store(&deduplication, keys(2, &[7])).await);
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_keeps_its_keys_until_it_comes_back() {
    let (deduplication, _) = in_memory();
    let (mut first, _) = resolve(&deduplication, keys(1, &[7])).await.expect("it is new");
    let bytes = first.encode();
    first.park();
    drop(first);
    let repeat = resolve(&deduplication, keys(1, &[7]));
    assert!(tokio::time::timeout(Duration::from_secs(1), repeat).await.is_err(), "it is still on its way");
    let back = deduplication.reclaim(DedupKeys::decode(&bytes).expect("they were encoded"));
    drop(deduplication.enter(vec![back]));
    assert!(!store(&deduplication, keys(1, &[7])).await);
}

#[tokio::test]
async fn a_claim_from_before_a_crash_may_be_of_what_is_stored() {
    let (deduplication, _) = in_memory();
    assert!(store(&deduplication, keys(1, &[7])).await);
    let again = deduplication.reclaim(keys(1, &[7]));
    drop(deduplication.enter(vec![again]));
    assert_eq!(deduplication.entries(), 1);
    drop(deduplication.reclaim(keys(1, &[7])));
    assert!(!store(&deduplication, keys(1, &[7])).await, "what is stored stays so");
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_life_left_is_known_before_it_comes() {
    let (deduplication, _) = in_memory();
    assert!(store(&deduplication, keys(1, &[7, 8])).await);
    assert!(!deduplication.reclaim_left(keys(1, &[8])), "it is stored");
    assert!(deduplication.reclaim_left(keys(1, &[8, 9])) && deduplication.reclaim_left(keys(2, &[])));
    assert!(matches!(deduplication.resolve(keys(2, &[]), AckLevel::Disk).await, Resolved::Repeat), "it can't be lost");
    let repeat = resolve(&deduplication, keys(2, &[]));
    assert!(tokio::time::timeout(Duration::from_secs(1), repeat).await.is_err(), "it is not stored");
    drop(deduplication.enter(vec![deduplication.reclaim(keys(2, &[]))]));
    assert!(!store(&deduplication, keys(2, &[])).await);
}

/// A deduplication index in a folder, whose committer is turned by hand.
struct OnDisk {
    path: PathBuf,
    clock: Arc<Clock>,
}

impl OnDisk {
    fn new() -> OnDisk {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("windrow-deduplication-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        OnDisk { path: std::env::temp_dir().join(name), clock: Arc::default() }
    }

    fn open(&self) -> (DeduplicationIndex, Committer<Folder>) {
        let folder = Folder::open(&self.path).expect("a folder of its own");
        DeduplicationIndex::open(folder, OPTIONS, self.clock.clone()).expect("it can be opened")
    }

    fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(&self.path).expect("it is there");
        files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
    }
}

#[tokio::test]
async fn what_was_entered_is_known_after_a_restart_and_what_was_not_is_not() {
    let disk = OnDisk::new();
    let (deduplication, mut committer) = disk.open();
    let (first, _) = resolve(&deduplication, keys(1, &[7, 8])).await.expect("it is new");
    let entered = deduplication.enter(vec![first]);
    committer.turn();
    entered.wait().await;
    let (_on_its_way, _) = resolve(&deduplication, keys(2, &[7])).await.expect("it is new");
    drop((deduplication, committer));
    let (deduplication, _committer) = disk.open();
    assert!(!store(&deduplication, keys(1, &[8, 7])).await);
    assert!(store(&deduplication, keys(2, &[7])).await);
}

#[tokio::test]
async fn what_was_forgotten_stays_so_after_a_restart() {
    let disk = OnDisk::new();
    let (deduplication, mut committer) = disk.open();
    assert!(store(&deduplication, keys(1, &[])).await);
    {
        let forgetting = deduplication.forget(TABLE);
        tokio::pin!(forgetting);
        while tokio::time::timeout(Duration::ZERO, &mut forgetting).await.is_err() {
            committer.turn();
        }
    }
    assert!(store(&deduplication, keys(2, &[])).await);
    committer.turn();
    drop((deduplication, committer));
    let (deduplication, _committer) = disk.open();
    assert!(!store(&deduplication, keys(2, &[])).await && store(&deduplication, keys(1, &[])).await);
}

#[tokio::test]
async fn the_log_is_as_large_as_what_is_remembered() {
    let disk = OnDisk::new();
    let (deduplication, mut committer) = disk.open();
    for key in 0..3_000 {
        assert!(store(&deduplication, keys(key, &[1])).await);
        while committer.turn() {}
    }
    // All that was entered takes 300 KB.
    assert!(disk.bytes() < 128 << 10, "{} bytes for 100 entries", disk.bytes());
    drop((deduplication, committer));
    let (deduplication, _committer) = disk.open();
    assert_eq!(deduplication.entries(), 100);
    assert!(!store(&deduplication, keys(2_999, &[1])).await && store(&deduplication, keys(1, &[1])).await);
}

#[tokio::test]
async fn a_full_log_forgets_the_oldest_and_goes_on() {
    let disk = OnDisk::new();
    let (deduplication, mut committer) = disk.open();
    let many = DeduplicationBounds { entries: 1_000_000, age_micros: None };
    let partitions: Vec<u64> = (0..1_000).collect();
    for key in 0..500 {
        assert!(store(&deduplication, DedupKeys::new(TABLE, key, partitions.clone(), many)).await);
        if key % 10 == 9 {
            committer.turn();
        }
    }
    assert!(disk.bytes() <= OPTIONS.max_bytes);
    assert!(!store(&deduplication, DedupKeys::new(TABLE, 499, partitions.clone(), many)).await);
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        // A test that failed before it was made.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The model: for each key the partitions that are stored, oldest first.
#[derive(Default)]
struct Model {
    stored: Vec<(u128, u64)>,
}

impl Model {
    fn new_of(&self, key: u128, partitions: &[u64]) -> Vec<u64> {
        partitions.iter().copied().filter(|&partition| !self.stored.contains(&(key, partition))).collect()
    }

    fn enter(&mut self, key: u128, partitions: &[u64]) {
        self.stored.extend(partitions.iter().map(|&partition| (key, partition)));
        let too_many = self.stored.len().saturating_sub(FOR_EVER.entries as usize);
        self.stored.drain(..too_many);
    }
}

#[tokio::test]
async fn any_sequence_of_inserts_and_restarts_ends_as_the_model_does() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (disk, mut model, mut under_way) = (OnDisk::new(), Model::default(), BTreeMap::new());
        let (mut deduplication, mut committer) = disk.open();
        for step in 0..400 {
            let key = random.u128(..60);
            match random.u32(..100) {
                0..=69 if !under_way.contains_key(&key) => {
                    let mut partitions: Vec<u64> = (0..4).filter(|_| random.bool()).collect();
                    partitions.push(9);
                    let expected = model.new_of(key, &partitions);
                    match resolve(&deduplication, keys(key, &partitions)).await {
                        None => assert!(expected.is_empty(), "seed {seed}, step {step}: taken for a repeat"),
                        Some((keys, _)) => {
                            assert_eq!(keys.partitions, expected, "seed {seed}, step {step}");
                            under_way.insert(key, keys);
                        }
                    }
                }
                0..=84 => {
                    if let Some(keys) = under_way.remove(&key) {
                        model.enter(key, &keys.partitions);
                        drop(deduplication.enter(vec![keys]));
                        committer.turn();
                    }
                }
                85..=94 => drop(under_way.remove(&key)),
                95..=96 => {
                    deduplication.shared.lock().forget(TABLE);
                    let payload = record::encode_forgotten(TABLE);
                    let log = deduplication.shared.log.as_ref().expect("it has one");
                    drop(log.append(record::FORGOTTEN, None, payload, Room::Reserve));
                    committer.turn();
                    model.stored.clear();
                }
                _ => {
                    under_way.clear();
                    drop((deduplication, committer));
                    (deduplication, committer) = disk.open();
                }
            }
        }
        assert_eq!(deduplication.entries(), model.stored.len() as u64, "seed {seed}");
    }
}
