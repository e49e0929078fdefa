//! `Dynamic` and `JSON` as text, letter by letter as ClickHouse writes them into Arrow.

use arrow_data::ArrayData;
use arrow_schema::DataType as ArrowType;

use super::buffers::{array, owned};
use super::scalar_text::{write_quoted, ScalarText};
use super::{ArrowError, ArrowOptions};
use crate::column::Column;
use windrow_columns::{DataType, TupleType};

/// Exports a column as texts, one for every row.
pub(super) fn export(column: &Column, of: &DataType, options: &ArrowOptions) -> Result<ArrayData, ArrowError> {
    let mut writer = Writer { out: Vec::new(), scalars: ScalarText::new(&options.timezone) };
    let rows = column.rows();
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0);
    for row in 0..rows {
        writer.value(column, of, row)?;
        offsets.push(i32::try_from(writer.out.len()).map_err(|_| too_large())?);
    }
    Ok(array(&ArrowType::Utf8, rows, vec![owned(offsets), owned(writer.out)], Vec::new()))
}

fn too_large() -> ArrowError {
    ArrowError::NotSupported(
        "the texts of one block are too large for Arrow: ask for smaller blocks by max_block_size".to_string(),
    )
}

struct Writer {
    out: Vec<u8>,
    scalars: ScalarText,
}

impl Writer {
    fn value(&mut self, column: &Column, of: &DataType, row: usize) -> Result<(), ArrowError> {
        match (column, of.plain()) {
            (Column::Fixed { width, data }, scalar) => {
                self.scalars.write_fixed(&mut self.out, scalar, &data[row * width..(row + 1) * width])
            }
            (Column::Strings { offsets, data }, _) => {
                write_quoted(&mut self.out, &data[offsets[row] as usize..offsets[row + 1] as usize])
            }
            (Column::Nullable { nulls, .. }, DataType::Nullable(_)) if nulls[row] != 0 => self.null(),
            (Column::Nullable { inner, .. }, DataType::Nullable(of)) => self.value(inner, of, row)?,
            (Column::LowCardinality { indices, dictionary, nullable }, DataType::LowCardinality(of)) => {
                match (indices[row], of.as_ref()) {
                    (0, _) if *nullable => self.null(),
                    (index, DataType::Nullable(of)) => self.value(dictionary, of, index as usize)?,
                    (index, of) => self.value(dictionary, of, index as usize)?,
                }
            }
            (Column::Array { offsets, inner }, DataType::Array(of)) => {
                self.list(offsets[row] as usize..offsets[row + 1] as usize, |writer, element| {
                    writer.value(inner, of, element)
                })?;
            }
            (Column::Map { offsets, keys, values }, DataType::Map(key, value)) => {
                self.open(b'{');
                for (count, element) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
                    self.separate(count);
                    self.key(keys, key, element)?;
                    self.value(values, value, element)?;
                }
                self.out.push(b'}');
            }
            (Column::Tuple { elements, .. }, DataType::Tuple(TupleType { names: Some(names), elements: types })) => {
                self.open(b'{');
                for (count, ((element, of), name)) in elements.iter().zip(types).zip(names).enumerate() {
                    self.separate(count);
                    self.name(name.as_bytes());
                    self.value(element, of, row)?;
                }
                self.out.push(b'}');
            }
            (Column::Tuple { elements, .. }, DataType::Tuple(TupleType { elements: types, .. })) => {
                self.list(0..elements.len(), |writer, element| writer.value(&elements[element], &types[element], row))?;
            }
            (Column::Variant { discriminators, positions, alternatives }, _) => {
                match alternatives.get(usize::from(discriminators[row])) {
                    Some((of, column)) => self.value(column, of, positions[row] as usize)?,
                    None => self.null(),
                }
            }
            (Column::Json { paths, .. }, DataType::Json { typed_paths }) => self.object(paths, typed_paths, row)?,
            (Column::Nothing { .. }, _) => self.null(),
            _ => return Err(ArrowError::NotSupported(format!("values of type {of} as JSON"))),
        }
        Ok(())
    }

    fn null(&mut self) {
        self.out.extend(b"null");
    }

    fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
    }

    fn separate(&mut self, before: usize) {
        if before > 0 {
            self.out.push(b',');
        }
    }

    fn name(&mut self, name: &[u8]) {
        write_quoted(&mut self.out, name);
        self.out.push(b':');
    }

    fn list(
        &mut self,
        elements: std::ops::Range<usize>,
        mut value: impl FnMut(&mut Self, usize) -> Result<(), ArrowError>,
    ) -> Result<(), ArrowError> {
        self.open(b'[');
        for (count, element) in elements.enumerate() {
            self.separate(count);
            value(self, element)?;
        }
        self.out.push(b']');
        Ok(())
    }

    /// Writes the key of a map. A name in JSON is a text, whatever the key is.
    fn key(&mut self, keys: &Column, of: &DataType, row: usize) -> Result<(), ArrowError> {
        let start = self.out.len();
        self.value(keys, of, row)?;
        if self.out.get(start) != Some(&b'"') {
            self.out.insert(start, b'"');
            self.out.push(b'"');
        }
        self.out.push(b':');
        Ok(())
    }

    /// Writes the object of a row: declared paths always, others unless they are NULL. Paths that begin with
    /// the same name stand together, since they are sorted.
    fn object(
        &mut self,
        paths: &[(String, DataType, Column)],
        typed: &[(String, DataType)],
        row: usize,
    ) -> Result<(), ArrowError> {
        let mut open: Vec<&str> = Vec::new();
        self.open(b'{');
        let mut first = true;
        for (path, of, column) in paths {
            let declared = typed.binary_search_by(|(typed, _)| typed.as_str().cmp(path)).is_ok();
            if !declared && is_null(column, row) {
                continue;
            }
            let mut names: Vec<&str> = path.split('.').collect();
            let last = names.pop().unwrap_or_default();
            let common = open.iter().zip(&names).take_while(|(left, right)| left == right).count();
            for _ in common..open.len() {
                self.out.push(b'}');
            }
            open.truncate(common);
            self.separate(usize::from(!first));
            for name in &names[common..] {
                self.name(name.as_bytes());
                self.open(b'{');
                open.push(name);
            }
            self.name(last.as_bytes());
            self.value(column, of, row)?;
            first = false;
        }
        for _ in 0..=open.len() {
            self.out.push(b'}');
        }
        Ok(())
    }
}

fn is_null(column: &Column, row: usize) -> bool {
    match column {
        Column::Variant { discriminators, .. } => discriminators[row] == Column::NULL_DISCRIMINATOR,
        Column::Nullable { nulls, .. } => nulls[row] != 0,
        _ => false,
    }
}
