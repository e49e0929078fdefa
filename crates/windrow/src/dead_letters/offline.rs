//! Dead letters without a running gateway: what its files say. They are left as they are.

use std::io;

use prometheus_client::registry::Registry;
use serde_json::Value;
use windrow_gateway::listing_json;
use windrow_gatherer::dead_letters::{DeadLetter, DeadLetterOptions, DeadLetters, LetterId, Page, Selection};
use windrow_journal::{Disk, Folder, FolderFile};
use windrow_settings::Settings;

use super::arguments::ListArguments;
use super::opened::{now_micros, FOLDER};

pub(super) fn list(settings: &Settings, arguments: &ListArguments, why: &str) -> Result<Value, String> {
    let mut selection = Selection::default();
    for (name, value) in arguments.conditions.named() {
        selection.add(name, &value, now_micros())?;
    }
    let page = Page { offset: arguments.offset, limit: arguments.limit };
    Ok(listing_json(&open(settings, why)?.list(&selection, page)))
}

pub(super) fn letter(settings: &Settings, id: u64, why: &str) -> Result<DeadLetter, String> {
    let letter = open(settings, why)?.read(LetterId(id)).map_err(|error| error.to_string())?;
    letter.ok_or_else(|| format!("there is no dead letter {id}"))
}

/// `why`: what is to be said of the gateway that isn't there.
fn open(settings: &Settings, why: &str) -> Result<DeadLetters, String> {
    let path = settings.data_dir.join(FOLDER);
    if !path.is_dir() {
        return Err(format!("{why}; and there is no {} to read (data_dir)", path.display()));
    }
    eprintln!("windrow: {why}; what follows was read from {}", path.display());
    let folder = Folder::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let options = DeadLetterOptions { max_bytes: settings.dead_letters.max_bytes, max_age_ms: None };
    let opened = DeadLetters::open(Untouched(folder), options, &mut Registry::default());
    // The committer is never run: nothing is written.
    let (letters, _committer) = opened.map_err(|error| error.to_string())?;
    Ok(letters)
}

/// A folder that is only read.
struct Untouched(Folder);

impl Disk for Untouched {
    type File = FolderFile;

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, _name: &str, _bytes: u64) -> io::Result<FolderFile> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn open(&self, name: &str) -> io::Result<FolderFile> {
        self.0.open(name)
    }

    /// Files that are of no use may stay.
    fn remove(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }
}
