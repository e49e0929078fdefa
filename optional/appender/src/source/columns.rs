//! The check that several files are one source: they must have the same columns, in any order. Those of the
//! first file count.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

use super::SourceError;
use crate::cut::plain_schema;

/// The columns of a file that stand for those of the first one. `None` means that the order is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Order(Option<Vec<usize>>);

impl Order {
    /// Finds the order by the columns' names. Types have to be the same as they are sent.
    pub(super) fn of(path: &Path, first: &Schema, this: &Schema) -> Result<Order, SourceError> {
        let (first, this) = (plain_schema(first)?, plain_schema(this)?);
        let differs = |text: String| SourceError::in_file(path, text);
        let mut order = Vec::with_capacity(first.fields().len());
        for field in first.fields() {
            let name = field.name();
            let found = this.fields().iter().position(|other| other.name() == name);
            let index = found.ok_or_else(|| differs(format!("it has no column '{name}', which the first file has")))?;
            let (expected, found) = (field.data_type(), this.field(index).data_type());
            if expected != found {
                return Err(differs(format!("its column '{name}' is {found}, and {expected} in the first file")));
            }
            order.push(index);
        }
        if let Some(more) = this.fields().iter().find(|field| first.field_with_name(field.name()).is_err()) {
            return Err(differs(format!("the first file has no column '{}'", more.name())));
        }
        if order.iter().copied().eq(0..this.fields().len()) {
            return Ok(Order(None));
        }
        Ok(Order(Some(order)))
    }

    pub(super) fn apply(&self, batch: RecordBatch) -> Result<RecordBatch, SourceError> {
        match &self.0 {
            None => Ok(batch),
            Some(order) => batch.project(order).map_err(SourceError::new),
        }
    }
}

/// Returns the schema of the first file as it holds for all. If there are several, columns are nullable: the
/// first file can't say whether there are NULLs in the others.
pub(super) fn for_all(first: &Schema, files: usize) -> SchemaRef {
    if files < 2 {
        return Arc::new(first.clone());
    }
    let fields: Vec<Field> = first.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new_with_metadata(fields, first.metadata().clone()))
}
