//! A comparison of columns with the values that ClickHouse says they hold: the same query's answer in
//! RowBinary.

use windrow_columns::DataType;
use windrow_results::{Block, Column};

/// Panics where the rows of the blocks are not those of the answer in RowBinary.
pub fn assert_same_rows(name: &str, blocks: &[Block], row_binary: &[u8]) {
    let mut expected = Expected { name: name.to_string(), rest: row_binary };
    for block in blocks {
        for row in 0..block.rows {
            for (column, column_type) in block.columns.iter().zip(&block.header.types) {
                assert_eq!(column.rows(), block.rows, "{name}");
                expected.value(column, column_type, row);
            }
        }
    }
    assert_eq!(expected.rest, b"", "{name}: more rows than were decoded");
}

struct Expected<'a> {
    name: String,
    rest: &'a [u8],
}

impl Expected<'_> {
    fn value(&mut self, column: &Column, column_type: &DataType, row: usize) {
        match (column, column_type.plain()) {
            (Column::Fixed { width, data }, _) => self.bytes(&data[row * width..(row + 1) * width]),
            (Column::Strings { offsets, data }, _) => {
                self.text(&data[offsets[row] as usize..offsets[row + 1] as usize])
            }
            (Column::Nullable { nulls, inner }, DataType::Nullable(of)) => {
                self.bytes(&nulls[row..=row]);
                if nulls[row] == 0 {
                    self.value(inner, of, row);
                }
            }
            (Column::LowCardinality { indices, dictionary, nullable }, DataType::LowCardinality(of)) => {
                let index = indices[row] as usize;
                match of.as_ref() {
                    DataType::Nullable(of) => {
                        assert!(*nullable);
                        self.bytes(&[u8::from(index == 0)]);
                        if index != 0 {
                            self.value(dictionary, of, index);
                        }
                    }
                    of => self.value(dictionary, of, index),
                }
            }
            (Column::Array { offsets, inner }, DataType::Array(of)) => {
                self.count((offsets[row + 1] - offsets[row]) as usize);
                (offsets[row]..offsets[row + 1]).for_each(|element| self.value(inner, of, element as usize));
            }
            (Column::Map { offsets, keys, values }, DataType::Map(key, value)) => {
                self.count((offsets[row + 1] - offsets[row]) as usize);
                for element in offsets[row] as usize..offsets[row + 1] as usize {
                    self.value(keys, key, element);
                    self.value(values, value, element);
                }
            }
            (Column::Tuple { elements, .. }, DataType::Tuple(of)) => {
                elements.iter().zip(&of.elements).for_each(|(element, of)| self.value(element, of, row));
            }
            (Column::Variant { discriminators, positions, alternatives }, of) => {
                let chosen = alternatives.get(usize::from(discriminators[row]));
                match (chosen, of) {
                    (None, DataType::Variant(_)) => self.bytes(&[255]),
                    (Some(_), DataType::Variant(_)) => self.bytes(&[discriminators[row] as u8]),
                    (None, _) => self.bytes(&[0]),
                    (Some((alternative, _)), _) => self.bytes(&binary_type(alternative)),
                }
                if let Some((alternative, column)) = chosen {
                    self.value(column, alternative, positions[row] as usize);
                }
            }
            (Column::Json { paths, .. }, DataType::Json { .. }) => self.paths(paths, row),
            (Column::Nothing { .. }, _) => {}
            (column, of) => panic!("{}: {of} is no type of {column:?}", self.name),
        }
    }

    /// Compares paths, which come in any order and without those that are NULL.
    fn paths(&mut self, paths: &[(String, DataType, Column)], row: usize) {
        assert!(paths.is_sorted_by_key(|path| &path.0), "{}: {paths:?}", self.name);
        let present = |path: &&(String, DataType, Column)| match &path.2 {
            Column::Variant { discriminators, .. } => discriminators[row] != Column::NULL_DISCRIMINATOR,
            _ => true,
        };
        let mut present: Vec<_> = paths.iter().filter(present).collect();
        self.count(present.len());
        while !present.is_empty() {
            let found = present.iter().position(|(name, ..)| {
                self.rest.get(1..=name.len()) == Some(name.as_bytes()) && usize::from(self.rest[0]) == name.len()
            });
            let found = found.unwrap_or_else(|| panic!("{}: none of {present:?} at {:?}", self.name, self.rest));
            let (name, path_type, column) = present.remove(found);
            self.text(name.as_bytes());
            self.value(column, path_type, row);
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.count(text.len());
        self.bytes(text);
    }

    fn count(&mut self, mut count: usize) {
        while count >= 0x80 {
            self.bytes(&[count as u8 | 0x80]);
            count >>= 7;
        }
        self.bytes(&[count as u8]);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let expected = self.rest.get(..bytes.len());
        assert_eq!(Some(bytes), expected, "{}: {} bytes from the end", self.name, self.rest.len());
        self.rest = &self.rest[bytes.len()..];
    }
}

/// Returns ClickHouse's binary encoding of the types that occur in the golden files' Dynamics.
fn binary_type(of: &DataType) -> Vec<u8> {
    match of {
        DataType::UInt8 => vec![0x01],
        DataType::Int64 => vec![0x0A],
        DataType::String => vec![0x15],
        DataType::Array(inner) => [vec![0x1E], binary_type(inner)].concat(),
        DataType::Nullable(inner) => [vec![0x23], binary_type(inner)].concat(),
        other => panic!("no golden file was known to have {other}"),
    }
}
