//! The choice of an insert's target, which is a table. A choice costs a division, or for Zipf a random number
//! and a binary search, and allocates nothing: the CPU time of the generator is taken from the server that it
//! measures.

pub struct Picker {
    targets: usize,
    /// The step between targets: insert `seq` of connection `conn` goes to `(conn + seq * stride) % targets`.
    /// With a step of 0, target n is chosen in proportion to 1 / (n + 1).
    stride: u64,
    /// The sums of the weights up to each target, for a step of 0.
    cumulative: Vec<f64>,
}

impl Picker {
    pub fn new(targets: usize, stride: u64) -> Self {
        let sums = (1..=targets).scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        });
        Picker { targets, stride, cumulative: sums.collect() }
    }

    pub fn pick(&self, conn: u32, seq: u64, random: &mut fastrand::Rng) -> usize {
        if self.stride > 0 {
            return ((u64::from(conn) + seq * self.stride) % self.targets as u64) as usize;
        }
        let drawn = random.f64() * self.cumulative.last().copied().unwrap_or(0.0);
        self.cumulative.partition_point(|sum| *sum <= drawn).min(self.targets - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_chooses_the_first_as_often_as_its_weight_says_and_never_one_too_many() {
        let (picker, mut random, mut times) = (Picker::new(1000, 0), fastrand::Rng::with_seed(3), vec![0u32; 1000]);
        (0..100_000).for_each(|seq| times[picker.pick(3, seq, &mut random)] += 1);
        // Of 1 + 1/2 + ... + 1/1000 = 7.485 the first is 13.4 %, the second half of it.
        assert!((13_000..13_800).contains(&times[0]), "{}", times[0]);
        assert!((6_400..7_000).contains(&times[1]), "{}", times[1]);
    }
}
