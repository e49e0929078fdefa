//! The structs of Arrow's C data interface, and who frees what.
//!
//! Each struct that is handed out owns its memory through `private_data`; whoever ends up with the struct
//! calls `release` once. A consumer may move a child out of its parent, which it marks by setting the child's
//! `release` to null; so every child owns all of its memory itself.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr;

use super::node::{Buffer, Node};
use super::schema::ArrowField;
use super::ArrowError;

const NULLABLE: i64 = 2;

#[repr(C)]
pub struct ArrowSchema {
    pub(super) format: *const c_char,
    pub(super) name: *const c_char,
    pub(super) metadata: *const c_char,
    pub(super) flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut ArrowSchema,
    pub(super) dictionary: *mut ArrowSchema,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(super) private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    pub(super) children: *mut *mut ArrowArray,
    pub(super) dictionary: *mut ArrowArray,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(super) private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArrayStream {
    pub(super) get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(super) get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(super) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(super) private_data: *mut c_void,
}

// SAFETY: what they point to is theirs alone, or shared and never changed, and may be freed by any thread.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArray {}
// SAFETY: whoever shares one only reads it.
unsafe impl Sync for ArrowArray {}
// SAFETY: as above; the source of the arrays is Send.
unsafe impl Send for ArrowArrayStream {}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `release` is set as long as the struct has not been released or moved from.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as for a schema.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as for a schema.
            unsafe { release(self) }
        }
    }
}

