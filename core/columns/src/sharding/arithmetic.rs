//! ClickHouse's arithmetic on whole numbers of up to 64 bits, with the types of its results.

use super::integer::Integer;

/// An operation on two operands that both may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Plus,
    Minus,
    Multiply,
    BitAnd,
    BitOr,
    BitXor,
}

/// A division by a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Division {
    Quotient,
    /// The remainder, which has a sign if the dividend has one.
    Remainder,
    PositiveRemainder,
}

/// The largest divisor of signed numbers: beyond it ClickHouse divides them as unsigned ones.
const MAX_DIVISOR: u64 = u16::MAX as u64;

impl Operation {
    pub(super) fn of_function(name: &str) -> Option<Operation> {
        Some(match name {
            "plus" => Operation::Plus,
            "minus" => Operation::Minus,
            "multiply" => Operation::Multiply,
            "bitAnd" => Operation::BitAnd,
            "bitOr" => Operation::BitOr,
            "bitXor" => Operation::BitXor,
            _ => return None,
        })
    }

    pub(super) fn result(self, one: Integer, other: Integer) -> Integer {
        let both = Integer { bytes: one.bytes.max(other.bytes), is_signed: one.is_signed || other.is_signed };
        match self {
            Operation::Plus | Operation::Multiply => both.wider(),
            Operation::Minus => Integer { is_signed: true, ..both.wider() },
            Operation::BitAnd | Operation::BitOr | Operation::BitXor => both,
        }
    }

    pub(super) fn apply(self, one: u64, other: u64) -> u64 {
        match self {
            Operation::Plus => one.wrapping_add(other),
            Operation::Minus => one.wrapping_sub(other),
            Operation::Multiply => one.wrapping_mul(other),
            Operation::BitAnd => one & other,
            Operation::BitOr => one | other,
            Operation::BitXor => one ^ other,
        }
    }
}

impl Division {
    pub(super) fn of_function(name: &str) -> Option<Division> {
        Some(match name {
            "intDiv" => Division::Quotient,
            "modulo" | "moduloOrZero" => Division::Remainder,
            "positiveModulo" => Division::PositiveRemainder,
            _ => return None,
        })
    }

    /// Returns the type of the results, if it is understood how ClickHouse divides such numbers by this one.
    pub(super) fn result(self, dividend: Integer, divisor: u64) -> Option<Integer> {
        let of_divisor = Integer::of_literal(divisor.into());
        match self {
            // ClickHouse brings the divisor into the dividend's type.
            Division::Quotient => (divisor <= dividend.max()).then_some(dividend),
            _ if dividend.is_signed && divisor > MAX_DIVISOR => None,
            Division::Remainder if dividend.is_signed => Some(Integer { is_signed: true, ..of_divisor.wider() }),
            Division::Remainder | Division::PositiveRemainder => Some(of_divisor),
        }
    }

    /// Divides. `divisor` is not 0, and one that `result` understands.
    pub(super) fn apply(self, dividend: Integer, number: u64, divisor: u64) -> u64 {
        let (signed, signed_divisor) = (number as i64, divisor as i64);
        match (self, dividend.is_signed) {
            (Division::Quotient, true) => (signed / signed_divisor) as u64,
            (Division::Quotient, false) => number / divisor,
            (Division::Remainder, true) => (signed % signed_divisor) as u64,
            (Division::PositiveRemainder, true) => signed.rem_euclid(signed_divisor) as u64,
            (Division::Remainder | Division::PositiveRemainder, false) => number % divisor,
        }
    }
}
