use std::sync::Arc;

use crate::sink::Destination;

use crate::journaling::Contexts;
use crate::line::Line;
use crate::table::Table;

/// All that decides which inserts may share a batch. Two equal destinations are one shape.
pub struct Shape {
    pub(crate) destination: Arc<Destination>,
    pub(crate) table: Arc<Table>,
    /// Number that names the shape's lane within its table.
    pub(crate) id: u64,
    pub(crate) contexts: Contexts,
    pub(crate) line: Line,
}

impl Shape {
    pub fn destination(&self) -> &Destination {
        &self.destination
    }
}
