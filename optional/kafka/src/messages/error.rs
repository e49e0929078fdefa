//! Errors of a message, and of a plan to read messages into a table.

use std::fmt::{self, Display, Formatter};

/// The cause why a message became no rows. Nothing of the message stays behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    Refused(MessageError),
    /// The schema of this id has to be fetched from the registry and given to the plan. Then the message can be read.
    MissingSchema(u32),
}

/// The error of a message that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageError {
    /// Text in ClickHouse's style, with column and row.
    pub text: String,
    /// Number of the row within the message, counted from 1.
    pub row: u64,
    pub column: Option<String>,
    /// True if ClickHouse would surely refuse the message too. Otherwise ClickHouse may be asked, see
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

/// The cause why messages of a format can't be read into a table as the options ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    UnknownFormat(String),
    /// A schema is missing, or can't be read.
    Schema(String),
    /// The option `columns` names a column that the table does not have.
    UnknownColumn(String),
    /// The column is computed and can't be written.
    ColumnKind(String),
    /// A field was named for a column, but the fields of this format have no names, only an order.
    NoNames {
        format: &'static str,
        column: String,
    },
    /// Two columns take one field.
    SharedField {
        field: String,
        columns: [String; 2],
    },
    /// The virtual column can't be put into a column of this type.
    VirtualType {
        column: String,
        source: String,
        type_name: String,
    },
    /// The format makes one text of a row, or the field's type does not fit. The text says what is needed instead.
    Columns(String),
    /// A setting or a column can't be read here.
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
