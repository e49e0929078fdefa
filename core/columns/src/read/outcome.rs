use std::fmt::{self, Display, Formatter};

use crate::block::Block;
use crate::present::Present;

/// A payload that was read whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Only the columns in `present`, in the plan's order.
    pub block: Block,
    /// Which of the plan's columns the block carries. A column with a DEFAULT expression that no row gave is left
    /// out, so that ClickHouse computes it.
    pub present: Present,
}

/// The payload is left to ClickHouse. That does not make it wrong: ClickHouse may well accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotParsed {
    pub reason: NotParsedReason,
    /// Rows that were read before, so the place is in row `row + 1`.
    pub row: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotParsedReason {
    /// The text between the values, or a value cut off.
    Syntax,
    /// A value whose reading is not certain: out of range, lenient spelling, another type.
    Value,
    /// Expressions, comments and other SQL in VALUES.
    Expression,
    /// A key that is no column's exact name, where that matters.
    UnknownField,
    DuplicateField,
    /// Some rows give a column with a DEFAULT expression and others leave it out.
    MixedDefaults,
    /// NULL where the type has no certain default.
    Null,
    /// A column that may not be inserted into, or of a kind that is computed.
    ColumnKind,
    /// A local time that its zone has not, has twice, or whose zone is not known.
    TimeZone,
    /// A setting asks for another way of reading.
    Setting,
    TooDeep,
}

impl NotParsedReason {
    /// As a label of a metric.
    pub fn as_str(self) -> &'static str {
        match self {
            NotParsedReason::Syntax => "syntax",
            NotParsedReason::Value => "value",
            NotParsedReason::Expression => "expression",
            NotParsedReason::UnknownField => "unknown_field",
            NotParsedReason::DuplicateField => "duplicate_field",
            NotParsedReason::MixedDefaults => "mixed_defaults",
            NotParsedReason::Null => "null",
            NotParsedReason::ColumnKind => "column_kind",
            NotParsedReason::TimeZone => "time_zone",
            NotParsedReason::Setting => "setting",
            NotParsedReason::TooDeep => "too_deep",
        }
    }
}

impl Display for NotParsed {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "row {} is left to ClickHouse ({})", self.row + 1, self.reason.as_str())
    }
}
