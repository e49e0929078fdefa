//! The set-up of a session, and the loop that begins the next one.

use std::sync::Arc;
use std::time::Duration;

use crate::consumer::{self, Consumer, ConsumerOptions};
use crate::Client;
use tokio::sync::watch;
use tokio::time::Instant;
use windrow_engine::{dead_letters::DeadLetters, policy::FlushLimits, sink::Sink, DataKind, Gatherer, InsertKind};

use crate::pipeline::engine::chunk::Reading;
use crate::pipeline::engine::endless_retries;
use crate::pipeline::engine::push::Pusher;
use crate::pipeline::engine::read::Readers;
use crate::pipeline::engine::revive::Current;
use crate::pipeline::engine::session::{Session, SessionEnd};
use crate::pipeline::engine::sizes::Sizes;
use crate::pipeline::engine::start::Existing;
use crate::pipeline::metrics::ErrorKind;
use crate::pipeline::options::{PipelineOptions, Topics};
use crate::pipeline::plan;
use crate::pipeline::status::{Guarantee, State};
use crate::pipeline::tables::Tables;
use crate::pipeline::view::View;

/// The parts of a pipeline that last longer than a session.
pub(crate) struct Pipeline<S: Sink> {
    pub(crate) options: Arc<PipelineOptions>,
    pub(crate) gatherer: Gatherer<S>,
    pub(crate) dead_letters: Option<Arc<DeadLetters>>,
    pub(crate) tables: Arc<dyn Tables>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) current: Arc<Current>,
    pub(crate) existing: Arc<Existing>,
    pub(crate) view: Arc<View>,
    /// True from the time on when the pipeline has to stop.
    pub(crate) stop: watch::Receiver<bool>,
}

impl<S: Sink> Clone for Pipeline<S> {
    fn clone(&self) -> Self {
        Pipeline {
            options: self.options.clone(),
            gatherer: self.gatherer.clone(),
            dead_letters: self.dead_letters.clone(),
            tables: self.tables.clone(),
            readers: self.readers.clone(),
            current: self.current.clone(),
            existing: self.existing.clone(),
            view: self.view.clone(),
            stop: self.stop.clone(),
        }
    }
}

/// Time after which a session counts as good, so that the pauses begin with the shortest again.
const LASTING: Duration = Duration::from_secs(30);

/// Runs one of the pipeline's consumers, session after session.
pub(crate) async fn run<S: Sink>(mut pipeline: Pipeline<S>) {
    let mut backoff = endless_retries();
    loop {
        pipeline.view.set_state(State::Waiting);
        let mut stop = pipeline.stop.clone();
        let begun = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            begun = begin(&pipeline) => begun,
        };
        match begun {
            Ok(session) => {
                let began = Instant::now();
                let end = session.run().await;
                // One that ends as soon as it has begun will do so again.
                if began.elapsed() >= LASTING {
                    backoff.reset();
                }
                match end {
                    SessionEnd::Stopped => break,
                    SessionEnd::Refused(text) => return stay_stopped(&pipeline, &text),
                    SessionEnd::Again => {}
                }
            }
            Err((kind, text)) => {
                pipeline.view.trouble(kind, &text);
                pipeline.view.set_state(State::Failed);
            }
        }
        tokio::select! {
            biased;
            _ = pipeline.stop.wait_for(|stop| *stop) => break,
            () = backoff.pause() => {}
        }
    }
    pipeline.view.set_state(State::Stopped);
}

/// Shows that the pipeline has stopped, until the next start of the gateway.
fn stay_stopped<S: Sink>(pipeline: &Pipeline<S>, text: &str) {
    let text = format!("the pipeline has stopped, since on_error = \"stop\": {text}");
    pipeline.view.stopped(&text);
}

async fn begin<S: Sink>(pipeline: &Pipeline<S>) -> Result<Session<S>, (ErrorKind, String)> {
    let options = &pipeline.options;
    let kafka = |error: crate::Error| (ErrorKind::Kafka, error.to_string());
    let client = Client::connect(options.client.clone()).await.map_err(kafka)?;
    pipeline.existing.find(&client, &options.topics).await.map_err(kafka)?;
    let sizes = Sizes::of(options);
    let joined = Consumer::join(client.clone(), consumer_options(options, &sizes)).map_err(kafka)?;
    let pusher = Pusher {
        gatherer: pipeline.gatherer.clone(),
        dead_letters: pipeline.dead_letters.clone(),
        client,
        readers: pipeline.readers.clone(),
        options: options.clone(),
        view: pipeline.view.clone(),
        kind: Arc::new(insert_kind(options)),
    };
    Ok(Session::new(pipeline.clone(), pusher, joined, sizes))
}

/// Describes the table as it is now, and makes the plan to read messages into it.
pub(crate) async fn read_table<S: Sink>(pipeline: &Pipeline<S>) -> Result<Reading, (ErrorKind, String)> {
    let options = &pipeline.options;
    let described = pipeline.tables.describe(&options.database, &options.table, options.exactly_once).await;
    let description = described.map_err(|error| (ErrorKind::Table, error.to_string()))?;
    let plan = plan::plan(options, &description).map_err(|fault| (ErrorKind::Table, fault.to_string()))?;
    Ok(Reading::new(Arc::new(plan), description))
}

/// Shows the guarantee that the table allows, in the log and in the view.
pub(crate) fn tell_guarantee(view: &View, options: &PipelineOptions, reading: &Reading) {
    let is_exact = reading.deduplicates(options);
    view.set_guarantee(if is_exact { Guarantee::ExactlyOnce } else { Guarantee::AtLeastOnce });
    let (pipeline, table) = (&options.name, format!("{}.{}", options.database, options.table));
    match &reading.description.no_deduplication {
        _ if !options.exactly_once => tracing::info!(%pipeline, %table, "rows are stored at least once, as it is set"),
        None => tracing::info!(%pipeline, %table, "rows are stored exactly once"),
        Some(why) => {
            tracing::warn!(%pipeline, %table, %why, "rows are stored at least once: after a crash some may be stored again")
        }
    }
}

fn consumer_options(options: &PipelineOptions, sizes: &Sizes) -> ConsumerOptions {
    let topics = match &options.topics {
        Topics::Named(names) => consumer::Topics::Named(names.clone()),
        Topics::Pattern(pattern) => consumer::Topics::Pattern(pattern.clone()),
    };
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let session_timeout_ms = millis(options.session_timeout);
    ConsumerOptions {
        session_timeout_ms,
        heartbeat_interval_ms: (session_timeout_ms / 3).max(1),
        metadata_refresh_ms: millis(options.metadata_refresh),
        fetch: sizes.fetch,
        max_prefetch_bytes: sizes.prefetch_bytes,
        ..ConsumerOptions::new(topics, options.group.clone())
    }
}

fn insert_kind(options: &PipelineOptions) -> InsertKind {
    InsertKind {
        query: format!("INSERT INTO {}.{} FORMAT {}", options.database, options.table, options.format.name),
        format: options.format.name.clone(),
        data_kind: DataKind::Parsed,
        limits: FlushLimits::default(),
    }
}
