//! The sources of a column's values.

use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::arrow::{columns_of, ArrowColumns};

use super::array::{Number, NumberArray};
use super::numbers::Numbers;
use super::parts::{copied, Items};
use super::plan::{ColumnPlan, Node};
use super::problem::Problem;
use super::value::Value;

/// The values of a column. The first value in it is that of row `first`.
pub(super) struct Source<'py> {
    pub(super) first: usize,
    pub(super) kind: Kind<'py>,
}

pub(super) enum Kind<'py> {
    /// Python objects.
    Values(Items<'py>),
    Numbers(Numbers<'py>),
    Choices(Choices<'py>),
    /// Arrow that was taken over whole: the data of the rows asked for, as they stand in a block.
    Ready(Vec<u8>),
}

/// A categorical column: numbers of values.
pub(super) struct Choices<'py> {
    codes: NumberArray<'py>,
    values: Items<'py>,
    none: Bound<'py, PyAny>,
}

impl<'py> Choices<'py> {
    #[inline]
    pub(super) fn get(&self, index: usize) -> Result<Value<'py>, Problem> {
        match self.codes.get(index) {
            Number::Int(code) if code >= 0 => self.values.get(code as usize),
            // `None` outlives everything.
            _ => Ok(Value::of(&self.none)),
        }
    }
}

impl<'py> Source<'py> {
    /// Takes values `range` of the object that was given for a column.
    pub(super) fn of(given: &Bound<'py, PyAny>, range: &Range<usize>, plan: &ColumnPlan) -> Result<Self, Problem> {
        let value = Value::of(given);
        if value.is_list() || value.is_tuple() {
            return Source { first: 0, kind: Kind::Values(Items::of(value)?) }.checked(range);
        }
        if given.get_type().name()? == "ndarray" {
            return Source::of_array(given, range, &plan.node)?.checked(range);
        }
        if let Some(data) = arrow_data(given, range, plan)? {
            return Ok(Source { first: range.start, kind: Kind::Ready(data) });
        }
        if let Some(parts) = parts_of(given, range)? {
            return Source::of_parts(&parts, range, plan)?.checked(range);
        }
        let slice = pyo3::types::PySlice::new(given.py(), range.start as isize, range.end as isize, 1);
        let items = Items::of(Value::of(&given.get_item(slice)?))?;
        Source { first: range.start, kind: Kind::Values(items) }.checked(range)
    }

    /// Checks that there is a value for every row.
    fn checked(self, range: &Range<usize>) -> Result<Self, Problem> {
        let length = match &self.kind {
            Kind::Values(items) => items.len(),
            Kind::Numbers(numbers) => match &numbers.mask {
                Some(mask) => numbers.values.length.min(mask.length),
                None => numbers.values.length,
            },
            Kind::Ready(_) => return Ok(self),
            Kind::Choices(choices) => choices.codes.length,
        };
        match self.first + length >= range.end {
            true => Ok(self),
            false => Err(Problem::said(format!("{} values for {} rows", self.first + length, range.end))),
        }
    }

    fn of_array(array: &Bound<'py, PyAny>, range: &Range<usize>, node: &Node) -> Result<Self, Problem> {
        if let Some(values) = NumberArray::of(array)? {
            let numbers = Numbers { values, mask: None, is_frame: false };
            if numbers.suit(node) {
                return Ok(Source { first: 0, kind: Kind::Numbers(numbers) });
            }
        }
        let slice = pyo3::types::PySlice::new(array.py(), range.start as isize, range.end as isize, 1);
        let list = copied(&array.get_item(slice)?)?;
        Ok(Source { first: range.start, kind: Kind::Values(Items::of(Value::of(list.as_any()))?) })
    }

    /// Makes a source of the parts that `windrow._shared.insert_columns` returns.
    fn of_parts(parts: &Bound<'py, PyTuple>, range: &Range<usize>, plan: &ColumnPlan) -> Result<Self, Problem> {
        let name: String = parts.get_item(0)?.extract()?;
        let kind = match name.as_str() {
            "numbers" => Kind::of_numbers(parts, &plan.node)?,
            "arrow" => return Source::of_arrow(&parts.get_item(1)?, range, plan),
            "choices" => Kind::of_choices(parts)?,
            _ => Kind::Values(Items::of(Value::of(&parts.get_item(1)?))?),
        };
        Ok(Source { first: range.start, kind })
    }

