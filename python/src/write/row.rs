//! One row as RowBinary: the columns' values one after the other.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use windrow_columns::wire::{write_varint, NULL_DISCRIMINATOR};

use super::context::{Context, WriteOptions};
use super::parts::{member, Items, Pairs};
use super::plan::{ColumnPlan, Node, Scalar};
use super::problem::{Problem, ValueError};
use super::qbit::word_of;
use super::rows::plain_row;
use super::scalar::{stand_in, StandIn};
use super::value::Value;

/// The type `String` in ClickHouse's binary encoding of types, which a Dynamic's values begin with.
const STRING_TYPE: u8 = 0x15;

/// An encoder of rows with the same columns. Documents are written as text: the insert needs
/// `input_format_binary_read_json_as_string=1` when [`has_json`](RowEncoder::has_json).
pub struct RowEncoder {
    columns: Vec<ColumnPlan>,
    /// The columns' names, interned for rows that are dicts.
    names: Vec<Py<PyString>>,
    options: WriteOptions,
}

impl RowEncoder {
    /// Makes an encoder for columns, with types as ClickHouse spells them.
    ///
    /// # Errors
    /// Fails with `DataError` for a type that can't be written, and where there are not as many types as names.
    pub fn new(py: Python<'_>, names: &[String], type_names: &[String], options: WriteOptions) -> PyResult<Self> {
        let columns = ColumnPlan::all(py, names, type_names)?;
        let names = names.iter().map(|name| PyString::intern(py, name).unbind()).collect();
        Ok(RowEncoder { columns, names, options })
    }

    pub fn has_json(&self) -> bool {
        self.columns.iter().any(|column| column.column_type.to_string().contains("JSON"))
    }

    /// Appends a row (a tuple, a list, another sequence, or a dict by the columns' names), or leaves `out` as it was.
    ///
    /// May run Python code of the values (`__int__`, `utcoffset`): hold no lock that such code could need, and expect
    /// other threads to run in between.
    ///
    /// # Errors
    /// Fails where the row has not as many values as there are columns, or a value doesn't fit its column.
    #[inline]
    pub fn encode_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Result<(), Box<ValueError>> {
        let start = out.len();
        let context = Context::new(py, &self.options).map_err(|error| ValueError::new(py, error.into()))?;
        let row: Bound<'_, PyAny> = row.clone();
        let put = self.put_row(&context, &row, out);
        if put.is_err() {
            out.truncate(start);
        }
        put
    }

    #[inline]
    fn put_row<'py>(
        &self,
        context: &Context<'py>,
        row: &Bound<'py, PyAny>,
        out: &mut Vec<u8>,
    ) -> Result<(), Box<ValueError>> {
        let py = context.py;
        let row = Value::of(row);
        let is_list = row.is_list();
        if !is_list && !row.is_tuple() {
            let plain = plain_row(row, &self.names).map_err(|problem| ValueError::new(py, problem))?;
            let items = Items::of(Value::of(&plain)).map_err(|problem| ValueError::new(py, problem))?;
            return self.put_members(context, items.len(), |index| items.get(index), out);
        }
        // Safety: the row is a list or a tuple.
        unsafe {
            let length = if is_list { ffi::PyList_Size(row.as_ptr()) } else { ffi::PyTuple_Size(row.as_ptr()) };
            self.put_members(context, length as usize, |index| member(py, row.as_ptr(), is_list, index), out)
        }
    }

    fn put_members<'py>(
        &self,
        context: &Context<'py>,
        length: usize,
        get: impl Fn(usize) -> Result<Value<'py>, Problem>,
        out: &mut Vec<u8>,
    ) -> Result<(), Box<ValueError>> {
        if length != self.columns.len() {
            let reason = format!("the row has {length} values, and {} columns are written", self.columns.len());
            return Err(ValueError::new(context.py, Problem::said(reason)));
        }
        for (index, column) in self.columns.iter().enumerate() {
            let value = get(index).map_err(|problem| ValueError::new(context.py, problem))?;
            if let Err(problem) = column.node.put_row_binary(context, value, out) {
                return Err(self.blame(context.py, column, problem, get(index)));
            }
        }
        Ok(())
    }

    #[cold]
    fn blame(
        &self,
        py: Python<'_>,
        column: &ColumnPlan,
        problem: Problem,
        value: Result<Value<'_>, Problem>,
    ) -> Box<ValueError> {
        let error = ValueError::new(py, problem);
        match value {
            Ok(value) => error.of_value(&column.name, &column.type_name, &value.held()),
            Err(_) => error,
        }
    }
}

