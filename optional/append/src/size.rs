//! The memory that rows take.
//!
//! Arrays that were read from one message share its memory, and each of them says that all of it is its own.
//! So only the memory that the values take by themselves counts here.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

pub(crate) fn batch_bytes(batch: &RecordBatch) -> u64 {
    batch.columns().iter().fold(0, |sum: u64, column| sum.saturating_add(array_bytes(column)))
}

pub(crate) fn array_bytes(array: &dyn Array) -> u64 {
    match array.data_type() {
        DataType::Utf8View => view_bytes::<StringViewType>(array),
        DataType::BinaryView => view_bytes::<BinaryViewType>(array),
        _ => {
            let data = array.to_data();
            let bytes = data.get_slice_memory_size();
            bytes.unwrap_or_else(|_| data.get_buffer_memory_size()) as u64
        }
    }
}

/// Returns the bytes as if each value stood for itself: views may share theirs.
fn view_bytes<T: ByteViewType>(array: &dyn Array) -> u64 {
    // The lower half of a view's lower half is its length.
    array.as_byte_view::<T>().views().iter().map(|&view| u64::from(view as u32) + 8).sum()
}
