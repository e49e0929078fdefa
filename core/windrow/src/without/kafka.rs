//! Stands for `kafka/` where the program is built without the feature `kafka`.

use std::time::Duration;

use prometheus_client::registry::Registry;
use windrow_engine::dead_letters::DeadLetters;
use windrow_gateway::DataServer;
use windrow_settings::Settings;

use crate::without::missing;

pub(crate) enum PipelineOptions {}

pub(crate) fn all_options(settings: &Settings) -> Result<Vec<PipelineOptions>, String> {
    match settings.kafka.is_empty() {
        true => Ok(Vec::new()),
        false => Err(missing("kafka", "a pipeline of `[[kafka]]`")),
    }
}

pub(crate) struct Pipelines;

impl Pipelines {
    pub(crate) fn start(_: Vec<PipelineOptions>, _: &DataServer, _: &DeadLetters, _: &mut Registry) -> Pipelines {
        Pipelines
    }

    pub(crate) async fn stop(self, _: Duration) {}
}
