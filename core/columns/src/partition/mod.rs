//! The number of partitions that the rows of a block would go into.
//!
//! ClickHouse refuses a block of rows for too many partitions, and a batch brings together rows that many
//! inserts were sent apart. So a batch is cut before it is stored, which needs each row's partition: not its
//! name, only which rows share a partition.
//!
//! Common partition keys are understood: columns, the calendar's units, `intDiv`, `%`, and tuples of those. A
//! batch with any other key is stored as it is, and cut when ClickHouse refuses it. A mistake here costs an
//! attempt, too.

mod element;
mod parse;

use crate::block::Block;
use crate::types::DataType;
use element::Element;

/// A partition key: `PARTITION BY` of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// The key as it was given, so that it can be written down.
    expression: String,
    elements: Vec<Element>,
    /// The zone of moments whose column names no time zone.
    server_timezone: String,
}

impl PartitionKey {
    /// Reads a key as `system.tables` shows it. `None` where there is no key, or it isn't understood.
    pub fn parse(expression: &str, server_timezone: &str) -> Option<PartitionKey> {
        let elements = parse::elements(expression)?;
        (!elements.is_empty()).then(|| PartitionKey {
            expression: expression.to_owned(),
            elements,
            server_timezone: server_timezone.to_owned(),
        })
    }

    /// Returns the text that [`PartitionKey::parse`] read the key from.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    pub fn server_timezone(&self) -> &str {
        &self.server_timezone
    }

    /// Returns for every row a number that rows of one partition share. `None` where a column isn't in the
    /// block, or has a type for which the key isn't understood. `names` and `types` are those of the block's
    /// columns, in order.
    pub fn of_rows<N: AsRef<str>>(&self, names: &[N], types: &[DataType], block: &Block) -> Option<Vec<u64>> {
        let mut keys = vec![0; block.rows()];
        for element in &self.elements {
            let at = names.iter().position(|name| name.as_ref() == element.column)?;
            element.mix(types.get(at)?, block.columns.get(at)?, &self.server_timezone, &mut keys)?;
        }
        Some(keys)
    }
}
