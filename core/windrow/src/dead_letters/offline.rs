//! Reads dead letters without a running gateway, from its files. The files are left as they are.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use prometheus_client::registry::Registry;
use serde_json::Value;
use windrow_engine::dead_letters::{DeadLetter, DeadLetterId, DeadLetterOptions, DeadLetters, Page, Selection};
use windrow_gateway::listing_json;
use windrow_log::{Disk, DiskFile};
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

pub(super) fn dead_letter(settings: &Settings, id: u64, why: &str) -> Result<DeadLetter, String> {
    let dead_letter = open(settings, why)?.read(DeadLetterId(id)).map_err(|error| error.to_string())?;
    dead_letter.ok_or_else(|| format!("there is no dead letter {id}"))
}

/// Opens the dead letters. `why` says why the gateway isn't there.
fn open(settings: &Settings, why: &str) -> Result<DeadLetters, String> {
    let path = settings.data_dir.join(FOLDER);
    if !path.is_dir() {
        return Err(format!("{why}; and there is no {} to read (data_dir)", path.display()));
    }
    eprintln!("windrow: {why}; what follows was read from {}", path.display());
    let options = DeadLetterOptions { max_bytes: settings.dead_letters.max_bytes };
    let opened = DeadLetters::open(Untouched(path), options, &mut Registry::default());
    // The committer is never run: nothing is written.
    let (dead_letters, _committer) = opened.map_err(|error| error.to_string())?;
    Ok(dead_letters)
}

/// A folder that is only read: damage that a log would mend when it is opened stays as it is. A gateway may
/// be at work there.
struct Untouched(PathBuf);

struct UntouchedFile(File);

fn read_only<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for Untouched {
    type File = UntouchedFile;

    fn list(&self) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        Ok(names.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn create(&self, _name: &str, _bytes: u64) -> io::Result<UntouchedFile> {
        read_only()
    }

    fn open(&self, name: &str) -> io::Result<UntouchedFile> {
        File::open(self.0.join(name)).map(UntouchedFile)
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        read_only()
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for UntouchedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
