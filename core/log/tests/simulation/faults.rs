/// The rates at which the disk fails, in calls of a thousand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskFaults {
    pub create: u32,
    pub write: u32,
    pub sync: u32,
    pub read: u32,
    /// The rate for listing, removing, renaming and syncing the directory.
    pub directory: u32,
    /// True if the disk has no room for new files, nor for growing ones.
    pub is_full: bool,
}

impl DiskFaults {
    /// Returns the faults of a disk that sometimes fails at anything.
    pub fn everywhere(per_thousand: u32) -> DiskFaults {
        DiskFaults {
            create: per_thousand,
            write: per_thousand,
            sync: per_thousand,
            read: per_thousand,
            directory: per_thousand,
            is_full: false,
        }
    }
}
