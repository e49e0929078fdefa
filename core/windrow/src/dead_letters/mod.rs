//! `windrow dead-letters`: looks at the dead letters and deals with them, through the admin port of the
//! gateway that has them. Commands that only look work without a gateway too: the files are read then.

mod arguments;
mod offline;
mod opened;
mod print;

use std::process::ExitCode;

use serde_json::Value;
use windrow_settings::Settings;

use self::arguments::{ChangeArguments, DeadLettersCommand, ListArguments, OutputFormat, ShowArguments};
use crate::admin_api::{Api, ApiError};
use crate::gateway::runtime;
use crate::write_out;

pub(crate) use arguments::DeadLettersArguments;
pub(crate) use opened::open;

pub(crate) fn run(settings: &Settings, arguments: &DeadLettersArguments) -> Result<ExitCode, String> {
    let api = Api::new(settings, "/api/v1/dead-letters");
    runtime()?.block_on(async {
        match &arguments.command {
            DeadLettersCommand::List(arguments) => list(settings, &api, arguments).await,
            DeadLettersCommand::Show(arguments) => show(settings, &api, arguments).await,
            DeadLettersCommand::Retry(arguments) => change(&api, arguments, "/retry", "retried").await,
            DeadLettersCommand::Discard(arguments) => change(&api, arguments, "/discard", "discarded").await,
        }
    })
}

async fn list(settings: &Settings, api: &Api, arguments: &ListArguments) -> Result<ExitCode, String> {
    let listing = match api.get_json(&arguments.target()).await {
        Ok(listing) => listing,
        Err(ApiError::Failed(why)) => return Err(why),
        Err(ApiError::NoGateway(why)) => offline::list(settings, arguments, &why)?,
    };
    match arguments.format {
        OutputFormat::Table => write_out(print::list(&listing).as_bytes())?,
        OutputFormat::Json => write_out(format!("{listing}\n").as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(settings: &Settings, api: &Api, arguments: &ShowArguments) -> Result<ExitCode, String> {
    let id = arguments.id;
    if arguments.payload {
        let payload = match api.get(&format!("/{id}/payload")).await {
            Ok(payload) => payload,
            Err(ApiError::Failed(why)) => return Err(why),
            Err(ApiError::NoGateway(why)) => offline::dead_letter(settings, id, &why)?.payload(),
        };
        write_out(&payload)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (dead_letter, rows) = match api.get_json(&format!("/{id}")).await {
        Ok(dead_letter) => (dead_letter, rows(api, arguments).await),
        Err(ApiError::Failed(why)) => return Err(why),
        Err(ApiError::NoGateway(why)) => {
            (windrow_gateway::dead_letter_json(&offline::dead_letter(settings, id, &why)?), Value::Null)
        }
    };
    match arguments.format {
        OutputFormat::Table => {
            write_out(format!("{}{}", print::dead_letter(&dead_letter), print::rows(&rows)).as_bytes())?
        }
        OutputFormat::Json => write_out(format!("{}\n", with_rows(dead_letter, &rows)).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the rows of a dead letter. One whose rows ClickHouse can't read is shown without them.
async fn rows(api: &Api, arguments: &ShowArguments) -> Value {
    if arguments.rows == 0 {
        return Value::Null;
    }
    match api.get_json(&format!("/{}/rows?limit={}", arguments.id, arguments.rows)).await {
        Ok(rows) => rows,
        Err(ApiError::Failed(why) | ApiError::NoGateway(why)) => {
            eprintln!("windrow: {why}");
            Value::Null
        }
    }
}

fn with_rows(mut dead_letter: Value, rows: &Value) -> Value {
    if let (Some(fields), Some(data)) = (dead_letter.as_object_mut(), rows.get("data")) {
        fields.insert("data".to_owned(), data.clone());
    }
    dead_letter
}

async fn change(api: &Api, arguments: &ChangeArguments, path: &str, deed: &str) -> Result<ExitCode, String> {
    let answer = match api.post(path, &arguments.selection()?).await {
        Ok(answer) => answer,
        Err(ApiError::Failed(why)) => return Err(why),
        Err(ApiError::NoGateway(why)) => return Err(format!("{why}; only a running gateway can change them")),
    };
    match arguments.format {
        OutputFormat::Table => write_out(print::change(&answer, deed).as_bytes())?,
        OutputFormat::Json => write_out(format!("{answer}\n").as_bytes())?,
    }
    let all_done = answer.get("failed").and_then(Value::as_array).is_none_or(Vec::is_empty);
    Ok(if all_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
