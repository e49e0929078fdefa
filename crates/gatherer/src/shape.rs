use std::sync::Arc;

use windrow_sink::Destination;

use crate::table::Table;

/// What decides which inserts may share a batch. Two equal destinations are one shape.
pub struct Shape {
    pub(crate) destination: Arc<Destination>,
    pub(crate) table: Arc<Table>,
    /// Names the shape's lane within its table.
    pub(crate) id: u64,
}

impl Shape {
    pub fn destination(&self) -> &Destination {
        &self.destination
    }
}