impl Node {
    #[inline]
    fn put_row_binary<'py>(&self, context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
        match self {
            Node::Scalar(Scalar::Dynamic) => {
                out.push(STRING_TYPE);
                Scalar::Dynamic.put(context, value, out)
            }
            Node::Scalar(scalar) if value.is_none() && !scalar.takes_none() => Err(Problem::none()),
            Node::Scalar(scalar) => scalar.put(context, value, out),
            Node::Dictionary(scalar) if value.is_none() && !scalar.takes_none() => Err(Problem::none()),
            Node::Dictionary(scalar) => scalar.put(context, value, out),
            other => other.put_parts(context, value, out),
        }
    }

    fn put_parts<'py>(&self, context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
        match self {
            Node::Scalar(_) | Node::Dictionary(_) => return self.put_row_binary(context, value, out),
            Node::Nullable(_) if value.is_none() => out.push(1),
            Node::Nullable(inner) => {
                let start = out.len();
                out.push(0);
                let value = value.held();
                if let Err(problem) = inner.put_row_binary(context, Value::of(&value), out) {
                    let Some(stand_in) = stand_in(Value::of(&value)) else { return Err(problem) };
                    out.truncate(start);
                    match (stand_in, inner.as_ref()) {
                        (StandIn::Default, Node::Scalar(scalar)) => {
                            out.push(0);
                            scalar.put_default(out);
                        }
                        (StandIn::Default, _) => return Err(problem),
                        (StandIn::Null, _) => out.push(1),
                    }
                }
            }
            Node::Array(inner) => {
                let items = Items::of(value)?;
                write_varint(out, items.len() as u64);
                for index in 0..items.len() {
                    inner.put_row_binary(context, items.get(index)?, out)?;
                }
            }
            Node::Map(key, mapped) => {
                let pairs = Pairs::of(value)?;
                write_varint(out, pairs.keys.len() as u64);
                for index in 0..pairs.keys.len() {
                    key.put_row_binary(context, pairs.keys.get(index)?, out)?;
                    mapped.put_row_binary(context, pairs.values.get(index)?, out)?;
                }
            }
            Node::Tuple(tuple) => {
                let items = tuple.elements_of(value)?;
                for (index, element) in tuple.elements.iter().enumerate() {
                    element.put_row_binary(context, items.get(index)?, out)?;
                }
            }
            Node::QBit(shape) => {
                // As an Array.
                let items = Items::of(value)?;
                if items.len() != shape.dimension {
                    return Err(Problem::said(format!("{} numbers, not {}", shape.dimension, items.len())));
                }
                write_varint(out, items.len() as u64);
                for index in 0..items.len() {
                    let word = word_of(items.get(index)?, shape.bits)?;
                    out.extend_from_slice(&word.to_le_bytes()[..shape.bits / 8]);
                }
            }
            Node::Variant(_) if value.is_none() => out.push(NULL_DISCRIMINATOR),
            Node::Variant(variant) => {
                let chosen = variant.choose(context, value)?;
                out.push(chosen.alternative as u8);
                let node = &variant.alternatives[chosen.alternative].node;
                node.put_row_binary(context, Value::of(&chosen.value), out)?;
            }
        }
        Ok(())
    }
}
