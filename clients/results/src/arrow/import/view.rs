//! A view of an array's buffers as they are pointed to.

use std::ffi::c_void;

use crate::arrow::ffi::ArrowArray;

/// A view of an array. Rows are counted from the array's own beginning; `offset` says where that is in the
/// buffers.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    array: &'a ArrowArray,
    /// The number of rows that the parents' offsets add to a struct's fields.
    shift: usize,
}

impl<'a> View<'a> {
    /// Makes a view.
    ///
    /// # Safety
    /// The array is as Arrow's C data interface says, and stays so.
    pub(super) unsafe fn of(array: &'a ArrowArray) -> View<'a> {
        View { array, shift: 0 }
    }

    /// Returns the place of a row in the buffers.
    fn place(&self, row: usize) -> usize {
        self.array.offset.max(0) as usize + self.shift + row
    }

    fn pointer(&self, buffer: usize) -> *const c_void {
        if buffer >= self.array.n_buffers.max(0) as usize {
            return std::ptr::null();
        }
        // SAFETY: there are as many buffers as the array says.
        unsafe { *self.array.buffers.add(buffer) }
    }

    /// Returns `rows` values of `T` in a buffer, from a row on.
    pub(super) fn values<T: Copy>(&self, buffer: usize, row: usize, rows: usize) -> &'a [T] {
        let pointer = self.pointer(buffer).cast::<T>();
        if pointer.is_null() || rows == 0 || !pointer.is_aligned() {
            return &[];
        }
        // SAFETY: buffers of values hold as many as the array has rows behind its offset; rows were counted against its
        // length.
        unsafe { std::slice::from_raw_parts(pointer.add(self.place(row)), rows) }
    }

    /// Returns the bytes of `rows` values of a width, from a row on.
    pub(super) fn bytes(&self, buffer: usize, width: usize, row: usize, rows: usize) -> &'a [u8] {
        let pointer = self.pointer(buffer).cast::<u8>();
        if pointer.is_null() || rows == 0 {
            return &[];
        }
        // SAFETY: as for values; bytes need no alignment.
        unsafe { std::slice::from_raw_parts(pointer.add(self.place(row) * width), rows * width) }
    }

    /// Returns bytes of a buffer that offsets or views point into.
    pub(super) fn data(&self, buffer: usize, start: usize, length: usize) -> &'a [u8] {
        let pointer = self.pointer(buffer).cast::<u8>();
        if pointer.is_null() || length == 0 {
            return &[];
        }
        // SAFETY: whoever made the array says by its offsets that so many bytes are there.
        unsafe { std::slice::from_raw_parts(pointer.add(start), length) }
    }

    /// Returns a bit of a bitmap.
    pub(super) fn bit(&self, buffer: usize, row: usize) -> bool {
        let place = self.place(row);
        self.data_bit(buffer, place)
    }

    fn data_bit(&self, buffer: usize, place: usize) -> bool {
        let pointer = self.pointer(buffer).cast::<u8>();
        // SAFETY: a bitmap has a bit for every row; without one every row is valid.
        pointer.is_null() || unsafe { *pointer.add(place / 8) >> (place % 8) & 1 == 1 }
    }

    /// Says whether there is a bitmap of validity, and may be a NULL.
    pub(super) fn may_have_nulls(&self) -> bool {
        self.array.null_count != 0 && !self.pointer(0).is_null()
    }

    pub(super) fn is_valid(&self, row: usize) -> bool {
        !self.may_have_nulls() || self.bit(0, row)
    }

    /// Returns the child whose rows a list's offsets count.
    pub(super) fn child(&self, index: usize) -> Option<View<'a>> {
        if index >= self.array.n_children.max(0) as usize {
            return None;
        }
        // SAFETY: there are as many children as the array says.
        let array = unsafe { (*self.array.children.add(index)).as_ref() };
        array.map(|array| View { array, shift: 0 })
    }

    /// Returns the field of a struct, whose rows are the struct's own.
    pub(super) fn field(&self, index: usize) -> Option<View<'a>> {
        self.child(index).map(|field| View { shift: self.place(0), ..field })
    }

    pub(super) fn dictionary(&self) -> Option<View<'a>> {
        // SAFETY: a dictionary is null or an array.
        unsafe { self.array.dictionary.as_ref() }.map(|array| View { array, shift: 0 })
    }

    pub(super) fn length(&self) -> usize {
        self.array.length.max(0) as usize
    }

    /// Returns the first of the child's rows that a row of a fixed-size list has, if each row has `length` of
    /// them.
    pub(super) fn fixed_start(&self, row: usize, length: usize) -> usize {
        self.place(row) * length
    }
}
