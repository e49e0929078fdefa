//! An array before it becomes a C struct: buffers, each with the owner that keeps its memory alive.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// The owner of the memory that buffers point into.
pub(super) type Keeper = Arc<dyn Any + Send + Sync>;

/// The memory that an empty buffer points to: some consumers want neither null nor an address that is not
/// aligned.
#[repr(align(64))]
struct Empty([u8; 64]);
static EMPTY: Empty = Empty([0; 64]);

pub(super) struct Buffer {
    pointer: *const c_void,
    _keeper: Option<Keeper>,
}

// SAFETY: the memory is not changed as long as its keeper lives.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Returns a bitmap of validity that is left out since nothing is NULL.
    pub(super) fn absent() -> Buffer {
        Buffer { pointer: std::ptr::null(), _keeper: None }
    }

    /// Returns a buffer of `values`, which have to live as long as `keeper` does.
    pub(super) fn shared<T>(values: &[T], keeper: &Keeper) -> Buffer {
        if values.is_empty() {
            return Buffer { pointer: EMPTY.0.as_ptr().cast(), _keeper: None };
        }
        Buffer { pointer: values.as_ptr().cast(), _keeper: Some(keeper.clone()) }
    }

    pub(super) fn owned<T: Send + Sync + 'static>(values: Vec<T>) -> Buffer {
        if values.is_empty() {
            return Buffer { pointer: EMPTY.0.as_ptr().cast(), _keeper: None };
        }
        Buffer { pointer: values.as_ptr().cast(), _keeper: Some(Arc::new(values)) }
    }

    pub(super) fn pointer(&self) -> *const c_void {
        self.pointer
    }
}

pub(super) struct Node {
    pub(super) length: usize,
    pub(super) null_count: usize,
    pub(super) buffers: Vec<Buffer>,
    pub(super) children: Vec<Node>,
    pub(super) dictionary: Option<Box<Node>>,
}

impl Node {
    /// Makes a node whose first buffer is the bitmap of validity, which is absent as yet.
    pub(super) fn valid(length: usize, buffers: Vec<Buffer>, children: Vec<Node>) -> Node {
        let buffers = std::iter::once(Buffer::absent()).chain(buffers).collect();
        Node { length, null_count: 0, buffers, children, dictionary: None }
    }

    pub(super) fn of_struct(length: usize, fields: Vec<Node>) -> Node {
        Node::valid(length, Vec::new(), fields)
    }

    /// Makes a node of nothing but NULL: Arrow's null type has no buffers.
    pub(super) fn nulls(length: usize) -> Node {
        Node { length, null_count: length, buffers: Vec::new(), children: Vec::new(), dictionary: None }
    }

    /// Marks NULLs: `nulls[n]` is 1 where row n is NULL, else 0.
    pub(super) fn with_nulls(mut self, nulls: &[u8]) -> Node {
        let count: usize = nulls.iter().map(|null| usize::from(*null)).sum();
        if count > 0 && !self.buffers.is_empty() {
            self.null_count = count;
            self.buffers[0] = Buffer::owned(bitmap(nulls, 1));
        }
        self
    }
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
