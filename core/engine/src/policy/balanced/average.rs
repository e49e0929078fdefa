//! A mean in which old values fade.

/// The number of values that the mean reaches back over. It is short enough to notice a change within a
/// second at 20 inserts/s.
const MEMORY: f64 = 16.0;

/// A bound that is below any gap or share with a meaning.
const TINY: f64 = 1e-9;

/// A mean of values that are not negative: a plain mean at first, then one in which old values fade.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Average {
    mean: f64,
    count: f64,
}

impl Average {
    pub(super) fn add(&mut self, value: f64) {
        if self.count < MEMORY {
            self.count += 1.0;
        }
        self.mean += (value - self.mean) / self.count;
        // A mean that fades towards zero must not end among the subnormal numbers: each step would take ten times as
        // long.
        if self.mean < TINY {
            self.mean = 0.0;
        }
    }

    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the number of values seen, up to the memory.
    pub(super) fn count(&self) -> f64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_as_a_plain_mean_and_then_forgets() {
        let mut average = Average::default();
        for value in [2.0, 4.0, 9.0] {
            average.add(value);
        }
        assert_eq!((average.mean(), average.count()), (5.0, 3.0));
        for _ in 0..200 {
            average.add(100.0);
        }
        assert!((average.mean() - 100.0).abs() < 0.01, "{}", average.mean());
        assert_eq!(average.count(), MEMORY);
    }
}
