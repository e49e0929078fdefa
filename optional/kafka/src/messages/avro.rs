//! Messages in Avro: files with their schema, and rows behind the id of a schema.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use windrow_columns::{NotParsedReason, Parsed, SeriesError};
use windrow_interchange::{AvroDecoder, AvroRows};

use crate::messages::fields::FieldError;
use crate::messages::format::Kind;
use crate::messages::plan::MessagePlan;

/// First byte of the registry's framing. The id in four bytes and the row follow.
const MAGIC: u8 = 0;
/// Largest number of schemas that are kept. Ids come from messages, so damaged messages may name any number of them.
const MAX_SCHEMAS: usize = 10_000;

/// Schemas that were fetched from a registry so far. A schema that does not fit the table is remembered with
/// the reason.
#[derive(Default)]
pub(crate) struct Schemas {
    by_id: RwLock<HashMap<u32, Known>>,
}

type Known = Result<Arc<AvroDecoder>, String>;

impl Schemas {
    pub(crate) fn get(&self, id: u32) -> Option<Known> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Returns the schema whose id stands before the row.
    pub(crate) fn of(&self, value: &[u8]) -> Option<Known> {
        self.get(id_of(value)?.0)
    }

    pub(crate) fn add(&self, id: u32, known: Known) {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        if by_id.len() >= MAX_SCHEMAS {
            by_id.clear();
        }
        by_id.insert(id, known);
    }
}

/// Returns the id of the schema, and the row behind it.
fn id_of(value: &[u8]) -> Option<(u32, &[u8])> {
    match value.split_first_chunk::<5>() {
        Some((&[MAGIC, a, b, c, d], row)) => Some((u32::from_be_bytes([a, b, c, d]), row)),
        _ => None,
    }
}

pub(crate) struct AvroMessages<'p> {
    plan: &'p MessagePlan,
    rows: AvroRows<'p>,
    has_ids: bool,
    /// The latest id and its schema: the next message mostly has the same.
    latest: Option<(u32, Arc<AvroDecoder>)>,
}

impl<'p> AvroMessages<'p> {
    pub(crate) fn new(plan: &'p MessagePlan) -> Self {
        let has_ids = matches!(plan.format.kind, Kind::AvroConfluent);
        AvroMessages { plan, rows: AvroRows::new(&plan.fields), has_ids, latest: None }
    }

    pub(crate) fn read(&mut self, value: &[u8]) -> Result<usize, FieldError> {
        if !self.has_ids {
            let is_required = |field: usize| self.plan.is_named_field(field);
            let read = self.rows.read_file(value, &is_required).map_err(FieldError::Schema)?;
            return read.map_err(FieldError::Refused);
        }
        let Some((id, row)) = id_of(value) else {
            let reason = NotParsedReason::Syntax;
            return Err(FieldError::Refused(SeriesError {
                reason,
                row: 0,
                column: None,
                at: Some(0),
                is_refused: true,
            }));
        };
        let decoder = match &self.latest {
            Some((latest, decoder)) if *latest == id => decoder,
            _ => {
                let known = self.plan.schemas.get(id).ok_or(FieldError::MissingSchema(id))?;
                &self.latest.insert((id, known.map_err(FieldError::Schema)?)).1
            }
        };
        self.rows.read_datum(row, decoder).map_err(FieldError::Refused)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    pub(crate) fn take(&mut self) -> Parsed {
        self.rows.take()
    }
}
