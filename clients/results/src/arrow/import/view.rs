//! An array's values where they stand in its buffers.

use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_schema::DataType as ArrowType;

/// A view of an array. Rows are counted from the array's own beginning; its offset says where that is in the
/// buffers.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    array: &'a ArrayData,
    /// The number of rows that the parents' offsets add to a struct's fields.
    shift: usize,
}

impl<'a> View<'a> {
    pub(super) fn of(array: &'a ArrayData) -> View<'a> {
        View { array, shift: 0 }
    }

    pub(super) fn data_type(&self) -> &'a ArrowType {
        self.array.data_type()
    }

    /// Returns the place of a row in the buffers.
    fn place(&self, row: usize) -> usize {
        self.array.offset() + self.shift + row
    }

    fn buffer(&self, buffer: usize) -> &'a [u8] {
        self.array.buffers().get(buffer).map_or(&[], |buffer| buffer.as_slice())
    }

    /// Returns where a list's or text's row begins and ends, by offsets of a width.
    pub(super) fn ends(&self, width: usize, row: usize) -> Option<(usize, usize)> {
        let (start, end) = self.bytes(width, row, 2)?.split_at(width);
        let offset = |bytes: &[u8]| match width {
            4 => i32::from_ne_bytes(bytes.try_into().ok()?).to_usize(),
            _ => i64::from_ne_bytes(bytes.try_into().ok()?).to_usize(),
        };
        Some((offset(start)?, offset(end)?))
    }

    /// Returns one offset more than `rows`, from a row on.
    pub(super) fn offsets<T: ArrowNativeType>(&self, row: usize, rows: usize) -> Option<&'a [T]> {
        let start = self.place(row);
        self.array.buffers().first()?.typed_data::<T>().get(start..=start + rows)
    }

    /// Returns the bytes of `rows` values of a width, from a row on.
    pub(super) fn bytes(&self, width: usize, row: usize, rows: usize) -> Option<&'a [u8]> {
        let start = self.place(row) * width;
        self.buffer(0).get(start..start + rows * width)
    }

    /// Returns bytes of a buffer that offsets or views point into.
    pub(super) fn data(&self, buffer: usize, start: usize, length: usize) -> Option<&'a [u8]> {
        self.buffer(buffer).get(start..start.checked_add(length)?)
    }

    /// Returns the buffer of values, and the place of the first row in it.
    pub(super) fn values(&self) -> (&'a [u8], usize) {
        (self.buffer(0), self.place(0))
    }

    /// Says whether there is a bitmap of validity, and may be a NULL.
    pub(super) fn may_have_nulls(&self) -> bool {
        self.array.null_count() > 0
    }

    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.array.is_valid(self.shift + row)
    }

    /// Returns the child whose rows a list's offsets count, or a dictionary's values.
    pub(super) fn child(&self) -> Option<View<'a>> {
        self.array.child_data().first().map(View::of)
    }

    /// Returns the field of a struct, whose rows are the struct's own.
    pub(super) fn field(&self, index: usize) -> Option<View<'a>> {
        let array = self.array.child_data().get(index)?;
        Some(View { array, shift: self.place(0) })
    }

    /// Returns the values of a dictionary, for which the numbers of the array stand.
    pub(super) fn dictionary(&self) -> Option<View<'a>> {
        matches!(self.data_type(), ArrowType::Dictionary(..)).then(|| self.child()).flatten()
    }

    pub(super) fn length(&self) -> usize {
        self.array.len()
    }

    /// Returns the first of the child's rows that a row of a fixed-size list has, if each row has `length` of
    /// them.
    pub(super) fn fixed_start(&self, row: usize, length: usize) -> usize {
        self.place(row) * length
    }
}
