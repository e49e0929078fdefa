//! `windrow kafka`: tries pipelines, and runs them one by one.

mod arguments;
mod check;
mod options;
mod pipelines;
mod print;
mod running_gateway;
mod tables;

use std::process::ExitCode;

use windrow_settings::{KafkaSettings, Origin, Settings};

use self::arguments::{KafkaCommand, RunArguments};
use crate::gateway;
use crate::load_with;
use crate::reload;

pub(crate) use arguments::KafkaArguments;
use options::pipeline_options;
pub(crate) use pipelines::{all_options, Pipelines};

pub(crate) fn run(arguments: &KafkaArguments) -> Result<ExitCode, String> {
    match &arguments.command {
        KafkaCommand::Check(arguments) => Ok(check::run(arguments)),
        KafkaCommand::Run(arguments) => run_one(arguments),
    }
}

fn run_one(arguments: &RunArguments) -> Result<ExitCode, String> {
    let mut settings = load_with(&arguments.settings, arguments.pipeline.flags())?;
    let chosen = chosen(&settings)?;
    settings.kafka = match chosen.as_slice() {
        [one] => vec![(*one).clone()],
        [] => return Err(NO_PIPELINE.to_owned()),
        several => {
            let names: Vec<&str> = several.iter().map(|pipeline| pipeline.name.as_str()).collect();
            return Err(format!("which pipeline? There are {}; windrow serve runs them all", names.join(", ")));
        }
    };
    // The usual ports may be in use by a gateway; who wants to ask for the table here can read in the log where.
    if settings.origin("http.listen") == Some(&Origin::Default) {
        settings.http.listen.set_port(0);
    }
    if settings.origin("flight.listen") == Some(&Origin::Default) {
        settings.flight.listen = None;
    }
    let load = reload::fixed(&settings);
    gateway::serve(settings, load)
}

const NO_PIPELINE: &str =
    "there is no pipeline: name a [[kafka]] entry of the settings, or give --brokers, --topics, --table and --format";

/// Returns the pipelines that the command line means: the one that its flags name, else all.
fn chosen(settings: &Settings) -> Result<Vec<&KafkaSettings>, String> {
    let of_flags: Vec<&KafkaSettings> = settings.kafka.iter().filter(|pipeline| pipeline.of_flags).collect();
    match (of_flags.is_empty(), settings.kafka.is_empty()) {
        (false, _) => Ok(of_flags),
        (true, false) => Ok(settings.kafka.iter().collect()),
        (true, true) => Err(NO_PIPELINE.to_owned()),
    }
}
