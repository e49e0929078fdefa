use std::fmt::{self, Display, Formatter};

use super::Purpose;

/// The reason why a type's text was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeError {
    /// Windrow does not read this type; inserts into such a table are forwarded.
    Unsupported(String),
    /// Values of this type in a result can't be read: the states of aggregate functions, and types that came
    /// after this version.
    Unreadable(String),
    /// The text is no type in ClickHouse's spelling.
    Malformed {
        offset: usize,
    },
    /// A table's type has types nested too deeply; inserts into the table are forwarded.
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
