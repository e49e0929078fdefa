//! Columns that grow value by value, and can be taken back to an earlier row.

use windrow_columns::{ColumnData, ColumnSpec, DataType, StringsEnd};

pub(crate) struct GrowingColumns {
    types: Vec<DataType>,
    pub(crate) data: Vec<ColumnData>,
    /// Count of rows at which the ends of strings were noted.
    noted_rows: usize,
    noted: Vec<StringsEnd>,
}

/// Rows between two notes. Noting costs more than a short row, and taking back walks these rows.
const ROWS_BETWEEN_NOTES: usize = 64;

impl GrowingColumns {
    pub(crate) fn new(columns: &[ColumnSpec]) -> Self {
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type.clone()).collect();
        let data = types.iter().map(ColumnData::empty).collect();
        let mut growing = GrowingColumns { types, data, noted_rows: 0, noted: Vec::new() };
        growing.note(0);
        growing
    }

    /// Notes the ends of strings, if enough rows have come since the last note. It is called between rows;
    /// `rows` is their count.
    #[inline]
    pub(crate) fn pass(&mut self, rows: usize) {
        if rows >= self.noted_rows + ROWS_BETWEEN_NOTES {
            self.note(rows);
        }
    }

    fn note(&mut self, rows: usize) {
        self.noted_rows = rows;
        self.noted.clear();
        self.data.iter().for_each(|data| note_strings(data, &mut self.noted));
    }

    /// Drops all rows but the first ones, and the begun part of another row.
    #[cold]
    pub(crate) fn truncate(&mut self, rows: usize) {
        let mut noted = self.noted.iter();
        for (data, data_type) in self.data.iter_mut().zip(&self.types) {
            truncate(data, data_type, rows, &mut noted);
        }
    }

    /// Returns the values of a column inside `depth` Arrays.
    #[inline]
    pub(crate) fn at(&mut self, column: usize, depth: usize) -> &mut ColumnData {
        inner_of(&mut self.data[column], depth)
    }

    /// Adds a zero to a column, inside `depth` Arrays.
    pub(crate) fn push_zero(&mut self, column: usize, depth: usize) {
        if let Some(wanted) = element_of(&self.types[column], depth) {
            push_zero(inner_of(&mut self.data[column], depth), wanted);
        }
    }

    /// Ends an Array whose elements have been added.
    pub(crate) fn end_array(&mut self, column: usize, depth: usize, elements: u64) {
        if let ColumnData::Array { offsets, .. } = self.at(column, depth) {
            offsets.push(offsets.last().copied().unwrap_or(0) + elements);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.data.iter().map(bytes).sum()
    }

    /// Returns all columns, and goes on without rows.
    pub(crate) fn take(&mut self) -> Vec<ColumnData> {
        let empty = self.types.iter().map(ColumnData::empty).collect();
        let taken = std::mem::replace(&mut self.data, empty);
        self.note(0);
        taken
    }
}

#[inline]
fn inner_of(mut data: &mut ColumnData, depth: usize) -> &mut ColumnData {
    for _ in 0..depth {
        match data {
            ColumnData::Array { inner, .. } => data = inner,
            // The steps were made for the columns' types.
            other => return other,
        }
    }
    data
}

/// Returns the type inside `depth` Arrays.
pub(crate) fn element_of(data_type: &DataType, depth: usize) -> Option<&DataType> {
    match (depth, data_type.plain()) {
        (0, _) => Some(data_type),
        (_, DataType::Array(inner)) => element_of(inner, depth - 1),
        _ => None,
    }
}

/// Returns the type by which values are stored: without other names and dictionaries.
pub(crate) fn layout_of(data_type: &DataType) -> &DataType {
    match data_type.plain() {
        DataType::LowCardinality(inner) => layout_of(inner),
        plain => plain,
    }
}

/// Adds the zero that a column gets when it is left out.
pub(crate) fn push_zero(data: &mut ColumnData, data_type: &DataType) {
    match (data, layout_of(data_type)) {
        (ColumnData::Fixed(data), DataType::Enum8(values) | DataType::Enum16(values)) => {
            let lowest = values.first().map_or(0, |entry| entry.value);
            data.extend_from_slice(&lowest.to_le_bytes()[..data_type.fixed_width().unwrap_or(2)]);
        }
        (ColumnData::Fixed(data), data_type) => data.resize(data.len() + data_type.fixed_width().unwrap_or(1), 0),
        (ColumnData::Strings(texts), _) => texts.push(b""),
        (ColumnData::Nullable { nulls, inner }, DataType::Nullable(inner_type)) => {
            nulls.push(1);
            push_zero(inner, inner_type);
        }
        (ColumnData::Array { offsets, .. }, _) => offsets.push(offsets.last().copied().unwrap_or(0)),
        (ColumnData::Tuple(elements), DataType::Tuple(tuple)) => {
            elements.iter_mut().zip(&tuple.elements).for_each(|(element, data_type)| push_zero(element, data_type));
        }
        (ColumnData::Nullable { .. } | ColumnData::Tuple(_), _) => {}
    }
}

fn note_strings(data: &ColumnData, ends: &mut Vec<StringsEnd>) {
    match data {
        ColumnData::Fixed(_) => {}
        ColumnData::Strings(texts) => ends.push(texts.end()),
        ColumnData::Nullable { inner, .. } | ColumnData::Array { inner, .. } => note_strings(inner, ends),
        ColumnData::Tuple(elements) => elements.iter().for_each(|element| note_strings(element, ends)),
    }
}

fn truncate(data: &mut ColumnData, data_type: &DataType, rows: usize, noted: &mut std::slice::Iter<'_, StringsEnd>) {
    let data_type = layout_of(data_type);
    match (data, data_type) {
        (ColumnData::Fixed(data), data_type) => data.truncate(rows * data_type.fixed_width().unwrap_or(1)),
        (ColumnData::Strings(texts), _) => texts.truncate(rows, *noted.next().expect("all strings were noted")),
        (ColumnData::Nullable { nulls, inner }, DataType::Nullable(inner_type)) => {
            nulls.truncate(rows);
            truncate(inner, inner_type, rows, noted);
        }
        (ColumnData::Array { offsets, inner }, data_type) => {
            offsets.truncate(rows);
            let inner_rows = offsets.last().map_or(0, |end| *end as usize);
            match (data_type, &mut **inner) {
                (DataType::Map(key, value), ColumnData::Tuple(pair)) => {
                    for (data, data_type) in pair.iter_mut().zip([key, value]) {
                        truncate(data, data_type, inner_rows, noted);
                    }
                }
                (DataType::Array(inner_type), inner) => truncate(inner, inner_type, inner_rows, noted),
                _ => {}
            }
        }
        (ColumnData::Tuple(elements), DataType::Tuple(tuple)) => {
            for (element, data_type) in elements.iter_mut().zip(&tuple.elements) {
                truncate(element, data_type, rows, noted);
            }
        }
        (ColumnData::Nullable { .. } | ColumnData::Tuple(_), _) => {}
    }
}

fn bytes(data: &ColumnData) -> usize {
    match data {
        ColumnData::Fixed(data) => data.len(),
        ColumnData::Strings(texts) => texts.bytes(),
        ColumnData::Nullable { nulls, inner } => nulls.len() + bytes(inner),
        ColumnData::Array { offsets, inner } => 8 * offsets.len() + bytes(inner),
        ColumnData::Tuple(elements) => elements.iter().map(bytes).sum(),
    }
}
