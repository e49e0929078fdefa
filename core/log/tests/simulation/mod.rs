//! A disk for simulations: when the power fails, it forgets, tears and reorders bytes that were not synced.
//! It also fills up, and fails on demand. One seed decides all of that.
//!
//! The disk promises the same as POSIX and a journaling file system, and no more:
//!
//! - Readers see written bytes at once; a crash keeps them only after the file's sync. Until then each sector
//!   of them is kept or lost on its own, and one may be cut at any byte.
//! - A name that was made, moved or removed is so after a crash only if the directory was synced.
//! - After a failed sync of a file it is not known which bytes were kept; the cache may still show them, or
//!   not, and a later sync that succeeds says nothing about them.
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
