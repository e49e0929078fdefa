//! The class `_core.Encoder`, which writes rows or columns of Python values as a Native block.

use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use windrow_columns::wire::write_varint;

use super::column::Column;
use super::context::{Context, WriteOptions};
use super::interpreter_yield::InterpreterYield;
use super::plan::ColumnPlan;
use super::problem::{Problem, ValueError};
use super::rows::Rows;
use super::source::{Kind, Source};
use super::text::put_sized;
use super::value::Value;

/// The number of rows that are walked column by column at a time: few enough to be still in the cache for the
/// last column.
const CHUNK_ROWS: usize = 256;
/// The size from which on blocks are put together while others have the interpreter; for smaller ones that
/// costs more than it gives.
const ATTACHED_BYTES: usize = 64 << 10;

/// An encoder of blocks for the same columns of a table. Immutable: used by any number of threads.
#[pyclass(frozen, module = "windrow._core")]
pub(super) struct Encoder {
    columns: Vec<ColumnPlan>,
    sent_names: Vec<String>,
    names: Vec<Py<PyString>>,
    options: WriteOptions,
}

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (names, type_names, options=None))]
    fn new(
        py: Python<'_>,
        names: Vec<String>,
        type_names: Vec<String>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<Self> {
        let columns = ColumnPlan::all(py, &names, &type_names)?;
        let sent_names = columns.iter().map(|column| column.column_type.native_name()).collect();
        let names = names.iter().map(|name| PyString::intern(py, name).unbind()).collect();
        let options = options.map_or_else(WriteOptions::default, |options| options.get().clone_ref(py));
        Ok(Encoder { columns, sent_names, names, options })
    }

    /// Encodes rows `start..stop` of a sequence of rows (tuples, lists, other sequences, dicts by name).
    #[pyo3(signature = (data, start, stop, share_gil=false))]
    fn rows<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        start: usize,
        stop: usize,
        share_gil: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut task =
            Task { context: Context::new(py, &self.options)?, interpreter: InterpreterYield::new(share_gil) };
        let mut columns = self.empty_columns();
        if Value::of(data).is_list() || Value::of(data).is_tuple() {
            self.push_rows(&mut task, data, start..stop, 0, &mut columns)?;
        } else {
            let slice = sliced(data, start, stop)?;
            self.push_rows(&mut task, slice.as_any(), 0..stop.saturating_sub(start), start, &mut columns)?;
        }
        self.block(py, stop.saturating_sub(start), &columns)
    }

    /// Encodes values `start..stop` of each column: sequences, NumPy arrays, pandas Series.
    #[pyo3(signature = (columns, start, stop, share_gil=false))]
    fn columns<'py>(
        &self,
        py: Python<'py>,
        columns: &Bound<'py, PyAny>,
        start: usize,
        stop: usize,
        share_gil: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let columns = columns.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        self.encode_columns(py, &columns, start..stop, share_gil)
    }

    /// Encodes rows `start..stop` of a frame of pandas or polars, an Arrow table, or a NumPy array of rows.
    #[pyo3(signature = (frame, start, stop, share_gil=false))]
    fn frame<'py>(
        &self,
        py: Python<'py>,
        frame: &Bound<'py, PyAny>,
        start: usize,
        stop: usize,
        share_gil: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let helper = py.import(intern!(py, "windrow._shared.insert_columns"))?;
        let names = PyList::new(py, self.names.iter().map(|name| name.bind(py)))?;
        let columns = helper.call_method1(intern!(py, "columns"), (frame, names))?;
        if columns.is_none() {
            let reason = format!("a {} is no frame", frame.get_type().name()?);
            return Err(ValueError::new(py, Problem::said(reason)).into_pyerr(py));
        }
        let columns = columns.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        self.encode_columns(py, &columns, start..stop, share_gil)
    }
}

impl Encoder {
    fn empty_columns(&self) -> Vec<Column> {
        self.columns.iter().map(|plan| Column::new(&plan.node)).collect()
    }

