//! The longer hold of several gateways in front of one backend, so that together they make hardly more parts
//! than one.
//!
//! Each of `n` gateways sees an `n`th of the inserts. With the hold of a single gateway, a batch of each has
//! an `n`th of the rows, and there are `n` times the parts. With a hold `n` times as long, there would be as
//! many parts as one gateway makes, and every client would wait `n` times as long. Half way between, at
//! `(n + 1) / 2`, the parts stay below twice those of one gateway however many there are (`2n / (n + 1)`: 1.33
//! times for two, 1.6 for four), and four gateways hold for at most half a second where one holds for 200 ms.
//!
//! The time-outs are stretched, so everything that the policies derive from them changes with them: a gateway
//! that gets a quarter of the inserts, four times as far apart, sees the same as a single gateway, only
//! slower. An insert that is alone in its buffer gains nothing by being held and is not held longer: that of
//! a table's only writer, or an insert after a long pause.

use crate::policy::Micros;

/// The factor by which time-outs are longer; at least 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch(f64);

impl Default for Stretch {
    fn default() -> Self {
        Stretch::NONE
    }
}

impl Stretch {
    pub const NONE: Stretch = Stretch(1.0);

    /// Returns the factor for each of `gateways` gateways.
    pub fn among(gateways: usize) -> Stretch {
        Stretch((gateways.max(1) as f64 + 1.0) / 2.0)
    }

    pub fn factor(self) -> f64 {
        self.0
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 <= 1.0
    }

    pub(crate) fn of_millis(self, millis: u64) -> u64 {
        // `as` saturates.
        (millis as f64 * self.0) as u64
    }

    /// Returns the time that stretching adds.
    pub(crate) fn beyond(self, time: Micros) -> Micros {
        time.scale(self.0 - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gateway_holds_as_ever() {
        assert_eq!((Stretch::among(0), Stretch::among(1)), (Stretch::NONE, Stretch::NONE));
        assert!(Stretch::NONE.is_none());
        assert_eq!(Stretch::NONE.beyond(Micros::from_millis(7)), Micros::ZERO);
    }

    #[test]
    fn many_gateways_make_fewer_than_twice_the_parts() {
        for gateways in 1..=64 {
            assert!(gateways as f64 / Stretch::among(gateways).factor() < 2.0);
        }
        assert_eq!(Stretch::among(4).of_millis(200), 500);
        assert_eq!(Stretch::among(4).of_millis(u64::MAX), u64::MAX);
    }
}
