//! Adoption: finds the sub-folders of dead writers and takes them over.

use std::path::Path;

use super::folder::{self, Folder};
use super::log::Log;
use super::options::DiskOptions;
use super::recover::{destination_of, recover};
use crate::buffer::{BufferError, LeftOvers};
use crate::destination::Destination;

/// Returns the logs of dead writers to the same table. Logs of other tables are left to other writers. Logs
/// that can't be read now are complained of in `report`, and tried again the next time.
pub(super) fn adopt(
    root: &Path,
    own: &Destination,
    options: &DiskOptions,
    report: &mut LeftOvers,
) -> Result<Vec<Log>, BufferError> {
    let mut logs = Vec::new();
    for path in folder::list(root)? {
        let locked = folder::lock(&path).map_err(BufferError::from);
        let adopted = locked.and_then(|folder| match folder {
            Some(folder) if is_ours(&folder, own)? => recover(folder, options, report),
            _ => Ok(None),
        });
        match adopted {
            Ok(log) => logs.extend(log),
            Err(error) => report.complaints.push(format!("{}: {error}", path.display())),
        }
    }
    Ok(logs)
}

/// Says whether this writer may take the folder: its rows are for the same table, or it names no table.
fn is_ours(folder: &Folder, own: &Destination) -> Result<bool, BufferError> {
    let destination = destination_of(folder)?;
    Ok(destination.is_none_or(|destination| destination.is_same_table(own)))
}
