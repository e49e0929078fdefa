//! The pipelines of a gateway: started when everything that they need is there, and stopped before any of it goes.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use windrow_engine::dead_letters::{DeadLetters, MessageDeadLetter, MessageRetrier, Rereading};
use windrow_gateway::DataServer;
use windrow_kafka::pipeline::{Pipeline, PipelineMetrics, PipelineOptions, RunningPipeline};
use windrow_settings::Settings;

use super::pipeline_options;

/// Returns the options of all pipelines. This is called before anything is started: a mistake there shows at
/// once.
pub(crate) fn all_options(settings: &Settings) -> Result<Vec<PipelineOptions>, String> {
    settings.kafka.iter().map(|pipeline| pipeline_options(pipeline, &settings.backend)).collect()
}

pub(crate) struct Pipelines {
    running: Arc<Vec<RunningPipeline>>,
}

impl Pipelines {
    /// Starts the pipelines. Brokers and tables need not be there: pipelines wait for them, and say so.
    pub(crate) fn start(
        options: Vec<PipelineOptions>,
        data: &DataServer,
        dead_letters: &DeadLetters,
        registry: &mut Registry,
    ) -> Pipelines {
        let mut running = Vec::with_capacity(options.len());
        if !options.is_empty() {
            let metrics = PipelineMetrics::register(registry);
            let tables = Arc::new(data.tables());
            let shared_dead_letters = Arc::new(dead_letters.clone());
            running.extend(options.into_iter().map(|options| {
                let (gatherer, dead_letters) = (data.gatherer().clone(), Some(shared_dead_letters.clone()));
                Pipeline::start(options, gatherer, dead_letters, tables.clone(), &metrics)
            }));
        }
        let running = Arc::new(running);
        dead_letters.set_message_retrier(Arc::new(Retrier(running.clone())));
        data.show_pipelines({
            let running = running.clone();
            Arc::new(move || running.iter().map(RunningPipeline::status).collect())
        });
        Pipelines { running }
    }

    /// Stores and commits the rows that are gathered, and leaves the groups, as far as that takes no longer
    /// than `limit`.
    pub(crate) async fn stop(self, limit: Duration) {
        let mut stopping = JoinSet::new();
        for at in 0..self.running.len() {
            let running = self.running.clone();
            stopping.spawn(async move { running[at].stop().await });
        }
        let all = async { while stopping.join_next().await.is_some() {} };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::warn!(
                "some pipelines could not store what they had gathered within gather.shutdown_timeout_ms: \
                 nothing of it is committed, and the next start reads it again"
            );
        }
    }
}

/// Messages that come back from the dead letters: each is read by the pipeline that it came through.
struct Retrier(Arc<Vec<RunningPipeline>>);

impl MessageRetrier for Retrier {
    fn read<'a>(&'a self, message: &'a MessageDeadLetter) -> Rereading<'a> {
        Box::pin(async move {
            let name = &message.source.pipeline;
            let pipeline = self.0.iter().find(|pipeline| pipeline.name() == name.as_str());
            let pipeline = pipeline.ok_or_else(|| {
                format!("there is no pipeline called {name} here; messages are read again by the one that they came through")
            })?;
            pipeline.revive(message).await
        })
    }
}
