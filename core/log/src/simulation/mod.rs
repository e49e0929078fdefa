//! A disk for simulations: it forgets, tears and reorders what was not synced when the power fails, fills up, and fails
//! on demand, all of it decided by one seed.
//!
//! What it promises is what POSIX and a journaling file system promise, and nothing beyond:
//!
//! - Written bytes are seen by readers at once and are kept over a crash only after the file's sync. Until then each
//!   sector of them is kept or lost on its own, and one may be cut at any byte.
//! - A name that was made, moved or removed is so after a crash only if the directory was synced.
//! - After a failed sync of a file nobody knows what is kept of what it was to keep; the cache may go on showing it, or
//!   not, and a later sync that succeeds says nothing about it.
//! - Bytes that were synced are never harmed, whatever is written beside them.

mod contents;
mod disk;
mod faults;
#[cfg(test)]
mod log_runs;
mod trace;

pub use disk::{SimDisk, SimFile};
pub use faults::DiskFaults;
pub use trace::Trace;
