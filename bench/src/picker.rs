//! Which of several requests an insert is: into which table. A choice costs a division, or for Zipf a random number and
//! a binary search, and allocates nothing: what the generator uses is missing to what it measures.

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

/// One connection's choices.
pub struct Picker<'s> {
    targets: usize,
    spread: &'s Spread,
    conn: u32,
    random: fastrand::Rng,
}

impl<'s> Picker<'s> {
    pub fn new(targets: usize, spread: &'s Spread, conn: u32) -> Self {
        Picker { targets, spread, conn, random: fastrand::Rng::with_seed(u64::from(conn)) }
    }

    pub fn pick(&mut self, seq: u64) -> usize {
        match self.spread {
            Spread::Even { stride } => ((u64::from(self.conn) + seq * stride) % self.targets as u64) as usize,
            Spread::Zipf { cumulative } => {
                let drawn = self.random.f64() * cumulative.last().copied().unwrap_or(0.0);
                cumulative.partition_point(|sum| *sum <= drawn).min(self.targets - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_reaches_every_target_equally_often() {
        for count in [1, 2, 10, 100, 618, 1000] {
            let spread = Spread::even(count);
            let mut picker = Picker::new(count, &spread, 7);
            let mut times = vec![0; count];
            (0..3 * count as u64).for_each(|seq| times[picker.pick(seq)] += 1);
            assert!(times.iter().all(|times| *times == 3), "{count} targets");
        }
    }

    #[test]
    fn zipf_chooses_the_first_as_often_as_its_weight_says_and_never_one_too_many() {
        let spread = Spread::zipf(1000);
        let mut picker = Picker::new(1000, &spread, 3);
        let mut times = vec![0u32; 1000];
        (0..100_000).for_each(|seq| times[picker.pick(seq)] += 1);
        // Of 1 + 1/2 + ... + 1/1000 = 7.485 the first is 13.4 %, the second half of it.
        assert!((13_000..13_800).contains(&times[0]), "{}", times[0]);
        assert!((6_400..7_000).contains(&times[1]), "{}", times[1]);
    }
}
