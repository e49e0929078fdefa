//! A batch as the driver sends it.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use windrow_writer::{BatchId, Outgoing};

#[pyclass(frozen, module = "windrow._core", name = "OutgoingBatch")]
pub(super) struct OutgoingBatch {
    outgoing: Outgoing,
}

impl OutgoingBatch {
    pub(super) fn new(outgoing: Outgoing) -> OutgoingBatch {
        OutgoingBatch { outgoing }
    }

    pub(super) fn batch_id(&self) -> BatchId {
        self.outgoing.id
    }
}

#[pymethods]
impl OutgoingBatch {
    /// Returns the batch's id, which is sent as `insert_deduplication_token`.
    #[getter]
    fn id(&self) -> String {
        self.outgoing.id.to_string()
    }

    #[getter]
    fn rows(&self) -> usize {
        self.outgoing.body.count()
    }

    /// Returns the number of the attempt: 1 for the first.
    #[getter]
    fn attempt(&self) -> u32 {
        self.outgoing.attempt
    }

    #[getter]
    fn database(&self) -> &str {
        &self.outgoing.destination.database
    }

    #[getter]
    fn table(&self) -> &str {
        &self.outgoing.destination.table
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.outgoing.destination.columns.clone()
    }

    #[getter]
    fn type_names(&self) -> Vec<String> {
        self.outgoing.destination.types.clone()
    }

    #[getter]
    fn statement(&self) -> String {
        self.outgoing.destination.insert_statement()
    }

    /// Returns the body of `statement`: names and types of the columns, then the rows.
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (head, rows) = (self.outgoing.destination.header(), self.outgoing.body.rows());
        PyBytes::new_with(py, head.len() + rows.bytes().len(), |out| {
            out[..head.len()].copy_from_slice(&head);
            out[head.len()..].copy_from_slice(rows.bytes());
            Ok(())
        })
    }

    /// Returns the rows alone, in FORMAT RowBinary.
    fn encoded_rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.outgoing.body.rows().bytes())
    }
}
