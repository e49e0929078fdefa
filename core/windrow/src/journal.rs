//! `windrow journal inspect|repair|adopt`: looks at the files that the gateway keeps on disk, and mends them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use windrow_log::Folder;
use windrow_settings::Settings;

use crate::adopt::{self, AdoptArguments};
use crate::cli::SettingsFlags;
use crate::data_dir_lock::DataDirLock;
use crate::deduplication;

/// Look at the journal's files, repair them, or store what another gateway left there.
#[derive(Args)]
pub(crate) struct JournalArguments {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Subcommand)]
enum JournalCommand {
    /// Print what the files hold and where they are damaged. Changes nothing; the gateway may run.
    Inspect(FolderArguments),
    /// Make damaged files readable again: what can be read of them is kept, the rest is moved to `damaged`. The gateway
    /// must not run.
    Repair(FolderArguments),
    /// Store what the journal of another gateway holds that is gone, as that gateway would at its next start:
    /// once. This needs the data directory and the server in `backend`; the gateway must not run. Its dead
    /// letters, and what it knew of repeats, stay in the directory.
    Adopt(AdoptArguments),
}

#[derive(Args)]
struct FolderArguments {
    /// The folder of the data directory.
    #[arg(value_enum, default_value_t = Which::Journal)]
    which: Which,
    #[command(flatten)]
    settings: SettingsFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Inserts that are not stored yet.
    Journal,
    /// The index by which repeated inserts are known.
    #[value(alias = "ledger")]
    Deduplication,
    /// Inserts that could not be stored.
    DeadLetters,
}

impl Which {
    fn folder(self, data_dir: &Path) -> PathBuf {
        match self {
            Which::Journal => data_dir.join("journal"),
            Which::Deduplication => deduplication::folder(data_dir),
            Which::DeadLetters => data_dir.join("dead-letters"),
        }
    }
}

impl JournalArguments {
    pub(crate) fn settings(&self) -> &SettingsFlags {
        match &self.command {
            JournalCommand::Inspect(arguments) | JournalCommand::Repair(arguments) => &arguments.settings,
            JournalCommand::Adopt(arguments) => &arguments.settings,
        }
    }
}

pub(crate) fn run(settings: &Settings, arguments: &JournalArguments) -> Result<ExitCode, String> {
    match &arguments.command {
        JournalCommand::Inspect(arguments) => inspect(&path(settings, arguments)),
        JournalCommand::Repair(arguments) => repair(settings, &path(settings, arguments)),
        JournalCommand::Adopt(arguments) => adopt::run(settings, arguments),
    }
}

fn path(settings: &Settings, arguments: &FolderArguments) -> PathBuf {
    arguments.which.folder(&settings.data_dir)
}

/// Opens a folder that is there: looking at a folder must not make it.
fn folder(path: &PathBuf) -> Result<Folder, String> {
    if !path.is_dir() {
        return Err(format!("there is no folder {}", path.display()));
    }
    Folder::open(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn inspect(path: &PathBuf) -> Result<ExitCode, String> {
    let inspection = windrow_log::inspect(&folder(path)?).map_err(|error| format!("{}: {error}", path.display()))?;
    print!("{inspection}");
    Ok(if inspection.damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn repair(settings: &Settings, path: &PathBuf) -> Result<ExitCode, String> {
    let folder = folder(path)?;
    let _lock = DataDirLock::acquire(&settings.data_dir).map_err(|error| error.to_string())?;
    let repaired = windrow_log::repair(&folder).map_err(|error| format!("{}: {error}", path.display()))?;
    if repaired.is_empty() {
        println!("nothing is damaged");
    }
    for segment in repaired {
        println!(
            "{}: {} records kept, {} lost with what they share; the damaged file is in {}",
            segment.segment,
            segment.kept_records,
            segment.lost_records,
            path.join("damaged").display()
        );
        for damage in segment.damages {
            println!("  byte {}: {}; {} bytes could not be read", damage.offset, damage.why, damage.bytes);
        }
    }
    Ok(ExitCode::SUCCESS)
}
