//! A cutter that cuts what Python gives, one thing after the other, into batches.
//!
//! The owner of the rows is asked for them without the interpreter, which it may need itself: a reader may be
//! written in Python. So the lock here is taken only by threads that don't hold the interpreter.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{Field, Schema, SchemaRef};
use pyo3::prelude::*;
use windrow_appender::{
    fingerprint, needs_columns, open_files, plain_schema, Column, Compression, CutOptions, Cutter, Encoder,
    FileOptions, Source, SourceError,
};

use super::cut::AppendCut;
use super::errors::source_error;
use super::import::{source_of, Given};

#[pyclass(frozen, module = "windrow._core")]
pub(super) struct AppendCutter {
    batch_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The cutter and its schema, made when the first rows come; that schema holds for all.
    cutting: Option<Cutting>,
    source: Option<Box<dyn Source>>,
    is_finished: bool,
    is_quick: bool,
}

struct Cutting {
    cutter: Cutter,
    schema: SchemaRef,
    encoder: Arc<Encoder>,
}

#[pymethods]
impl AppendCutter {
    #[new]
    fn new(batch_bytes: u64) -> AppendCutter {
        AppendCutter { batch_bytes, state: Mutex::default() }
    }

    /// Says whether such files can't be read without knowing the table's columns: CSV says nothing of types.
    #[staticmethod]
    fn needs_columns(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<bool> {
        py.detach(|| needs_columns(&paths, None)).map_err(|error| source_error(py, &error))
    }

    /// Returns a text that tells these files from others; see the crate. Reads a little of each.
    #[staticmethod]
    fn fingerprint(py: Python<'_>, paths: Vec<PathBuf>, batch_bytes: u64) -> PyResult<String> {
        py.detach(|| fingerprint(&paths, None, batch_bytes)).map_err(|error| source_error(py, &error))
    }

    /// Opens files, one after the other, in the place of what is pushed. `columns` has names and ClickHouse
    /// types of the table's columns.
    #[pyo3(signature = (paths, columns))]
    fn open_files(&self, py: Python<'_>, paths: Vec<PathBuf>, columns: Option<Vec<(String, String)>>) -> PyResult<()> {
        let column = |(name, data_type)| Column { name, data_type };
        let columns = columns.map(|columns| columns.into_iter().map(column).collect());
        self.take(py, move || {
            let source = open_files(&paths, &FileOptions { columns, ..FileOptions::default() })?;
            Ok(Given { source, is_quick: false })
        })
    }

    /// Takes an object that hands out Arrow, after all that was pushed before has been cut. Its columns must
    /// be those of the first.
    #[pyo3(signature = (given, in_memory=false))]
    fn push(&self, given: &Bound<'_, PyAny>, in_memory: bool) -> PyResult<()> {
        let (py, given) = (given.py(), source_of(given, in_memory)?);
        self.take(py, move || Ok(given))
    }

    /// Says whether all rows are there, in so few pieces that the next batch is cut in some microseconds.
    #[getter]
    fn is_quick(&self, py: Python<'_>) -> bool {
        py.detach(|| self.locked(|state| state.is_quick))
    }

    /// Notes that nothing more will be pushed.
    fn finish(&self, py: Python<'_>) {
        py.detach(|| self.locked(|state| state.is_finished = true));
    }

    /// Returns the next batch. None means that all that was pushed is used up: push more, unless that was all.
    fn cut(&self, py: Python<'_>) -> PyResult<Option<AppendCut>> {
        py.detach(|| self.locked(State::next)).map_err(|error| source_error(py, &error))
    }
}

impl AppendCutter {
    /// Opens a source without the interpreter, and makes it the one that is cut.
    fn take(&self, py: Python<'_>, open: impl FnOnce() -> Result<Given, SourceError> + Send) -> PyResult<()> {
        let outcome = py.detach(|| {
            let given = open()?;
            self.locked(|state| state.begin(given, self.batch_bytes))
        });
        outcome.map_err(|error| source_error(py, &error))
    }

    /// Runs `work` under the lock. A thread that holds the interpreter must not call this.
    fn locked<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn begin(&mut self, given: Given, batch_bytes: u64) -> Result<(), SourceError> {
        let Given { source, is_quick } = given;
        let schema = comparable(&source.schema())?;
        match &self.cutting {
            Some(cutting) if cutting.schema.fields() != schema.fields() => {
                return Err(SourceError::new(difference(&cutting.schema, &schema)));
            }
            Some(_) => {}
            None => {
                let options = CutOptions { batch_bytes, whole_bytes: source.whole_bytes() };
                let encoder = Arc::new(Encoder::new(&schema, Compression::None)?);
                self.cutting = Some(Cutting { cutter: Cutter::new(options), schema, encoder });
            }
        }
        self.source = Some(source);
        self.is_quick = is_quick;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<AppendCut>, SourceError> {
        let Some(cutting) = &mut self.cutting else { return Ok(None) };
        let with_encoder = |cut| AppendCut { cut, encoder: cutting.encoder.clone() };
        loop {
            if let Some(cut) = cutting.cutter.take() {
                return Ok(Some(with_encoder(cut)));
            }
            let Some(source) = &mut self.source else { break };
            match source.next_batch()? {
                Some(batch) => cutting.cutter.push(batch),
                None => self.source = None,
            }
        }
        Ok(if self.is_finished { cutting.cutter.finish().map(with_encoder) } else { None })
    }
}

/// Returns the schema that two things must share to be appended together: names and types as they are sent.
/// Columns are nullable here: one of them can't say for all whether there are NULLs.
fn comparable(schema: &Schema) -> Result<SchemaRef, SourceError> {
    let plain = plain_schema(schema)?;
    let fields: Vec<Field> = plain.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Ok(SchemaRef::new(Schema::new(fields)))
}

fn difference(first: &Schema, other: &Schema) -> String {
    let differs = |(one, two): &(&Arc<Field>, &Arc<Field>)| one != two;
    let what = match first.fields().iter().zip(other.fields()).find(differs) {
        Some((one, two)) => format!(
            "where the first has the column '{}' of type {}, a later one has '{}' of type {}",
            one.name(),
            one.data_type(),
            two.name(),
            two.data_type()
        ),
        None => format!("the first has {} columns, a later one {}", first.fields().len(), other.fields().len()),
    };
    format!("what is appended together must have the same columns: {what}")
}
