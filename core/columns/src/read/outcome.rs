use std::fmt::{self, Display, Formatter};

use crate::block::Block;
use crate::present::Present;

/// A payload that was read whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The rows, with only the columns in `present`, in the plan's order.
    pub block: Block,
    /// The plan's columns that the block carries. A column with a DEFAULT expression that no row gave is left
    /// out, so that ClickHouse computes it.
    pub present: Present,
}

/// A payload that is left to ClickHouse. That does not make the payload wrong: ClickHouse may well accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotParsed {
    pub reason: NotParsedReason,
    /// The number of rows that were read before: the place is in row `row + 1`.
    pub row: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotParsedReason {
    /// The text between the values is wrong, or a value is cut off.
    Syntax,
    /// The reading of a value is not certain: it is out of range, spelled leniently, or of another type.
    Value,
    /// VALUES has expressions, comments or other SQL.
    Expression,
    /// A key is no column's exact name, where that matters.
    UnknownField,
    DuplicateField,
    /// Some rows give a column with a DEFAULT expression and others leave it out.
    MixedDefaults,
    /// NULL stands where the type has no certain default.
    Null,
    /// A column may not be inserted into, or is of a kind that is computed.
    ColumnKind,
    /// A local time does not exist in its zone, exists twice, or its zone is not known.
    TimeZone,
    /// A setting asks for another way of reading.
    Setting,
    TooDeep,
}

impl NotParsedReason {
    /// Returns the reason as a label of a metric.
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
