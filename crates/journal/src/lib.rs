//! What was acknowledged as `disk` is kept here until it is stored.
//!
//! Two layers: [`log`] is about bytes, a folder of segments of checksummed records with group commit; [`records`] is about
//! what the journal's records mean. [`Disk`] is all that a log needs of a disk; [`Folder`] is the real one.

mod disk;
mod folder;
pub mod log;
pub mod records;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;

pub use disk::{Disk, DiskFile};
pub use folder::{Folder, FolderFile};
