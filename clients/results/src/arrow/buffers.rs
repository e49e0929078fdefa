//! Buffers, each with the owner that keeps its memory alive, and arrays that are made of them.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::alloc::Allocation;
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType as ArrowType;

/// The owner of the memory that buffers point into.
pub(super) type Keeper = Arc<dyn Allocation>;

/// Returns a buffer of `values`, which have to live as long as `keeper` does.
pub(super) fn shared<T>(values: &[T], keeper: &Keeper) -> Buffer {
    if values.is_empty() {
        return empty();
    }
    let bytes = std::mem::size_of_val(values);
    // SAFETY: the values are the keeper's, and nobody changes them as long as it lives.
    unsafe { Buffer::from_custom_allocation(NonNull::from(values).cast(), bytes, keeper.clone()) }
}

pub(super) fn owned<T: ArrowNativeType>(values: Vec<T>) -> Buffer {
    if values.is_empty() {
        return empty();
    }
    Buffer::from_vec(values)
}

/// Returns a buffer of nothing: some consumers want neither null nor an address that is not aligned.
fn empty() -> Buffer {
    MutableBuffer::new(0).into()
}

/// Makes an array without NULLs.
pub(super) fn array(of: &ArrowType, rows: usize, buffers: Vec<Buffer>, children: Vec<ArrayData>) -> ArrayData {
    let made = ArrayData::builder(of.clone()).len(rows).buffers(buffers).child_data(children).align_buffers(true);
    // SAFETY: the buffers have as many values as the type needs for so many rows. Texts may be other than UTF-8, as
    // in the Arrow that ClickHouse makes: nothing here reads them.
    unsafe { made.build_unchecked() }
}

/// Marks NULLs: `nulls[n]` is 1 where row n is NULL, else 0.
pub(super) fn with_nulls(array: ArrayData, nulls: &[u8]) -> ArrayData {
    let count: usize = nulls.iter().map(|null| usize::from(*null)).sum();
    if count == 0 || matches!(array.data_type(), ArrowType::Null | ArrowType::Union(..)) {
        return array;
    }
    let valid = BooleanBuffer::new(owned(bitmap(nulls, 1)), 0, nulls.len());
    // SAFETY: so many bits are not set. The array itself is as valid as it was.
    unsafe { array.into_builder().nulls(Some(NullBuffer::new_unchecked(valid, count))).build_unchecked() }
}

/// Returns a bit for every byte: whether it is 0, if `flip` is 1; whether it is 1, if `flip` is 0. All bytes
/// are 0 or 1.
pub(super) fn bitmap(bytes: &[u8], flip: u8) -> Vec<u8> {
    // Brings the lowest bits of eight bytes together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let flip = u64::from_le_bytes([flip; 8]);
    let packed = |eight: [u8; 8]| ((u64::from_le_bytes(eight) ^ flip).wrapping_mul(GATHER) >> 56) as u8;
    let eights = bytes.chunks_exact(8);
    let rest = eights.remainder();
    let mut bits: Vec<u8> = eights.map(|eight| packed(eight.try_into().expect("chunks of 8 bytes"))).collect();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        bits.push(packed(last));
    }
    bits
}
