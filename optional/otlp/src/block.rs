//! The rows of a request for one table, in the form that the caller gets.

use windrow_columns::{Block as Columns, DataType};

/// Rows of one table, with the names and types of their columns, which are those of the layout.
pub struct Block<'l> {
    pub names: &'l [String],
    pub types: &'l [DataType],
    pub columns: Columns,
    /// Count of rows that the table can never accept.
    pub rejected: usize,
    /// The reason why the first of these was rejected.
    pub rejected_because: Option<&'static str>,
}

impl Block<'_> {
    pub fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// Writes the rows as one block in the format Native, as ClickHouse's HTTP interface reads it.
    pub fn native(&self) -> Vec<u8> {
        self.columns.encode_native(self.names, self.types)
    }
}
