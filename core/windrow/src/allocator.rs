//! The program's allocator, and its options beyond the defaults: docs/decisions/0053-the-allocator.md.

use std::ffi::c_char;

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The options. Memory that was freed goes back to the system within a second, not within ten. A program that
/// frees a hundred megabytes a second, as pipelines do, takes far less memory so.
const OPTIONS: &[u8] = b"dirty_decay_ms:1000\0";

/// The C string that jemalloc reads as it begins.
#[export_name = "_rjem_malloc_conf"]
pub static CONFIGURATION: Option<&'static c_char> =
    // SAFETY: the reference is to the first byte of a static C string; only C follows it, to the zero.
    Some(unsafe { &*OPTIONS.as_ptr().cast::<c_char>() });

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_void, CStr};

    extern "C" {
        fn _rjem_mallctl(
            name: *const c_char,
            old: *mut c_void,
            old_size: *mut usize,
            new: *mut c_void,
            new_size: usize,
        ) -> c_int;
    }

    use super::*;

    /// Reads a value of the allocator. `T` is a number or a flag.
    fn read<T: Default + Copy>(name: &CStr) -> T {
        let (mut value, mut size) = (T::default(), size_of::<T>());
        // SAFETY: writes at most `size` bytes to `value`.
        let outcome = unsafe {
            let value = (&raw mut value).cast();
            _rjem_mallctl(name.as_ptr(), value, &mut size, std::ptr::null_mut(), 0)
        };
        assert_eq!((outcome, size), (0, size_of::<T>()));
        value
    }

    #[test]
    fn what_is_configured_is_read() {
        assert_eq!(read::<isize>(c"opt.dirty_decay_ms"), 1000);
        assert!(read::<bool>(c"background_thread"), "an idle gateway gives back nothing");
    }
}
