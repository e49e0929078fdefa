//! `windrow drain`: leaves a replica of the backend alone, before it is stopped.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{json, Value};
use windrow_settings::Settings;

use crate::admin_api::{Api, ApiError};
use crate::cli::SettingsFlags;
use crate::gateway::runtime;
use crate::write_out;

const STEP: Duration = Duration::from_millis(200);

/// Give a replica of the backend nothing new, and wait until nothing of Windrow's is under way there.
///
/// Without an address: print the replicas and their states. A replica stays drained until --undo, or until
/// the gateway ends. Tables that are not replicated stay on the first replica: while that one is drained
/// their rows wait.
#[derive(Args)]
pub(crate) struct DrainArguments {
    /// The replica, as the setting `backend` names it: host:port, or with its scheme.
    #[arg(value_name = "REPLICA")]
    address: Option<String>,
    /// Give the replica work again.
    #[arg(long, requires = "address")]
    undo: bool,
    /// Don't wait for requests that are under way.
    #[arg(long, conflicts_with = "undo", requires = "address")]
    no_wait: bool,
    #[command(flatten)]
    pub(crate) settings: SettingsFlags,
}

pub(crate) fn run(settings: &Settings, arguments: &DrainArguments) -> Result<ExitCode, String> {
    let api = Api::new(settings, "/api/v1/replicas");
    let asked = runtime()?.block_on(async {
        let Some(address) = &arguments.address else { return api.get_json("").await };
        let order = json!({ "address": address, "drained": !arguments.undo });
        let mut answer = api.post("/drain", &order).await?;
        while !(arguments.undo || arguments.no_wait) && is_busy(&answer, address) {
            tokio::time::sleep(STEP).await;
            answer = api.get_json("").await?;
        }
        Ok(answer)
    });
    match asked {
        Ok(answer) => write_out(text(&answer).as_bytes()).map(|()| ExitCode::SUCCESS),
        Err(ApiError::Failed(why) | ApiError::NoGateway(why)) => Err(why),
    }
}

fn replicas(answer: &Value) -> &[Value] {
    answer["replicas"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Says whether a replica that is still drained has requests under way: somebody else may have given it work
/// again.
fn is_busy(answer: &Value, address: &str) -> bool {
    let is_meant = |replica: &&Value| {
        let known = replica["address"].as_str().unwrap_or_default();
        known == address || known.rsplit_once("://").is_some_and(|(_, known)| known == address)
    };
    let meant = replicas(answer).iter().find(is_meant);
    meant.is_some_and(|replica| replica["drained"] == true && replica["requests"].as_u64() > Some(0))
}

fn text(answer: &Value) -> String {
    if replicas(answer).is_empty() {
        return "the backend has no replicas\n".to_owned();
    }
    let line = |replica: &Value| {
        let state = match (replica["up"].as_bool(), replica["drained"].as_bool()) {
            (_, Some(true)) => "drained".to_owned(),
            (Some(true), _) => "up".to_owned(),
            _ => format!("down: {}", replica["reason"].as_str().unwrap_or("it does not answer")),
        };
        let read_only = match replica["read_only_tables"].as_u64() {
            None | Some(0) => String::new(),
            Some(tables) => format!(", {tables} tables are read-only"),
        };
        let address = replica["address"].as_str().unwrap_or_default();
        format!("{address}  {state}{read_only}, {} requests under way", replica["requests"])
            .replace(char::is_control, " ")
    };
    replicas(answer).iter().map(|replica| line(replica) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_told_in_lines() {
        let replica = |address: &str, up, drained, requests, reason: Option<&str>| {
            json!({ "address": address, "up": up, "drained": drained, "read_only_tables": requests, "requests": requests,
                "reason": reason })
        };
        let answer = json!({ "replicas": [
            replica("http://a:8123", true, true, 2, None),
            replica("http://b:8123", true, false, 0, None),
            replica("tcp://c:9000", false, false, 0, Some("connection\nrefused")),
        ] });
        let told =
            "http://a:8123  drained, 2 tables are read-only, 2 requests under way\nhttp://b:8123  up, 0 requests \
                    under way\ntcp://c:9000  down: connection refused, 0 requests under way\n";
        assert_eq!(text(&answer), told);
        assert!(is_busy(&answer, "a:8123") && is_busy(&answer, "http://a:8123"));
        assert!(!is_busy(&answer, "b:8123") && !is_busy(&answer, "8123"));
        assert_eq!(text(&json!({ "replicas": [] })), "the backend has no replicas\n");
    }
}