/// The memory that a schema points to.
struct SchemaParts {
    _format: CString,
    _name: CString,
    _metadata: Vec<u8>,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

impl ArrowField {
    pub(super) fn to_ffi(&self) -> ArrowSchema {
        let boxed = |field: &ArrowField| Box::into_raw(Box::new(field.to_ffi()));
        let mut parts = Box::new(SchemaParts {
            _format: c_string(&self.format),
            _name: c_string(&self.name),
            _metadata: encoded_metadata(&self.metadata),
            children: self.children.iter().map(boxed).collect(),
            dictionary: self.dictionary.as_deref().map_or(ptr::null_mut(), boxed),
        });
        ArrowSchema {
            format: parts._format.as_ptr(),
            name: parts._name.as_ptr(),
            metadata: if self.metadata.is_empty() { ptr::null() } else { parts._metadata.as_ptr().cast() },
            flags: if self.nullable { NULLABLE } else { 0 },
            n_children: parts.children.len() as i64,
            children: parts.children.as_mut_ptr(),
            dictionary: parts.dictionary,
            release: Some(release_schema),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

/// Makes a C string. A name of a column may have a zero byte, at which the text would end in C; it is
/// replaced.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{2400}")).unwrap_or_default()
}

fn encoded_metadata(metadata: &[(&'static str, &'static str)]) -> Vec<u8> {
    let mut encoded = (metadata.len() as i32).to_ne_bytes().to_vec();
    for text in metadata.iter().flat_map(|(key, value)| [key, value]) {
        encoded.extend((text.len() as i32).to_ne_bytes());
        encoded.extend(text.as_bytes());
    }
    encoded
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller passes a schema that `to_ffi` made and nobody released yet, so the parts are what it put
    // there.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        for child in parts.children.iter().copied().chain((!parts.dictionary.is_null()).then_some(parts.dictionary)) {
            // Releases the child, unless its consumer has moved it out.
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
        (*schema).private_data = ptr::null_mut();
    }
}

/// The memory that an array points to.
struct ArrayParts {
    _buffers: Vec<Buffer>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
}

impl Node {
    pub(super) fn into_ffi(self) -> ArrowArray {
        let boxed = |node: Node| Box::into_raw(Box::new(node.into_ffi()));
        let mut parts = Box::new(ArrayParts {
            pointers: self.buffers.iter().map(Buffer::pointer).collect(),
            _buffers: self.buffers,
            children: self.children.into_iter().map(boxed).collect(),
            dictionary: self.dictionary.map_or(ptr::null_mut(), |node| boxed(*node)),
        });
        ArrowArray {
            length: self.length as i64,
            null_count: self.null_count as i64,
            offset: 0,
            n_buffers: parts.pointers.len() as i64,
            n_children: parts.children.len() as i64,
            buffers: parts.pointers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: parts.dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as for a schema.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        for child in parts.children.iter().copied().chain((!parts.dictionary.is_null()).then_some(parts.dictionary)) {
            drop(Box::from_raw(child));
        }
        (*array).release = None;
        (*array).private_data = ptr::null_mut();
    }
}

/// The source of a stream's arrays.
type Arrays = Box<dyn Iterator<Item = Result<ArrowArray, ArrowError>> + Send>;

struct StreamParts {
    schema: ArrowField,
    arrays: Arrays,
    last_error: Option<CString>,
}

/// The error code `EINVAL`: the arrays are there or they are not, so there is nothing to try again.
const FAILED: c_int = 22;

impl ArrowArrayStream {
    /// Makes a stream of struct arrays, each made when it is asked for.
    pub(super) fn new(schema: ArrowField, arrays: Arrays) -> ArrowArrayStream {
        let parts = Box::new(StreamParts { schema, arrays, last_error: None });
        ArrowArrayStream {
            get_schema: Some(stream_schema),
            get_next: Some(stream_next),
            get_last_error: Some(stream_error),
            release: Some(release_stream),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

impl ArrowArrayStream {
    /// Reads the schema.
    ///
    /// # Safety
    /// The stream is as Arrow's C stream interface says.
    pub(super) unsafe fn read_schema(&mut self) -> Result<ArrowSchema, String> {
        let mut schema = ArrowSchema::released();
        let Some(get_schema) = self.get_schema.filter(|_| self.release.is_some()) else { return Err(ended()) };
        // SAFETY: the caller's promise; there is room for a schema.
        match unsafe { get_schema(self, &mut schema) } {
            0 => Ok(schema),
            // SAFETY: asked right after the call that failed.
            code => Err(unsafe { self.error_text(code) }),
        }
    }

    /// Reads the next array; `None` at the end.
    ///
    /// # Safety
    /// The stream is as for the schema.
    pub(super) unsafe fn read_next(&mut self) -> Result<Option<ArrowArray>, String> {
        let mut array = ArrowArray::released();
        let Some(get_next) = self.get_next.filter(|_| self.release.is_some()) else { return Err(ended()) };
        // SAFETY: as for the schema.
        match unsafe { get_next(self, &mut array) } {
            0 => Ok(array.release.is_some().then_some(array)),
            // SAFETY: as for the schema.
            code => Err(unsafe { self.error_text(code) }),
        }
    }

    unsafe fn error_text(&mut self, code: c_int) -> String {
        let Some(get_last_error) = self.get_last_error else { return format!("error {code} of the Arrow stream") };
        // SAFETY: the caller's promise: it is null, or a text that ends with a zero.
        unsafe {
            let text = get_last_error(self);
            match text.is_null() {
                true => format!("error {code} of the Arrow stream"),
                false => CStr::from_ptr(text).to_string_lossy().into_owned(),
            }
        }
    }
}

fn ended() -> String {
    "the Arrow stream was released before it was read".to_string()
}

impl ArrowSchema {
    fn released() -> ArrowSchema {
        ArrowSchema {
            format: ptr::null(),
            name: ptr::null(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// Takes a schema out of a place that keeps its memory, such as a capsule.
    ///
    /// # Safety
    /// There is a schema at the pointer, and nobody else uses it at the same time.
    pub unsafe fn taken_from(place: *mut ArrowSchema) -> ArrowSchema {
        // SAFETY: the caller's promise; what is left behind is marked as moved from.
        unsafe { place.replace(ArrowSchema::released()) }
    }
}

impl ArrowArray {
    /// Takes an array out of a place that keeps its memory.
    ///
    /// # Safety
    /// The place is as for a schema.
    pub unsafe fn taken_from(place: *mut ArrowArray) -> ArrowArray {
        // SAFETY: as for a schema.
        unsafe { place.replace(ArrowArray::released()) }
    }
}

unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the caller passes a stream of ours that was not released, and room for a schema.
    unsafe {
        let parts = &*(*stream).private_data.cast::<StreamParts>();
        out.write(parts.schema.to_ffi());
    }
    0
}

unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as for the schema. At the end an array without `release` is written, which says so.
    unsafe {
        let parts = &mut *(*stream).private_data.cast::<StreamParts>();
        match parts.arrays.next() {
            Some(Ok(array)) => out.write(array),
            None => out.write(ArrowArray::released()),
            Some(Err(error)) => {
                parts.last_error = Some(c_string(&error.to_string()));
                return FAILED;
            }
        }
    }
    0
}

unsafe extern "C" fn stream_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: as for the schema. The text lives until the next call on the stream.
    unsafe {
        let parts = &*(*stream).private_data.cast::<StreamParts>();
        parts.last_error.as_deref().map_or(ptr::null(), CStr::as_ptr)
    }
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: as for a schema.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        (*stream).release = None;
        (*stream).private_data = ptr::null_mut();
    }
}

impl ArrowArray {
    /// Returns an array with nothing in it, to be filled by somebody else.
    pub(super) fn released() -> ArrowArray {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}
