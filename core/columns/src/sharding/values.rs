//! The values of a part of a sharding key, for every row.

use super::integer::Integer;
use crate::types::DataType;
use crate::view::Strings;

pub(super) enum Values<'a> {
    /// Values of a column, all of `width` bytes.
    Fixed {
        data_type: &'a DataType,
        width: usize,
        data: &'a [u8],
    },
    Strings(Strings<'a>),
    /// Whole numbers that were computed.
    Numbers(Integer, Vec<u64>),
    /// Days since 1970 that were computed, of the type Date.
    Dates(Vec<u64>),
    /// Texts that were computed.
    Texts(Vec<String>),
    /// The same text for every row.
    Text(&'a str),
    Tuple(Vec<Values<'a>>),
}

impl Values<'_> {
    /// Returns the values that ClickHouse's arithmetic takes, and Distributed as a key: whole numbers and
    /// Bool. Distributed accepts others only when a table is made with them as its key, and refuses every
    /// insert.
    pub(super) fn into_numbers(self) -> Option<(Integer, Vec<u64>)> {
        match self {
            Values::Numbers(integer, numbers) => Some((integer, numbers)),
            Values::Fixed { data_type, data, .. } if is_number(data_type) => {
                let integer = Integer::stored(data_type)?;
                Some((integer, integer.decode(data)))
            }
            _ => None,
        }
    }

    /// Returns those values, and any others that are stored as whole numbers.
    pub(super) fn into_stored(self) -> Option<(Integer, Vec<u64>)> {
        match self {
            Values::Fixed { data_type, data, .. } => {
                let integer = Integer::stored(data_type)?;
                Some((integer, integer.decode(data)))
            }
            Values::Dates(days) => Some((Integer::unsigned(2), days)),
            other => other.into_numbers(),
        }
    }
}

fn is_number(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, UInt8 | UInt16 | UInt32 | UInt64 | Int8 | Int16 | Int32 | Int64 | Bool)
}
