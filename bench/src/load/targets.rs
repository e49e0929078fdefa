//! Which of several requests an insert is: into which table, as which user, or with which settings.
//!
//! Every request's head is written before the run and shared by all connections. A choice costs a division, or for Zipf
//! a random number and a binary search, and allocates nothing: what the generator uses is missing to what it measures.

use crate::wire::Endpoint;

/// How the inserts of a connection are spread over the targets.
#[derive(Debug, Clone)]
pub enum Spread {
    /// Each target as often as any other: insert `seq` of connection `conn` goes to `(conn + seq * stride) % targets`.
    Even { stride: u64 },
    /// Target n is chosen in proportion to 1 / (n + 1). These are the sums of the weights up to each target.
    Zipf { cumulative: Vec<f64> },
}

impl Spread {
    pub fn even(targets: usize) -> Self {
        Spread::Even { stride: stride_over(targets as u64) }
    }

    pub fn zipf(targets: usize) -> Self {
        let sums = (1..=targets).scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        });
        Spread::Zipf { cumulative: sums.collect() }
    }
}

/// Coprime with `targets`, so that a connection reaches all of them before it comes to one again, and about 0.62 of
/// them, so that connections whose numbers are neighbours don't meet at the same target one insert later.
fn stride_over(targets: u64) -> u64 {
    let from = (targets as f64 * 0.618) as u64;
    (from.max(1)..).find(|stride| are_coprime(*stride, targets)).unwrap_or(1)
}

fn are_coprime(mut one: u64, mut other: u64) -> bool {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one == 1
}

#[derive(Debug)]
pub struct Targets {
    prefixes: Vec<Vec<u8>>,
    spread: Spread,
}

impl Targets {
    /// Of each target the query part of its URL, and as whom it is sent.
    pub fn new(requests: impl IntoIterator<Item = (Endpoint, String)>, spread: Spread) -> Self {
        let prefix = |(endpoint, query): (Endpoint, String)| endpoint.request_prefix(&query).into_bytes();
        Targets { prefixes: requests.into_iter().map(prefix).collect(), spread }
    }
}

/// One connection's choices.
pub struct Picker<'t> {
    targets: &'t Targets,
    conn: u32,
    random: fastrand::Rng,
}

impl<'t> Picker<'t> {
    pub fn new(targets: &'t Targets, conn: u32) -> Self {
        Picker { targets, conn, random: fastrand::Rng::with_seed(u64::from(conn)) }
    }

    /// The target's number and the head of its request.
    pub fn pick(&mut self, seq: u64) -> (u32, &'t [u8]) {
        let prefixes = &self.targets.prefixes;
        let target = match &self.targets.spread {
            Spread::Even { stride } => ((u64::from(self.conn) + seq * stride) % prefixes.len() as u64) as usize,
            Spread::Zipf { cumulative } => {
                let drawn = self.random.f64() * cumulative.last().copied().unwrap_or(0.0);
                cumulative.partition_point(|sum| *sum <= drawn).min(prefixes.len() - 1)
            }
        };
        (target as u32, &prefixes[target])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(count: usize, spread: Spread) -> Targets {
        let request = |n| (Endpoint::without_user("127.0.0.1:1"), format!("n={n}"));
        Targets::new((0..count).map(request), spread)
    }

    #[test]
    fn even_reaches_every_target_equally_often() {
        for count in [1, 2, 10, 100, 618, 1000] {
            let targets = targets(count, Spread::even(count));
            let mut picker = Picker::new(&targets, 7);
            let mut times = vec![0; count];
            for seq in 0..3 * count as u64 {
                let (target, prefix) = picker.pick(seq);
                assert!(prefix.starts_with(format!("POST /?n={target} ").as_bytes()));
                times[target as usize] += 1;
            }
            assert!(times.iter().all(|times| *times == 3), "{count} targets");
        }
    }

    #[test]
    fn zipf_chooses_the_first_as_often_as_its_weight_says_and_never_one_too_many() {
        let targets = targets(1000, Spread::zipf(1000));
        let mut picker = Picker::new(&targets, 3);
        let mut times = vec![0u32; 1000];
        for seq in 0..100_000 {
            times[picker.pick(seq).0 as usize] += 1;
        }
        // Of 1 + 1/2 + ... + 1/1000 = 7.485 the first is 13.4 %, the second half of it.
        assert!((13_000..13_800).contains(&times[0]), "{}", times[0]);
        assert!((6_400..7_000).contains(&times[1]), "{}", times[1]);
    }
}
