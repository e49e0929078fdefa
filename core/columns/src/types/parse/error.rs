use std::fmt::{self, Display, Formatter};

use super::Purpose;

/// Why a type's text was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeError {
    /// A type that Windrow does not read; inserts into such a table are forwarded.
    Unsupported(String),
    /// A type whose values in a result can't be read: the states of aggregate functions, and types that came after this
    /// version.
    Unreadable(String),
    /// Not a type in ClickHouse's spelling.
    Malformed {
        offset: usize,
    },
    /// Of a table; inserts into it are forwarded.
    TooDeep,
    TooDeepToRead,
}

impl Display for TypeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TypeError::Unsupported(name) => write!(out, "type {name} is not read by Windrow; it is left to ClickHouse"),
            TypeError::Unreadable(name) => write!(out, "values of type {name} can't be read: cast it in the query"),
            TypeError::Malformed { offset } => write!(out, "no type in ClickHouse's spelling, at byte {offset}"),
            TypeError::TooDeep => {
                write!(out, "types nested deeper than {} are left to ClickHouse", Purpose::Insert.max_depth())
            }
            TypeError::TooDeepToRead => write!(out, "types nested more than {} deep", Purpose::Result.max_depth()),
        }
    }
}

impl std::error::Error for TypeError {}
