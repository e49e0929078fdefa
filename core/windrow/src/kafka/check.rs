//! `windrow kafka check`: tries pipelines without storing anything.

use std::process::ExitCode;

use windrow_kafka::pipeline::{check, Verdict};
use windrow_settings::Settings;

use super::arguments::CheckArguments;
use super::tables::CheckTables;
use super::{chosen, pipeline_options, print};
use crate::gateway::runtime;
use crate::{load_with, logging};

const DOES_NOT_FIT: u8 = 1;
/// The exit code where a question could not be answered, or the settings are wrong.
const UNKNOWN: u8 = 2;

pub(super) fn run(arguments: &CheckArguments) -> ExitCode {
    match checked(arguments) {
        Ok(Verdict::Fits) => ExitCode::SUCCESS,
        Ok(Verdict::DoesNotFit) => ExitCode::from(DOES_NOT_FIT),
        Ok(Verdict::Unknown) => ExitCode::from(UNKNOWN),
        Err(problem) => {
            eprintln!("windrow: {problem}");
            ExitCode::from(UNKNOWN)
        }
    }
}

/// Checks the chosen pipelines, and returns the worst verdict.
fn checked(arguments: &CheckArguments) -> Result<Verdict, String> {
    let mut settings = load_with(&arguments.settings, arguments.pipeline.flags())?;
    if settings.log.level == "info" {
        // What is found is printed; of what happens on the way only what went wrong matters.
        settings.log.level = "error,clickhouse=off".to_owned();
    }
    logging::start(&settings.log)?;
    runtime()?.block_on(check_all(&settings, arguments.json))
}

async fn check_all(settings: &Settings, json: bool) -> Result<Verdict, String> {
    let mut pipelines = Vec::new();
    for pipeline in chosen(settings)? {
        pipelines.push((pipeline, pipeline_options(pipeline, &settings.backend)?));
    }
    let tables = CheckTables::open(settings).await?;
    let mut worst = Verdict::Fits;
    for (at, (pipeline, options)) in pipelines.iter().enumerate() {
        let report = check(options, &*tables.tables).await;
        let text = match json {
            true => format!("{}\n", print::json(pipeline, options, &report)),
            false => format!("{}{}", if at > 0 { "\n" } else { "" }, print::text(pipeline, options, &report)),
        };
        crate::write_out(text.as_bytes())?;
        worst = worse(worst, report.verdict());
    }
    tables.close().await;
    Ok(worst)
}

fn worse(one: Verdict, other: Verdict) -> Verdict {
    let weight = |verdict: Verdict| match verdict {
        Verdict::Fits => 0,
        Verdict::DoesNotFit => 1,
        Verdict::Unknown => 2,
    };
    if weight(other) > weight(one) {
        other
    } else {
        one
    }
}
