//! The rate at which a counter rises.

use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Duration,
    value: f64,
}

/// The rate of a counter in the last while.
#[derive(Debug)]
pub(crate) struct Rate {
    window: Duration,
    readings: VecDeque<Reading>,
}

impl Rate {
    pub fn over(window: Duration) -> Self {
        Self { window, readings: VecDeque::new() }
    }

    /// Adds a reading. Its time is counted from any fixed moment. A counter that fell has begun anew.
    pub fn read(&mut self, at: Duration, value: f64) {
        if self.readings.back().is_some_and(|last| value < last.value) {
            self.readings.clear();
        }
        self.readings.push_back(Reading { at, value });
        // One reading from before the window stays, so that the whole window is covered.
        while self.readings.get(1).is_some_and(|second| second.at + self.window <= at) {
            self.readings.pop_front();
        }
    }

    /// Returns the rate per second, or `None` until two readings have different times.
    pub fn per_second(&self) -> Option<f64> {
        let (first, last) = (self.readings.front()?, self.readings.back()?);
        let seconds = last.at.saturating_sub(first.at).as_secs_f64();
        (seconds > 0.0).then(|| (last.value - first.value) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_recent_past_only() {
        let mut rate = Rate::over(Duration::from_secs(5));
        assert_eq!(rate.per_second(), None);
        for second in 0..=10 {
            rate.read(Duration::from_secs(second), second as f64 * 10.0);
        }
        assert_eq!(rate.per_second(), Some(10.0));
        for second in 11..=15 {
            rate.read(Duration::from_secs(second), 100.0);
        }
        assert_eq!(rate.per_second(), Some(0.0));
        assert!(rate.readings.len() <= 7);
    }

    #[test]
    fn a_counter_that_begins_anew_gives_no_negative_rate() {
        let mut rate = Rate::over(Duration::from_secs(5));
        rate.read(Duration::from_secs(0), 100.0);
        rate.read(Duration::from_secs(1), 3.0);
        assert_eq!(rate.per_second(), None);
        rate.read(Duration::from_secs(2), 5.0);
        assert_eq!(rate.per_second(), Some(2.0));
    }
}
