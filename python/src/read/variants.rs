//! Readers of `Variant`, `Dynamic` and `JSON`: columns whose values have a type of their own, which only the
//! block names.

use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use windrow_columns::DataType;
use windrow_results::Column;

use super::cells::{too_few, Cells};
use super::reader::{unfit, Reader, Reading};

pub struct VariantReader {
    /// True if values come with the names of their types.
    typed: bool,
    /// Readers of the alternatives of the block that is read.
    alternatives: Vec<Reader>,
}

impl VariantReader {
    pub fn new(typed: bool) -> VariantReader {
        VariantReader { typed, alternatives: Vec::new() }
    }

    pub fn read(
        &mut self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::Variant { discriminators, positions, alternatives } = column else { return Err(unfit()) };
        let py = reading.py;
        if self.alternatives.is_empty() {
            let readers = alternatives.iter().map(|(data_type, _)| Reader::new(py, data_type, &reading.options));
            self.alternatives = readers.collect::<PyResult<Vec<_>>>()?;
        }
        let tags = self.tags(py, alternatives)?;
        let discriminators = discriminators.get(rows.clone()).ok_or_else(unfit)?;
        let positions = positions.get(rows).ok_or_else(unfit)?;
        let mut start = 0;
        for run in discriminators.chunk_by(|one, other| one == other) {
            let end = start + run.len();
            if run[0] == Column::NULL_DISCRIMINATOR {
                run.iter().for_each(|_| out.push(py.None().into_bound(py)));
            } else {
                let at = usize::from(run[0]);
                let (_, inner) = alternatives.get(at).ok_or_else(unfit)?;
                let reader = self.alternatives.get_mut(at).ok_or_else(unfit)?;
                let mut made = Cells::with_capacity(run.len());
                read_positions(reader, reading, inner, &positions[start..end], &mut made)?;
                let mut made = made.take_from(0);
                while let Some(value) = made.next_object(py) {
                    out.push(match &tags {
                        Some(tags) => tags.class.call1((value, &tags.names[at]))?,
                        None => value,
                    });
                }
            }
            start = end;
        }
        Ok(())
    }

    fn tags<'py>(&self, py: Python<'py>, alternatives: &[(DataType, Column)]) -> PyResult<Option<Tags<'py>>> {
        if !self.typed {
            return Ok(None);
        }
        let class = py.import("windrow.datatypes.dynamic")?.getattr(intern!(py, "TypedVariant"))?;
        let names = alternatives.iter().map(|(data_type, _)| PyString::new(py, &data_type.to_string())).collect();
        Ok(Some(Tags { class, names }))
    }

    pub fn start_block(&mut self) {
        self.alternatives.clear();
    }
}

struct Tags<'py> {
    class: Bound<'py, PyAny>,
    names: Vec<Bound<'py, PyString>>,
}

/// Reads rows of an alternative: mostly one after the other.
fn read_positions(
    reader: &mut Reader,
    reading: &mut Reading<'_, '_>,
    column: &Column,
    positions: &[u32],
    out: &mut Cells,
) -> PyResult<()> {
    for run in positions.chunk_by(|one, other| one.checked_add(1) == Some(*other)) {
        let start = run[0] as usize;
        reader.read(reading, column, start..start + run.len(), out)?;
    }
    Ok(())
}

/// A reader of rows as dictionaries in dictionaries.
pub struct JsonReader {
    typed_paths: Vec<String>,
    text: bool,
    /// Readers of the paths of the block that is read.
    paths: Vec<PathReader>,
}

struct PathReader {
    /// True if the type declares the path. Other paths are left out of rows that have no value for them.
    typed: bool,
    keys: Vec<Py<PyString>>,
    reader: Reader,
}

impl JsonReader {
    pub fn new(typed_paths: &[(String, DataType)], text: bool) -> JsonReader {
        let typed_paths = typed_paths.iter().map(|(path, _)| path.clone()).collect();
        JsonReader { typed_paths, text, paths: Vec::new() }
    }

    pub fn read(
        &mut self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::Json { paths, .. } = column else { return Err(unfit()) };
        let py = reading.py;
        if self.paths.is_empty() {
            self.paths = self.path_readers(reading, paths)?;
        }
        let mut columns = Vec::with_capacity(paths.len());
        for (path, (_, _, column)) in self.paths.iter_mut().zip(paths) {
            let mut cells = Cells::with_capacity(rows.len());
            path.reader.read(reading, column, rows.clone(), &mut cells)?;
            columns.push(cells.take_from(0));
            reading.pace.breathe(py)?;
        }
        for _ in rows {
            let object = PyDict::new(py);
            for (path, values) in self.paths.iter().zip(&mut columns) {
                let value = values.next_object(py).ok_or_else(too_few)?;
                if path.typed || !value.is_none() {
                    nest(py, &object, &path.keys, value)?;
                }
            }
            out.push(if self.text { to_json(&object)? } else { object.into_any() });
        }
        Ok(())
    }

    fn path_readers(
        &self,
        reading: &Reading<'_, '_>,
        paths: &[(String, DataType, Column)],
    ) -> PyResult<Vec<PathReader>> {
        let py = reading.py;
        let readers = paths.iter().map(|(path, data_type, _)| {
            let keys = path.split('.').map(|key| PyString::intern(py, &unescape(key)).unbind()).collect();
            let reader = Reader::new(py, data_type, &reading.options)?;
            Ok(PathReader { typed: self.typed_paths.contains(path), keys, reader })
        });
        readers.collect()
    }

    pub fn start_block(&mut self) {
        self.paths.clear();
    }
}

/// Puts a value at its path. A path that leads through another path's value stays written with dots.
fn nest<'py>(
    py: Python<'py>,
    object: &Bound<'py, PyDict>,
    keys: &[Py<PyString>],
    value: Bound<'py, PyAny>,
) -> PyResult<()> {
    let mut object = object.clone();
    for (depth, key) in keys.iter().enumerate() {
        let key = key.bind(py);
        if depth + 1 == keys.len() {
            return object.set_item(key, value);
        }
        object = match object.get_item(key)? {
            None => {
                let child = PyDict::new(py);
                object.set_item(key, &child)?;
                child
            }
            Some(child) => match child.cast_into::<PyDict>() {
                Ok(child) => child,
                Err(_) => {
                    let rest: Vec<String> = keys[depth..].iter().map(|key| key.to_string()).collect();
                    return object.set_item(rest.join("."), value);
                }
            },
        };
    }
    Ok(())
}

/// Returns a key without escapes: a dot within a key is written `%2E`.
fn unescape(key: &str) -> String {
    if !key.contains('%') {
        return key.to_owned();
    }
    let bytes = key.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.filter(|_| bytes[at] == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        text.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(text).unwrap_or_else(|_| key.to_owned())
}

/// Returns JSON text in bytes.
pub fn to_json<'py>(object: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    py.import("windrow._shared.formats")?.call_method1(intern!(py, "to_json"), (object,))
}
