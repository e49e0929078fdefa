//! The sequence, driven by random operations against a model that is a set of numbers.

use std::collections::BTreeSet;

use super::sequence::{Next, NoEnd, Sequence, Standing, MAX_AHEAD};
use crate::request::MAX_BATCHES;

#[derive(Debug)]
enum Operation {
    Arrive(u64),
    Next { max_weight: u64 },
    Applied,
    End(u64),
}

#[derive(Default)]
struct Model {
    ordered: bool,
    came: BTreeSet<u64>,
    taken: Vec<u64>,
    under_way: usize,
    end: Option<u64>,
}

impl Model {
    fn missing(&self) -> u64 {
        (0..).find(|number| !self.came.contains(number)).unwrap_or(0)
    }

    fn standing(&self, number: u64) -> Standing {
        match number {
            _ if number >= MAX_BATCHES => Standing::TooLarge,
            _ if self.end.is_some_and(|end| number >= end) => Standing::BehindEnd { batches: self.end.unwrap_or(0) },
            _ if self.came.contains(&number) => Standing::Here,
            _ if number > self.missing() + MAX_AHEAD => Standing::TooFarAhead,
            _ => Standing::Missing { lowest: number == self.missing() },
        }
    }

    /// Returns the batches that may be taken now, in order.
    fn ready(&self) -> Vec<u64> {
        match self.ordered {
            true => (self.taken.len() as u64..self.missing()).collect(),
            false => self.came.iter().copied().filter(|number| !self.taken.contains(number)).collect(),
        }
    }

    fn run(&mut self, sequence: &mut Sequence<u64>, operation: Operation) {
        match operation {
            Operation::Arrive(number) => {
                let standing = self.standing(number);
                assert_eq!(sequence.standing(number), standing);
                let kept = sequence.arrived(number, number * 10);
                match standing {
                    Standing::Missing { .. } => {
                        assert_eq!(kept, Ok(()));
                        self.came.insert(number);
                    }
                    other => assert_eq!(kept, Err((other, number * 10)), "it is given back"),
                }
            }
            Operation::Next { max_weight } => {
                // Every batch weighs 3.
                let ready = self.ready();
                let count = (max_weight.div_ceil(3).max(1) as usize).min(ready.len());
                let is_done = self.under_way == 0 && self.end == Some(self.taken.len() as u64);
                let expected = match count {
                    0 if is_done => Next::Finish,
                    0 => Next::Wait,
                    _ => Next::Apply(ready[..count].iter().map(|&number| (number, number * 10)).collect()),
                };
                assert_eq!(sequence.next(max_weight, |_| 3), expected);
                self.taken.extend(&ready[..count]);
                self.under_way += count;
            }
            Operation::Applied => {
                sequence.applied();
                self.under_way = 0;
            }
            Operation::End(batches) => {
                let expected = match (self.end, self.came.last()) {
                    (Some(before), _) if before != batches => Err(NoEnd::Differs { batches: before }),
                    (_, Some(&highest)) if highest >= batches => Err(NoEnd::HasMore { batch: highest }),
                    _ if batches > MAX_BATCHES => Err(NoEnd::TooLarge),
                    _ => Ok(()),
                };
                assert_eq!(sequence.ends_with(batches), expected);
                self.end = self.end.or(expected.is_ok().then_some(batches));
            }
        }
        self.compare(sequence);
    }

    fn compare(&self, sequence: &Sequence<u64>) {
        assert_eq!(sequence.lowest_missing(), self.missing());
        assert_eq!(sequence.is_moving(), self.under_way > 0 || !self.ready().is_empty());
        assert_eq!(sequence.is_whole(), self.end == Some(self.missing()));
        let received: Vec<u64> = sequence.received(99).iter().flat_map(|&[first, last]| first..=last).collect();
        assert!(received.iter().eq(&self.came));
    }
}

fn random_operation(random: &mut fastrand::Rng) -> Operation {
    match random.u32(..20) {
        0 => Operation::End(random.u64(..16)),
        1 => Operation::Arrive(random.choice([MAX_BATCHES - 1, MAX_BATCHES, MAX_AHEAD, u64::MAX / 16]).unwrap_or(0)),
        2..=8 => Operation::Next { max_weight: random.u64(..12) },
        9..=12 => Operation::Applied,
        _ => Operation::Arrive(random.u64(..14)),
    }
}

#[test]
fn the_sequence_is_as_its_model() {
    for seed in 0..4000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let ordered = random.u32(..3) > 0;
        let (mut sequence, mut model) = (Sequence::new(ordered), Model { ordered, ..Model::default() });
        for step in 0..random.usize(..80) {
            let operation = random_operation(&mut random);
            let shown = format!("seed {seed}, step {step}: {operation:?}");
            let run = std::panic::AssertUnwindSafe(|| model.run(&mut sequence, operation));
            assert!(std::panic::catch_unwind(run).is_ok(), "{shown}");
        }
    }
}

#[test]
fn whatever_the_order_everything_is_applied_once_and_in_order() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let batches = random.u64(..30);
        let mut sending: Vec<u64> = (0..batches).chain((0..5).filter(|&number| number < batches)).collect();
        random.shuffle(&mut sending);
        let end_at = random.usize(..=sending.len());
        let (mut sequence, mut applied) = (Sequence::new(true), Vec::new());
        for at in 0..=sending.len() {
            if at == end_at {
                assert_eq!(sequence.ends_with(batches), Ok(()));
            }
            if let Some(&number) = sending.get(at) {
                let _ = sequence.arrived(number, ());
            }
            if let Next::Apply(taken) = sequence.next(u64::MAX, |()| 1) {
                applied.extend(taken.into_iter().map(|(number, ())| number));
                sequence.applied();
            }
        }
        assert!(applied.iter().copied().eq(0..batches), "seed {seed}: {applied:?}");
        assert_eq!(sequence.next(1, |()| 1), Next::Finish, "seed {seed}");
    }
}
