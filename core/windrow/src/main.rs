//! The `windrow` program: command line, settings, and the order in which the parts start and stop.

// What optional parts alone use is there without them.
#![cfg_attr(
    not(all(
        feature = "append",
        feature = "demo",
        feature = "embedded",
        feature = "flight",
        feature = "kafka",
        feature = "sql"
    )),
    allow(dead_code)
)]

mod admin_api;
mod adopt;
mod allocator;
#[cfg(feature = "append")]
mod append;
#[cfg_attr(not(feature = "append"), path = "without/appends.rs")]
mod appends;
mod backend;
mod cli;
mod data_dir_lock;
mod data_directory;
mod dead_letters;
mod deduplication;
mod default_backend;
#[cfg(feature = "demo")]
mod demo;
mod descriptors;
mod drain;
#[cfg_attr(not(feature = "embedded"), path = "without/embedded.rs")]
mod embedded;
#[cfg_attr(not(feature = "flight"), path = "without/flight.rs")]
mod flight;
mod gateway;
mod journal;
#[cfg_attr(not(feature = "kafka"), path = "without/kafka.rs")]
mod kafka;
mod log_writer;
mod logging;
mod readiness;
mod reload;
mod service_manager;
mod signals;
#[cfg_attr(not(feature = "sql"), path = "without/sql_backend.rs")]
mod sql_backend;
mod status;
mod traces;
mod without;

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use cli::{Cli, Command, ConfigArguments, ConfigCommand};
use status::View;
use windrow_settings::{Flag, Settings, Sources};

fn main() -> ExitCode {
    // The embedded ClickHouse runs in this same executable, under a hidden first argument; it ends in here.
    embedded::run_engine_if_asked();
    let cli = Cli::of_process();
    let outcome = match cli.command {
        Command::Config(ConfigArguments { command: Some(ConfigCommand::Init { path }), .. }) => begin_settings(&path),
        Command::Config(arguments) => load(&arguments.settings).map(|settings| {
            print!("{}", settings.explain());
            ExitCode::SUCCESS
        }),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::finished(), "windrow", &mut script);
            write_out(&script).map(|()| ExitCode::SUCCESS)
        }
        #[cfg(feature = "append")]
        Command::Append(arguments) => append::run(&arguments),
        Command::Serve(flags) => {
            load(&flags).and_then(|settings| gateway::serve(settings, Box::new(move || load(&flags))))
        }
        Command::DeadLetters(arguments) => {
            load(arguments.settings()).and_then(|settings| dead_letters::run(&settings, &arguments))
        }
        Command::Journal(arguments) => {
            load(arguments.settings()).and_then(|settings| journal::run(&settings, &arguments))
        }
        #[cfg(feature = "kafka")]
        Command::Kafka(arguments) => kafka::run(&arguments),
        Command::Status(arguments) => {
            load(&arguments.settings).and_then(|settings| status::run(&settings, arguments.view()))
        }
        Command::Top(arguments) => load(&arguments.settings).and_then(|settings| status::run(&settings, View::Watch)),
        Command::Drain(arguments) => load(&arguments.settings).and_then(|settings| drain::run(&settings, &arguments)),
        Command::MendClickhouse(arguments) => embedded::mend_clickhouse(&arguments.path),
        #[cfg(feature = "demo")]
        Command::Demo(arguments) => demo::run(&arguments),
    };
    outcome.unwrap_or_else(|problem| {
        eprintln!("windrow: {problem}");
        ExitCode::FAILURE
    })
}

/// Writes a settings file to begin with. Others may not read the file: it will hold passwords.
fn begin_settings(path: &Path) -> Result<ExitCode, String> {
    const EXAMPLE: &str = include_str!("../../../windrow.example.toml");
    if path == Path::new("-") {
        return write_out(EXAMPLE.as_bytes()).map(|()| ExitCode::SUCCESS);
    }
    let mut options = std::fs::OpenOptions::new();
    let written = options.write(true).create_new(true).mode(0o600).open(path).and_then(|mut file| {
        file.write_all(EXAMPLE.as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => {
            println!("{} is written. To see what holds: windrow config --config {0}", path.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(format!("{} exists, and is left as it is; name another file, or - to print", path.display()))
        }
        Err(error) => Err(format!("{} can't be written: {error}", path.display())),
    }
}

fn load(flags: &cli::SettingsFlags) -> Result<Settings, String> {
    load_with(flags, Vec::new())
}

/// Loads the settings with more flags than all commands have.
fn load_with(flags: &cli::SettingsFlags, more: Vec<Flag>) -> Result<Settings, String> {
    let load = |default_backend| {
        let sources = Sources {
            config_path: flags.config.clone(),
            env: std::env::vars_os().filter_map(text),
            flags: flags.flags().into_iter().chain(more.clone()).collect(),
            default_backend,
        };
        Settings::load(sources).map_err(|errors| errors.to_string())
    };
    let settings = load(None)?;
    match default_backend::instead_of_clickhouse(&settings) {
        None => Ok(settings),
        // Anew, since what goes together depends on the backend: passwords on open ports, for one.
        duckdb => load(duckdb),
    }
}

/// Writes to standard output. A reader that has closed the output has had enough, which is no error.
fn write_out(bytes: &[u8]) -> Result<(), String> {
    write_more(bytes).map(drop)
}

/// Writes to standard output, and says whether the reader wants more.
fn write_more(bytes: &[u8]) -> Result<bool, String> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("standard output can't be written: {error}")),
    }
}

/// Returns a variable whose name and value are text. Others can't be Windrow's.
fn text((name, value): (std::ffi::OsString, std::ffi::OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}
