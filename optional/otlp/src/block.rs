//! The rows of a request for one table, as they are handed over.

use windrow_columns::{Block as Columns, DataType};

/// Rows of one table, with the names and types of their columns, which are the layout's.
pub struct Block<'l> {
    pub names: &'l [String],
    pub types: &'l [DataType],
    pub columns: Columns,
    /// Rows that the table can never take.
    pub rejected: usize,
    /// Why the first of these was rejected.
    pub rejected_because: Option<&'static str>,
}

impl Block<'_> {
    pub fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// As one block in the format Native, as the HTTP interface takes it.
    pub fn native(&self) -> Vec<u8> {
        self.columns.encode_native(self.names, self.types)
    }
}
