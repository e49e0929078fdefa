//! CSV, TabSeparated, TabSeparatedRaw and Values: rows of fields with a separator between them.

use arrow_array::RecordBatch;
use windrow_columns::DataType;

use crate::results::columns::Columns;
use crate::results::error::ResultError;
use crate::results::text::{csv_string, escaped, write_value, TextContext};
use crate::results::values::{Column, Values};

/// The format of separated rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Csv,
    Tabs,
    TabsRaw,
}

impl Dialect {
    fn separator(self) -> u8 {
        match self {
            Dialect::Csv => b',',
            Dialect::Tabs | Dialect::TabsRaw => b'\t',
        }
    }
}

/// Writes the lines of names and types.
pub(crate) fn begin(out: &mut Vec<u8>, columns: &Columns, dialect: Dialect, names: bool, types: bool) {
    let headings = headings(columns, dialect);
    if names {
        line(out, headings.iter().map(|heading| heading.name.as_str()), dialect);
    }
    if types {
        line(out, headings.iter().map(|heading| heading.type_name.as_str()), dialect);
    }
}

struct Heading {
    name: String,
    type_name: String,
}

fn headings(columns: &Columns, dialect: Dialect) -> Vec<Heading> {
    let mut headings = Vec::new();
    for (name, data_type) in columns.names().iter().zip(columns.types()) {
        add_headings(&mut headings, name.clone(), &data_type, dialect == Dialect::Csv);
    }
    headings
}

/// Adds the headings of a column. In CSV a tuple is as many fields as it has elements.
fn add_headings(headings: &mut Vec<Heading>, name: String, data_type: &DataType, spread: bool) {
    let DataType::Tuple(tuple) = data_type else {
        return headings.push(Heading { name, type_name: data_type.to_string() });
    };
    if !spread || tuple.elements.is_empty() {
        return headings.push(Heading { name, type_name: data_type.to_string() });
    }
    for (at, element) in tuple.elements.iter().enumerate() {
        let part = tuple.names.as_ref().and_then(|names| names.get(at)).cloned();
        let part = part.unwrap_or_else(|| (at + 1).to_string());
        add_headings(headings, format!("{name}.{part}"), element, true);
    }
}

fn line<'n>(out: &mut Vec<u8>, fields: impl Iterator<Item = &'n str>, dialect: Dialect) {
    for (at, field) in fields.enumerate() {
        if at > 0 {
            out.push(dialect.separator());
        }
        match dialect {
            Dialect::Csv => csv_string(out, |out| out.extend_from_slice(field.as_bytes())),
            Dialect::Tabs => escaped(out, field.as_bytes()),
            Dialect::TabsRaw => out.extend_from_slice(field.as_bytes()),
        }
    }
    out.push(b'\n');
}

pub(crate) fn batch(
    out: &mut Vec<u8>,
    columns: &Columns,
    batch: &RecordBatch,
    dialect: Dialect,
) -> Result<(), ResultError> {
    let read = columns.read(batch)?;
    for row in 0..batch.num_rows() {
        for (at, column) in read.iter().enumerate() {
            if at > 0 {
                out.push(dialect.separator());
            }
            match dialect {
                Dialect::Csv => csv_field(out, column, row),
                Dialect::Tabs => write_value(out, column, row, TextContext::Escaped),
                Dialect::TabsRaw => write_value(out, column, row, TextContext::Raw),
            }
        }
        out.push(b'\n');
    }
    Ok(())
}

fn csv_field(out: &mut Vec<u8>, column: &Column, row: usize) {
    match &column.values {
        // A tuple that is NULL has as many fields, all NULL.
        Values::Tuple { elements, .. } if !elements.is_empty() => {
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                match column.is_null(row) && !matches!(element.values, Values::Tuple { .. }) {
                    true => out.extend_from_slice(b"\\N"),
                    false => csv_field(out, element, row),
                }
            }
        }
        _ => write_value(out, column, row, TextContext::Csv),
    }
}

/// Writes rows as `(1,'a'),(2,'b')`. `first` says that no row has been written yet.
pub(crate) fn values(
    out: &mut Vec<u8>,
    columns: &Columns,
    batch: &RecordBatch,
    mut first: bool,
) -> Result<(), ResultError> {
    let read = columns.read(batch)?;
    for row in 0..batch.num_rows() {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        out.push(b'(');
        for (at, column) in read.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_value(out, column, row, TextContext::Quoted);
        }
        out.push(b')');
    }
    Ok(())
}