    /// Appends rows of a list or tuple whose first one has number `first_number` for the user.
    fn push_rows<'py>(
        &self,
        task: &mut Task<'py>,
        data: &Bound<'py, PyAny>,
        range: Range<usize>,
        first_number: usize,
        columns: &mut [Column],
    ) -> PyResult<()> {
        let py = data.py();
        for first in range.clone().step_by(CHUNK_ROWS) {
            let chunk = first..range.end.min(first + CHUNK_ROWS);
            let rows = Rows::of(data, chunk.clone(), &self.names);
            let rows = rows.map_err(|error| error.counted_from(first_number).into_pyerr(py))?;
            for (index, (plan, column)) in self.columns.iter().zip(&mut *columns).enumerate() {
                push_values(&task.context, plan, chunk.clone(), column, |row| rows.value(row, index))
                    .map_err(|error| error.counted_from(first_number).into_pyerr(py))?;
            }
            task.interpreter.now_and_then(py)?;
        }
        Ok(())
    }

    fn encode_columns<'py>(
        &self,
        py: Python<'py>,
        columns: &[Bound<'py, PyAny>],
        range: Range<usize>,
        share_gil: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if columns.len() != self.columns.len() {
            let reason = format!("{} columns were given, and {} are written", columns.len(), self.columns.len());
            return Err(ValueError::new(py, Problem::said(reason)).into_pyerr(py));
        }
        let mut task =
            Task { context: Context::new(py, &self.options)?, interpreter: InterpreterYield::new(share_gil) };
        let mut made = self.empty_columns();
        for ((plan, column), given) in self.columns.iter().zip(&mut made).zip(columns) {
            task.push_column(plan, given, range.clone(), column)?;
        }
        self.block(py, range.len(), &made)
    }

    fn block<'py>(&self, py: Python<'py>, rows: usize, columns: &[Column]) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = columns.iter().map(|column| column.bytes() + 100).sum::<usize>();
        let mut out = Vec::with_capacity(bytes);
        if bytes < ATTACHED_BYTES {
            self.put_block(rows, columns, &mut out);
        } else {
            py.detach(|| self.put_block(rows, columns, &mut out));
        }
        Ok(PyBytes::new(py, &out))
    }

    fn put_block(&self, rows: usize, columns: &[Column], out: &mut Vec<u8>) {
        write_varint(out, self.columns.len() as u64);
        write_varint(out, rows as u64);
        for ((plan, sent_name), column) in self.columns.iter().zip(&self.sent_names).zip(columns) {
            put_sized(plan.name.as_bytes(), out);
            put_sized(sent_name.as_bytes(), out);
            // A block without rows has no prefixes either.
            if rows > 0 {
                column.put_prefix(&plan.node, out);
                column.put_data(out);
            }
        }
    }
}

/// The state of one call.
struct Task<'py> {
    context: Context<'py>,
    interpreter: InterpreterYield,
}

impl<'py> Task<'py> {
    fn push_column(
        &mut self,
        plan: &ColumnPlan,
        given: &Bound<'py, PyAny>,
        range: Range<usize>,
        column: &mut Column,
    ) -> PyResult<()> {
        let py = self.context.py;
        let raise = |error: Box<ValueError>| error.of_column(&plan.name, &plan.type_name).into_pyerr(py);
        let source = Source::of(given, &range, plan);
        let mut source = source.map_err(|problem| raise(ValueError::new(py, problem)))?;
        if let Kind::Ready(data) = &mut source.kind {
            *column = Column::Ready(std::mem::take(data));
            return Ok(());
        }
        let first = source.first;
        for start in range.clone().step_by(CHUNK_ROWS) {
            let chunk = start..range.end.min(start + CHUNK_ROWS);
            let context = &self.context;
            match &source.kind {
                Kind::Values(items) => {
                    push_values(context, plan, chunk, column, |row| items.get(row - first)).map_err(raise)?;
                }
                Kind::Choices(choices) => {
                    push_values(context, plan, chunk, column, |row| choices.get(row - first)).map_err(raise)?;
                }
                Kind::Numbers(numbers) => {
                    let pushed = numbers.push(&plan.node, column, chunk, first);
                    pushed.map_err(|(row, problem)| raise(blamed_in(given, row, problem)))?;
                }
                Kind::Ready(_) => {}
            }
            self.interpreter.now_and_then(py)?;
        }
        Ok(())
    }
}

/// Makes the error of a value, which is looked up where it came from.
#[cold]
fn blamed_in(given: &Bound<'_, PyAny>, row: usize, problem: Problem) -> Box<ValueError> {
    let error = ValueError::new(given.py(), problem).at_row(row);
    let positions = given.getattr(intern!(given.py(), "iloc")).unwrap_or_else(|_| given.clone());
    match positions.get_item(row) {
        Ok(value) => error.with_value(&value),
        Err(_) => error,
    }
}

/// Appends values of one column. The loop is compiled for each kind of source, so that what doesn't change is
/// decided before it.
#[inline]
fn push_values<'py>(
    context: &Context<'py>,
    plan: &ColumnPlan,
    rows: Range<usize>,
    column: &mut Column,
    get: impl Fn(usize) -> Result<Value<'py>, Problem>,
) -> Result<(), Box<ValueError>> {
    for row in rows {
        let put = match get(row) {
            Ok(value) => column.push(&plan.node, context, value),
            Err(problem) => Err(problem),
        };
        if let Err(problem) = put {
            return Err(blamed(context.py, plan, row, problem, get(row)));
        }
    }
    Ok(())
}

#[cold]
fn blamed<'py>(
    py: Python<'py>,
    plan: &ColumnPlan,
    row: usize,
    problem: Problem,
    value: Result<Value<'py>, Problem>,
) -> Box<ValueError> {
    let error = ValueError::new(py, problem).at_row(row);
    match value {
        Ok(value) => error.of_value(&plan.name, &plan.type_name, &value.held()),
        Err(_) => error.of_column(&plan.name, &plan.type_name),
    }
}

/// Returns `list(data[start:stop])`.
fn sliced<'py>(data: &Bound<'py, PyAny>, start: usize, stop: usize) -> PyResult<Bound<'py, PyList>> {
    let slice = pyo3::types::PySlice::new(data.py(), start as isize, stop as isize, 1);
    let list = PyList::empty(data.py());
    for row in data.get_item(slice)?.try_iter()? {
        list.append(row?)?;
    }
    Ok(list)
}
