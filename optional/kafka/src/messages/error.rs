//! What can be wrong with a message, and with the wish to read messages into a table.

use std::fmt::{self, Display, Formatter};

/// Why a message became no rows. Nothing of it stays behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    Refused(MessageError),
    /// The schema of this id has to be asked of the registry and given to the plan; then the message can be read.
    MissingSchema(u32),
}

/// A message that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageError {
    /// In ClickHouse's manner, with column and row.
    pub text: String,
    /// Counted from 1, within the message.
    pub row: u64,
    pub column: Option<String>,
    /// ClickHouse would surely refuse it too. Otherwise it may be asked, see
    /// [`MessagePlan::question`](crate::messages::MessagePlan::question).
    pub certain: bool,
}

impl Display for Unread {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Refused(error) => error.fmt(out),
            Unread::MissingSchema(id) => write!(out, "schema {id} has not been fetched from the registry yet"),
        }
    }
}

impl Display for MessageError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Why messages of a format can't be read into a table as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    UnknownFormat(String),
    /// A schema that is missing, or can't be read.
    Schema(String),
    /// `columns` names a column that the table has not.
    UnknownColumn(String),
    /// A column that is computed, and can't be written.
    ColumnKind(String),
    /// A field was named for a column, but rows of this format are told by their order.
    NoNames {
        format: &'static str,
        column: String,
    },
    /// Two columns take one field.
    SharedField {
        field: String,
        columns: [String; 2],
    },
    /// A virtual column that can't be put into a column of this type.
    VirtualType {
        column: String,
        source: String,
        type_name: String,
    },
    /// The format makes one text of a row, or the field's type does not fit: what is wanted instead.
    Columns(String),
    /// A setting, or a column, that can't be read here.
    Unreadable(String),
}

impl Display for PlanError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::UnknownFormat(name) => {
                write!(out, "messages in the format {name} can't be read; use one of {}", crate::messages::format::NAMES.join(", "))
            }
            PlanError::Schema(text) | PlanError::Columns(text) | PlanError::Unreadable(text) => out.write_str(text),
            PlanError::UnknownColumn(column) => {
                write!(out, "there is no column `{column}` in the table, but columns names it")
            }
            PlanError::ColumnKind(column) => {
                write!(out, "column `{column}` is computed by ClickHouse (MATERIALIZED, ALIAS or EPHEMERAL) and can't be written")
            }
            PlanError::NoNames { format, column } => write!(
                out,
                "column `{column}` can't take a field by its name: {format} has no names, its fields are the table's columns in order. \
                 Virtual columns and \"\" can be given"
            ),
            PlanError::SharedField { field, columns: [one, other] } => {
                write!(out, "columns `{one}` and `{other}` take the same field `{field}`; compute one from the other in the table (DEFAULT)")
            }
            PlanError::VirtualType { column, source, type_name } => {
                write!(out, "{source} can't be put into column `{column}` of type {type_name}")
            }
        }
    }
}

impl std::error::Error for PlanError {}
