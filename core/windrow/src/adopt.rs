//! `windrow journal adopt`: stores what the journal of a gateway holds that is gone.
//!
//! The adopter is the gateway's own start without its ports: inserts that are left in the journal go to the
//! tables in the same batches and under the same ids as that gateway itself would send them, and are released
//! by the same records. So they are stored once whoever comes first, the adopter or the gateway; and both at
//! once is not possible, for both need the directory's lock.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use prometheus_client::registry::Registry;
use windrow_engine::Leftovers;
use windrow_gateway::{Certificates, DataServer, GatewayOptions, GatewayStores};
use windrow_settings::{Backend, LogSettings, Origin, Settings};

use crate::backend::RunningBackend;
use crate::cli::SettingsFlags;
use crate::data_dir_lock::DataDirLock;
use crate::data_directory::{self, DataDirectory};
use crate::dead_letters;
use crate::deduplication;
use crate::gateway::runtime;
use crate::logging;
use crate::signals::{Asked, Signals};
use crate::write_out;

const STEP: Duration = Duration::from_millis(100);
/// The number of steps from one line about the progress to the next.
const STEPS_PER_LINE: u32 = 20;

#[derive(Args)]
pub(crate) struct AdoptArguments {
    /// The data directory of the gateway that is gone.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    pub(crate) settings: SettingsFlags,
}

/// The outcome of an adoption, in inserts.
struct Adopted {
    found: u64,
    left: u64,
    became_dead_letters: u64,
}

pub(crate) fn run(settings: &Settings, arguments: &AdoptArguments) -> Result<ExitCode, String> {
    let directory = &arguments.directory;
    if !directory.join("journal").is_dir() {
        return Err(format!("{} has no folder `journal`: it is no data directory of a gateway", directory.display()));
    }
    if !matches!(settings.backend, Backend::ClickHouse(_)) {
        return Err(
            "name the ClickHouse server that the gateway stored into, with --backend or in the settings. Of an \
                    embedded ClickHouse or a DuckDB, `windrow serve` on the directory stores what its journal holds"
                .to_owned(),
        );
    }
    let mut settings = settings.clone();
    settings.data_dir.clone_from(directory);
    // Nothing comes in, so nobody else has to be known.
    settings.cluster = None;
    logging::start(&quiet(&settings))?;
    let adopted = runtime()?.block_on(adopt(&settings))?;
    say(&summary(directory, &adopted))?;
    Ok(if adopted.left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the log settings of an adoption: errors and warnings are logged, the usual messages of a start are
/// not.
fn quiet(settings: &Settings) -> LogSettings {
    let mut log = settings.log.clone();
    if settings.origin("log.level").is_none_or(|origin| *origin == Origin::Default) {
        log.level = "warn".to_owned();
    }
    log
}

fn summary(directory: &Path, adopted: &Adopted) -> String {
    let Adopted { found, left, became_dead_letters } = adopted;
    let ended = found.saturating_sub(*left);
    let stored = ended.saturating_sub(*became_dead_letters);
    let mut text = format!("{stored} inserts stored, {became_dead_letters} became dead letters, {left} left\n");
    if *became_dead_letters > 0 {
        let directory = directory.display();
        text += &format!("see them with: windrow dead-letters list --data-dir {directory}\n");
    }
    text + match left {
        0 => "the journal holds no insert any more\n",
        _ => "the rest stays in the journal: adopt it again\n",
    }
}

fn say(text: &str) -> Result<(), String> {
    write_out(text.as_bytes())
}

async fn adopt(settings: &Settings) -> Result<Adopted, String> {
    let mut signals = Signals::listen()?;
    let lock = DataDirLock::acquire(&settings.data_dir).map_err(|error| error.to_string())?;
    let journal = data_directory::journal(settings).await?;
    let backend = RunningBackend::start(settings).await?;
    let mut registry = Registry::default();
    let opened = dead_letters::open(settings, &mut registry)?;
    let deduplication = deduplication::open(settings)?;
    let dead_letters = opened.dead_letters.clone();
    let dead_before = dead_letters.amount().dead_letters;
    let stores = GatewayStores {
        journal: journal.opened,
        deduplication: deduplication.opened,
        dead_letters: opened.dead_letters,
    };
    let options = GatewayOptions::new(std::sync::Arc::new(settings.clone()), None);
    let data = DataServer::new(backend.gateway.clone(), stores, options, Certificates::default(), &mut registry);
    let directory = DataDirectory::new(lock, vec![journal.writer, deduplication.writer, opened.writer]);

    let Leftovers { inserts: found, bytes } = data.gatherer().leftovers();
    say(&format!("{found} inserts are in the journal, {bytes} bytes; they go to {}\n", backend.name))?;
    let mut steps = 0;
    while data.gatherer().leftovers().inserts > 0 {
        tokio::select! {
            () = tokio::time::sleep(STEP) => {}
            asked = signals.next() => match asked {
                Asked::Stop => break,
                Asked::Reload => {}
            },
        }
        steps += 1;
        if steps % STEPS_PER_LINE == 0 {
            let left = data.gatherer().leftovers().inserts;
            let away = backend.available.borrow().clone().err().map(|why| format!("; {why}")).unwrap_or_default();
            say(&format!("{left} inserts left{away}\n"))?;
        }
    }
    data.shut_down(Duration::from_millis(settings.gather.shutdown_timeout_ms)).await;
    backend.stop().await;
    let left = data.gatherer().leftovers().inserts;
    let became_dead_letters = dead_letters.amount().dead_letters.saturating_sub(dead_before);
    directory.stop().await;
    Ok(Adopted { found, left, became_dead_letters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_it_is_told() {
        let told =
            |found, left, became_dead_letters| summary(Path::new("d"), &Adopted { found, left, became_dead_letters });
        assert!(told(5, 0, 0).starts_with("5 inserts stored, 0 became dead letters, 0 left\n"));
        assert!(told(5, 0, 2).contains("3 inserts stored") && told(5, 0, 2).contains("dead-letters list --data-dir d"));
        assert!(told(5, 4, 0).contains("adopt it again"));
    }
}