    /// Makes a source of an Arrow array of pandas', of exactly these rows.
    fn of_arrow(array: &Bound<'py, PyAny>, range: &Range<usize>, plan: &ColumnPlan) -> Result<Self, Problem> {
        if let Some(data) = arrow_data(array, &(0..range.len()), plan)? {
            return Ok(Source { first: range.start, kind: Kind::Ready(data) });
        }
        match parts_of(array, &(0..range.len()))? {
            Some(parts) => Source::of_parts(&parts, range, plan),
            None => Err(Problem::said("an Arrow array that pyarrow doesn't know")),
        }
    }
}

impl<'py> Kind<'py> {
    fn of_numbers(parts: &Bound<'py, PyTuple>, node: &Node) -> Result<Self, Problem> {
        let (array, mask) = (parts.get_item(1)?, parts.get_item(2)?);
        let mask = if mask.is_none() { None } else { Some(mask) };
        if let Some(values) = NumberArray::of(&array)? {
            let mask = mask.as_ref().map(NumberArray::of).transpose()?.flatten();
            let numbers = Numbers { values, mask, is_frame: true };
            if numbers.suit(node) {
                return Ok(Kind::Numbers(numbers));
            }
        }
        let values = copied(&array)?;
        let list = PyList::empty(array.py());
        for (index, value) in values.iter().enumerate() {
            let is_missing = match &mask {
                Some(mask) => mask.get_item(index)?.is_truthy()?,
                None => Value::of(&value).float().is_some_and(f64::is_nan),
            };
            list.append(if is_missing { None } else { Some(value) })?;
        }
        Ok(Kind::Values(Items::of(Value::of(list.as_any()))?))
    }

    fn of_choices(parts: &Bound<'py, PyTuple>) -> Result<Self, Problem> {
        let Some(codes) = NumberArray::of(&parts.get_item(1)?)? else {
            return Err(Problem::said("a categorical column without codes"));
        };
        let values = Items::of(Value::of(&parts.get_item(2)?))?;
        Ok(Kind::Choices(Choices { codes, values, none: parts.py().None().into_bound(parts.py()) }))
    }
}

/// Returns rows of Arrow as they stand in a block. Returns `None` if it is no Arrow, or every value has to be
/// looked at.
fn arrow_data(given: &Bound<'_, PyAny>, range: &Range<usize>, plan: &ColumnPlan) -> Result<Option<Vec<u8>>, Problem> {
    // pandas' own columns follow pandas' rules, which are not Arrow's.
    let py = given.py();
    let module: String = given.get_type().getattr(intern!(py, "__module__"))?.extract()?;
    if module.starts_with("pandas") {
        return Ok(None);
    }
    let made;
    let known = given.cast::<ArrowColumns>();
    let column = match &known {
        Ok(columns) => &columns.get().column,
        Err(_) => match columns_of(given)? {
            Some(column) => {
                made = column;
                &made
            }
            None => return Ok(None),
        },
    };
    if column.rows() < range.end {
        return Err(Problem::said(format!("{} values for {} rows", column.rows(), range.end)));
    }
    let range = range.clone();
    let data = py.detach(|| {
        let mut data = Vec::new();
        column.put(&plan.column_type, range, &mut data).map(|()| data)
    });
    Ok(data.ok())
}

/// Returns the parts that a column of pandas or Arrow is made of; `None` for anything else.
fn parts_of<'py>(given: &Bound<'py, PyAny>, range: &Range<usize>) -> Result<Option<Bound<'py, PyTuple>>, Problem> {
    let py = given.py();
    let helper = py.import(intern!(py, "windrow._shared.insert_columns"))?;
    let parts = helper.call_method1(intern!(py, "parts"), (given, range.start, range.end))?;
    match parts.is_none() {
        true => Ok(None),
        false => Ok(Some(parts.cast_into::<PyTuple>().map_err(PyErr::from)?)),
    }
}
