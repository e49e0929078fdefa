//! The counting of many values at once, of which only the least and the greatest are known.

/// Counts `count` values that lie evenly between `low` and `high` into buckets with these upper bounds,
/// ascending. Values above the last bound are counted at `bounds.len()`. For messages of one chunk this is as
/// good as counting each, since a chunk is short.
pub(super) fn spread(bounds: &[f64], low: f64, high: f64, count: u64, mut add: impl FnMut(usize, u64)) {
    let first = bounds.partition_point(|bound| *bound < low);
    let width = high - low;
    let mut counted = 0;
    for (bucket, bound) in bounds.iter().enumerate().skip(first) {
        if counted == count {
            return;
        }
        // How many are not above this bound.
        let share = if width > 0.0 { ((bound - low) / width).clamp(0.0, 1.0) } else { 1.0 };
        let up_to = ((count as f64 * share).round() as u64).clamp(counted, count);
        if up_to > counted {
            add(bucket, up_to - counted);
            counted = up_to;
        }
    }
    if counted < count {
        add(bounds.len(), count - counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(low: f64, high: f64, count: u64) -> Vec<u64> {
        let bounds = [1.0, 2.0, 4.0];
        let mut counts = vec![0; 4];
        spread(&bounds, low, high, count, |bucket, more| counts[bucket] += more);
        counts
    }

    #[test]
    fn values_are_spread_evenly_and_none_is_lost() {
        assert_eq!(counts(0.5, 0.5, 7), [7, 0, 0, 0]);
        assert_eq!(counts(1.0, 1.0, 7), [7, 0, 0, 0]);
        assert_eq!(counts(0.0, 4.0, 8), [2, 2, 4, 0]);
        assert_eq!(counts(3.0, 5.0, 10), [0, 0, 5, 5]);
        assert_eq!(counts(9.0, 9.0, 3), [0, 0, 0, 3]);
        assert_eq!(counts(-1.0, 100.0, 0), [0, 0, 0, 0]);
        for count in 0..50 {
            assert_eq!(counts(0.3, 7.7, count).iter().sum::<u64>(), count);
        }
    }
}
