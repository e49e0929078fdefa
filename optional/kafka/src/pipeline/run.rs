//! A pipeline that runs in the background.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use windrow_engine::{
    dead_letters::{DeadLetters, MessageDeadLetter, MessageRows},
    sink::Sink,
    Gatherer,
};

use crate::pipeline::engine;
use crate::pipeline::engine::{Current, Readers};
use crate::pipeline::metrics::PipelineMetrics;
use crate::pipeline::options::PipelineOptions;
use crate::pipeline::registry::SchemaRegistry;
use crate::pipeline::status::PipelineStatus;
use crate::pipeline::tables::Tables;
use crate::pipeline::view::View;

pub struct Pipeline;

/// A running pipeline, which goes on until it is stopped or dropped.
pub struct RunningPipeline {
    view: Arc<View>,
    group: String,
    readers: Arc<Readers>,
    current: Arc<Current>,
    stop: watch::Sender<bool>,
    consumers: tokio::sync::Mutex<JoinSet<()>>,
}

impl Pipeline {
    /// Starts the pipeline. Errors from here on are shown, and the failed step is tried again. Without
    /// `dead_letters`, messages that can't be stored are left out.
    pub fn start<S: Sink>(
        options: PipelineOptions,
        gatherer: Gatherer<S>,
        dead_letters: Option<Arc<DeadLetters>>,
        tables: Arc<dyn Tables>,
        metrics: &PipelineMetrics,
    ) -> RunningPipeline {
        let own = metrics.for_pipeline(&options.name, options.max_latency.as_secs_f64());
        let view = Arc::new(View::new(&options, own));
        let registry = options.format.registry.as_ref().and_then(|registry| match SchemaRegistry::new(registry) {
            Ok(registry) => Some(registry),
            Err(text) => {
                view.trouble(crate::pipeline::metrics::ErrorKind::Registry, &text);
                None
            }
        });
        let settings = options.format.settings.clone();
        let readers = Arc::new(Readers::new(tables.clone(), registry, options.on_error, settings));
        let (group, current) = (options.group.clone(), Arc::<Current>::default());
        let (stop, stopped) = watch::channel(false);
        let count = options.overrides.consumers.unwrap_or(1).max(1);
        let pipeline = engine::Pipeline {
            options: Arc::new(options),
            gatherer,
            dead_letters,
            tables,
            readers: readers.clone(),
            current: current.clone(),
            existing: Arc::default(),
            view: view.clone(),
            stop: stopped,
        };
        let mut consumers = JoinSet::new();
        for _ in 0..count {
            consumers.spawn(engine::run(pipeline.clone()));
        }
        RunningPipeline { view, group, readers, current, stop, consumers: consumers.into() }
    }
}

impl RunningPipeline {
    pub fn name(&self) -> &str {
        self.view.name()
    }

    pub fn status(&self) -> PipelineStatus {
        self.view.status()
    }

    /// Reads a message of this pipeline that is a dead letter, for another attempt to store it.
    ///
    /// # Errors
    /// Fails where the message's batch is not committed, the message can't be read, or brokers or table can't
    /// be reached.
    pub async fn revive(&self, dead_letter: &MessageDeadLetter) -> Result<MessageRows, String> {
        engine::revive(&self.current, &self.readers, &self.group, dead_letter).await
    }

    /// Stops gathering, stores the gathered messages if that is possible soon, and leaves the group.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut consumers = self.consumers.lock().await;
        while consumers.join_next().await.is_some() {}
    }
}
