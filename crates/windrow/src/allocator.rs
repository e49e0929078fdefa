//! What the program's allocator is told beyond its defaults.

use std::ffi::{c_int, c_long};

/// `mi_option_purge_delay` in mimalloc's list of options.
const PURGE_DELAY: c_int = 15;
const PURGE_DELAY_MS: c_long = 10;

extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
    #[cfg(test)]
    fn mi_option_get(option: c_int) -> c_long;
}

/// Gives memory that was freed back to the system soon. For who frees a hundred megabytes a second, as pipelines do:
/// kept for a second, as is the default, it would more than double what the process takes. Mapping it again costs a
/// twentieth of their CPU time.
pub(crate) fn give_back_soon() {
    // SAFETY: the option exists, and may be set at any time.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: reads a number.
        let read = || unsafe { mi_option_get(PURGE_DELAY) };
        // As it is before anybody sets it.
        assert_eq!(read(), 1000);
        give_back_soon();
        assert_eq!(read(), PURGE_DELAY_MS);
    }
}
