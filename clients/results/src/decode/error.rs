//! Errors of a result that can't be read, with the column that they are in.

use std::fmt::{self, Display, Formatter};

use windrow_columns::TypeError;

/// A result that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Name and type of the column, unless the problem is before the columns.
    pub column: Option<ColumnName>,
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    pub name: String,
    pub type_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The type has no values that a client could have.
    Type(TypeError),
    /// The server was not asked for the form that is read here.
    Form(&'static str),
    /// The bytes are not what Native has at this place: they are of something else, or damaged.
    Malformed(&'static str),
    /// The values are too large for one block of this process.
    TooLarge(&'static str),
    /// The bytes end inside a block.
    Truncated,
}

impl DecodeError {
    pub(super) fn of_block(problem: Problem) -> Self {
        DecodeError { column: None, problem }
    }
}

impl Display for DecodeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let Some(ColumnName { name, type_name }) = &self.column {
            write!(out, "column {name} of type {}: ", shortened(type_name))?;
        }
        match &self.problem {
            Problem::Type(error) => write!(out, "{error}"),
            Problem::Form(hint) => write!(out, "{hint}"),
            Problem::Malformed(what) => write!(out, "not a block in ClickHouse's Native format: {what}"),
            Problem::TooLarge(what) => {
                write!(out, "{what} of one block are too large: ask for smaller blocks by max_block_size")
            }
            Problem::Truncated => write!(out, "the result ends inside a block"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Shortens the name of a type: an Enum's type may have thousands of names.
fn shortened(type_name: &str) -> String {
    match type_name.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &type_name[..end]),
        None => type_name.to_string(),
    }
}
