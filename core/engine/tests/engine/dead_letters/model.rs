//! Tests with random operations on the store, compared with a list of the dead letters that it should have.

use std::collections::BTreeSet;

use windrow_engine::{
    dead_letters::{Gone, Selection},
    DeadLetterStore,
};

use super::disk::{MemoryDisk, Opened};
use super::{dead_letter, ids, numbers};

const MAX_BYTES: u64 = 20_000;

#[tokio::test]
async fn the_store_holds_what_it_should() {
    for seed in 0..60 {
        println!("seed {seed}");
        live(seed).await;
    }
}

async fn live(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut opened = Opened::on(MemoryDisk::default(), MAX_BYTES);
    let mut expected: BTreeSet<u64> = BTreeSet::new();
    let mut next = 0;
    for _ in 0..random.usize(5..60) {
        match random.u8(..10) {
            0..=4 => {
                let new: Vec<u64> = (0..random.u64(1..6)).map(|more| next + more).collect();
                next += new.len() as u64;
                let table = ["t", "u"][random.usize(..2)];
                let kept =
                    opened.dead_letters.keep(new.iter().map(|&number| dead_letter(table, number)).collect()).await;
                let left = kept.err().map(|error| error.dead_letters).unwrap_or_default();
                assert!(left.is_empty() || opened.dead_letters.amount().bytes >= MAX_BYTES);
                let is_left = |number: &u64| left.iter().any(|dead_letter| dead_letter.journal_id == Some(*number));
                expected.extend(new.iter().filter(|number| !is_left(number)).copied());
            }
            5..=6 => {
                let known = ids(&opened);
                let some: Vec<_> = known.iter().copied().filter(|_| random.u8(..3) == 0).collect();
                let gone: Vec<u64> =
                    expected.iter().copied().zip(&known).filter(|(_, id)| some.contains(id)).map(|(n, _)| n).collect();
                assert_eq!(opened.dead_letters.forget(&some, Gone::Discarded).await, Ok(some.len() as u64));
                expected.retain(|number| !gone.contains(number));
            }
            7 => {
                let table = Some("t".to_owned());
                let of_one = opened.dead_letters.select(&Selection { table, ..Selection::default() });
                assert!(of_one.iter().all(|id| ids(&opened).contains(id)));
            }
            8 => opened = opened.again(MAX_BYTES),
            _ => opened = Opened::on(opened.disk.copy(), MAX_BYTES),
        }
        assert_eq!(numbers(&opened), expected.iter().copied().collect::<Vec<_>>());
        assert_eq!(opened.dead_letters.amount().dead_letters, expected.len() as u64);
    }
    let all = ids(&opened);
    opened.dead_letters.forget(&all, Gone::Discarded).await.unwrap();
    assert_eq!((opened.dead_letters.amount().dead_letters, opened.dead_letters.amount().bytes), (0, 0));
    assert!(numbers(&opened.again(MAX_BYTES)).is_empty());
}
