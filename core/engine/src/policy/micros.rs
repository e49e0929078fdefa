//! The time that the policies use.

use std::ops::{Add, Sub};

/// Microseconds since a start that the caller chose, or a span of them. Arithmetic saturates: a span that is absurdly
/// long (a setting of `u64::MAX` milliseconds) means "never" and must not wrap to "now".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub u64);

impl Micros {
    pub const ZERO: Micros = Micros(0);
    pub const NEVER: Micros = Micros(u64::MAX);

    pub const fn from_millis(millis: u64) -> Micros {
        Micros(millis.saturating_mul(1_000))
    }

    pub fn scale(self, factor: f64) -> Micros {
        // `as` saturates, and turns NaN into 0.
        Micros((self.0 as f64 * factor) as u64)
    }
}

impl Add for Micros {
    type Output = Micros;

    fn add(self, other: Micros) -> Micros {
        Micros(self.0.saturating_add(other.0))
    }
}

impl Sub for Micros {
    type Output = Micros;

    fn sub(self, other: Micros) -> Micros {
        Micros(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_spans_mean_never() {
        assert_eq!(Micros::from_millis(u64::MAX), Micros::NEVER);
        assert_eq!(Micros(5) + Micros::NEVER, Micros::NEVER);
        assert_eq!(Micros(5) - Micros(7), Micros::ZERO);
        assert_eq!(Micros(5).scale(f64::NAN), Micros::ZERO);
        assert_eq!(Micros(5).scale(f64::INFINITY), Micros::NEVER);
    }
}
