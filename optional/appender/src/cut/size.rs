//! The sizes of runs of rows, found without touching the rows, so that the place to cut at can be searched for.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

/// The unit of sizes, a thousandth of a byte: a boolean has an eighth of a byte, an average fits as it is.
const MILLI: u64 = 1000;

/// Returns about how many bytes a batch has on the wire.
pub fn batch_bytes(batch: &RecordBatch) -> u64 {
    RowSizes::of(batch).bytes(0, batch.num_rows())
}

/// The sizes of the rows of one batch.
pub(super) struct RowSizes {
    /// The size that every row has, whatever its values are, in thousandths of a byte.
    millis_per_row: u64,
    /// The sizes that depend on the row.
    variable: Vec<Variable>,
}

struct Variable {
    offsets: Offsets,
    millis_per_element: u64,
}

enum Offsets {
    Small(arrow_buffer::OffsetBuffer<i32>),
    Large(arrow_buffer::OffsetBuffer<i64>),
}

impl Offsets {
    fn elements(&self, from: usize, to: usize) -> u64 {
        let between = match self {
            Offsets::Small(offsets) => i64::from(offsets[to]) - i64::from(offsets[from]),
            Offsets::Large(offsets) => offsets[to] - offsets[from],
        };
        between.max(0) as u64
    }
}

impl RowSizes {
    pub(super) fn of(batch: &RecordBatch) -> RowSizes {
        let mut sizes = RowSizes { millis_per_row: 0, variable: Vec::new() };
        batch.columns().iter().for_each(|column| sizes.add(column));
        // A batch of no columns, or of NULLs only, has to be cut somewhere too.
        sizes.millis_per_row = sizes.millis_per_row.max(MILLI / 8);
        sizes
    }

    pub(super) fn bytes(&self, from: usize, to: usize) -> u64 {
        let fixed = self.millis_per_row.saturating_mul((to - from) as u64);
        let variable = |column: &Variable| column.offsets.elements(from, to).saturating_mul(column.millis_per_element);
        self.variable.iter().map(variable).fold(fixed, u64::saturating_add) / MILLI
    }

    /// Returns the end of the longest run of rows from `from` on that has at most `most_bytes`.
    pub(super) fn end_within(&self, from: usize, rows: usize, most_bytes: u64) -> usize {
        let (mut fits, mut too_far) = (from, rows + 1);
        while too_far - fits > 1 {
            let middle = fits + (too_far - fits) / 2;
            match self.bytes(from, middle) <= most_bytes {
                true => fits = middle,
                false => too_far = middle,
            }
        }
        fits
    }

    fn add(&mut self, column: &dyn Array) {
        if column.null_count() > 0 {
            self.millis_per_row += MILLI / 8;
        }
        match column.data_type() {
            DataType::Utf8 => self.add_small(column.as_string::<i32>().offsets(), MILLI),
            DataType::LargeUtf8 => self.add_large(column.as_string::<i64>().offsets(), MILLI),
            DataType::Binary => self.add_small(column.as_binary::<i32>().offsets(), MILLI),
            DataType::LargeBinary => self.add_large(column.as_binary::<i64>().offsets(), MILLI),
            DataType::List(_) => {
                let list = column.as_list::<i32>();
                self.add_small(list.offsets(), average_millis(list.values()));
            }
            DataType::LargeList(_) => {
                let list = column.as_list::<i64>();
                self.add_large(list.offsets(), average_millis(list.values()));
            }
            DataType::Map(_, _) => {
                let map = column.as_map();
                self.add_small(map.offsets(), average_millis(map.entries()));
            }
            DataType::Struct(_) => column.as_struct().columns().iter().for_each(|child| self.add(child)),
            _ => self.millis_per_row = self.millis_per_row.saturating_add(average_millis(column)),
        }
    }

    fn add_small(&mut self, offsets: &arrow_buffer::OffsetBuffer<i32>, millis_per_element: u64) {
        self.millis_per_row += 4 * MILLI;
        self.variable.push(Variable { offsets: Offsets::Small(offsets.clone()), millis_per_element });
    }

    fn add_large(&mut self, offsets: &arrow_buffer::OffsetBuffer<i64>, millis_per_element: u64) {
        self.millis_per_row += 8 * MILLI;
        self.variable.push(Variable { offsets: Offsets::Large(offsets.clone()), millis_per_element });
    }
}

/// Returns the average size of an element, for types whose rows can't be weighed one by one without reading
/// them all.
fn average_millis(column: &dyn Array) -> u64 {
    let elements = column.len() as u64;
    let share = |bytes: u64| bytes.saturating_mul(MILLI) / elements.max(1);
    match column.data_type() {
        DataType::Boolean => MILLI / 8,
        DataType::FixedSizeBinary(width) => u64::from(width.unsigned_abs()) * MILLI,
        DataType::Utf8View => share(column.as_string_view().lengths().map(|length| u64::from(length) + 4).sum()),
        DataType::BinaryView => share(column.as_binary_view().lengths().map(|length| u64::from(length) + 4).sum()),
        DataType::Utf8 => share(column.as_string::<i32>().value_data().len() as u64) + 4 * MILLI,
        DataType::LargeUtf8 => share(column.as_string::<i64>().value_data().len() as u64) + 8 * MILLI,
        DataType::Binary => share(column.as_binary::<i32>().value_data().len() as u64) + 4 * MILLI,
        DataType::LargeBinary => share(column.as_binary::<i64>().value_data().len() as u64) + 8 * MILLI,
        DataType::Struct(_) => {
            let children = column.as_struct().columns().iter().map(|child| average_millis(child));
            children.fold(0, u64::saturating_add)
        }
        DataType::FixedSizeList(_, length) => {
            let child = average_millis(column.as_fixed_size_list().values());
            child.saturating_mul(u64::from(length.unsigned_abs()))
        }
        // It is sent as what it stands for.
        DataType::Dictionary(_, _) => average_millis(column.as_any_dictionary().values()),
        other => match other.primitive_width() {
            Some(width) => width as u64 * MILLI,
            None => share(column.get_array_memory_size() as u64),
        },
    }
}
