//! The view of a running pipeline: its parts keep it up to date, and status queries read it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::TopicPartition;
use windrow_engine::BatchProgress;

use crate::pipeline::latency::{wall_ms, MissedReason, Timing, Took, Window};
use crate::pipeline::metrics::{ErrorKind, OwnMetrics, PartitionMetrics};
use crate::pipeline::options::PipelineOptions;
use crate::pipeline::status::{Guarantee, LastError, PartitionStatus, PipelineStatus, State};

/// Time within which the same error is written to the log only once.
const SAY_AGAIN: Duration = Duration::from_secs(10);

pub(crate) struct View {
    pub(crate) metrics: OwnMetrics,
    name: String,
    group: String,
    database: String,
    table: String,
    format: String,
    max_latency: Duration,
    inner: Mutex<Inner>,
}

struct Inner {
    guarantee: Guarantee,
    /// State of the pipeline as a whole.
    state: State,
    last_error: Option<LastError>,
    last_token: String,
    /// Progress of the batch that is on its way.
    progress: Option<BatchProgress>,
    partitions: BTreeMap<TopicPartition, Shown>,
    /// Number of times that a partition was given to one of the pipeline's consumers.
    given: u64,
    complained: Option<(String, Instant)>,
    missed: Option<Instant>,
}

/// The view of one partition.
pub(crate) struct Shown {
    given: u64,
    pub(crate) metrics: PartitionMetrics,
    pub(crate) state: State,
    pub(crate) committed_offset: Option<i64>,
    pub(crate) stored_offset: Option<i64>,
    pub(crate) high_watermark: Option<i64>,
    pub(crate) last_error: Option<LastError>,
    pub(crate) last_token: String,
    window: Window,
}

impl View {
    pub(crate) fn new(options: &PipelineOptions, metrics: OwnMetrics) -> View {
        let guarantee = if options.exactly_once { Guarantee::ExactlyOnce } else { Guarantee::AtLeastOnce };
        View {
            metrics,
            name: options.name.clone(),
            group: options.group.clone(),
            database: options.database.clone(),
            table: options.table.clone(),
            format: options.format.name.clone(),
            max_latency: options.max_latency,
            inner: Mutex::new(Inner {
                guarantee,
                state: State::Waiting,
                last_error: None,
                last_token: String::new(),
                progress: None,
                partitions: BTreeMap::new(),
                given: 0,
                complained: None,
                missed: None,
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn set_guarantee(&self, guarantee: Guarantee) {
        self.inner().guarantee = guarantee;
    }

    pub(crate) fn set_state(&self, state: State) {
        self.inner().state = state;
    }

    /// Marks the pipeline as stopped until the gateway starts again.
    pub(crate) fn stopped(&self, text: &str) {
        let mut inner = self.inner();
        inner.state = State::Stopped;
        inner.last_error = Some(error_now(text));
        drop(inner);
        tracing::error!(pipeline = %self.name, "{text}");
    }

    pub(crate) fn set_progress(&self, progress: Option<BatchProgress>) {
        self.inner().progress = progress;
    }

    pub(crate) fn set_token(&self, token: &str) {
        token.clone_into(&mut self.inner().last_token);
    }

    /// Reports an error of the environment. The failed step is tried again.
    pub(crate) fn trouble(&self, kind: ErrorKind, text: &str) {
        self.metrics.error(kind);
        let mut inner = self.inner();
        inner.last_error = Some(error_now(text));
        let is_said = inner.complained.as_ref().is_some_and(|(said, at)| said == text && at.elapsed() < SAY_AGAIN);
        if !is_said {
            inner.complained = Some((text.to_owned(), Instant::now()));
            drop(inner);
            tracing::warn!(pipeline = %self.name, concerns = kind.as_str(), "{text}");
        }
    }

    pub(crate) fn kafka_trouble(&self, text: &str) {
        self.trouble(ErrorKind::Kafka, text);
    }

    /// Adds a partition, and returns a number for [`View::gone`].
    pub(crate) fn assigned(&self, partition: &TopicPartition) -> u64 {
        let mut inner = self.inner();
        inner.given += 1;
        let given = inner.given;
        let shown = Shown {
            given,
            metrics: self.metrics.for_partition(partition),
            state: State::Waiting,
            committed_offset: None,
            stored_offset: None,
            high_watermark: None,
            last_error: None,
            last_token: String::new(),
            window: Window::default(),
        };
        inner.partitions.insert(partition.clone(), shown);
        given
    }

    /// Removes a partition, unless it was given again under another number: another of the pipeline's
    /// consumers may be given it before the one that lost it learns of that.
    pub(crate) fn gone(&self, partition: &TopicPartition, given: u64) {
        let mut inner = self.inner();
        if inner.partitions.get(partition).is_some_and(|shown| shown.given == given) {
            inner.partitions.remove(partition);
            self.metrics.forget_partition(partition);
        }
    }

    pub(crate) fn update(&self, partition: &TopicPartition, change: impl FnOnce(&mut Shown)) {
        if let Some(shown) = self.inner().partitions.get_mut(partition) {
            change(shown);
        }
    }

    /// Counts messages that were stored late. A line in the log says so now and then, with the times of the stages.
    pub(crate) fn missed(&self, partition: &TopicPartition, reason: MissedReason, messages: u64, took: Took) {
        self.metrics.missed(reason, messages);
        let max_latency_seconds = self.max_latency.as_secs_f64();
        if self.is_time_to_tell_of_latency() {
            tracing::warn!(
                pipeline = %self.name, %partition, reason = reason.as_str(), max_latency_seconds,
                latency_seconds = took.high, kafka_seconds = took.kafka, gathering_seconds = took.gathering,
                storing_seconds = took.storing, "max_latency is missed"
            );
        }
    }

    /// Writes a line to the log, now and then, about messages that are late already and not stored yet.
    pub(crate) fn tell_missed_latency(&self, partition: &TopicPartition, reason: MissedReason, age_seconds: f64) {
        if self.is_time_to_tell_of_latency() {
            tracing::warn!(
                pipeline = %self.name, %partition, reason = reason.as_str(), oldest_unstored_seconds = age_seconds,
                max_latency_seconds = self.max_latency.as_secs_f64(), "max_latency is missed by what is not stored yet"
            );
        }
    }

    fn is_time_to_tell_of_latency(&self) -> bool {
        let mut inner = self.inner();
        let may = inner.missed.is_none_or(|at| at.elapsed() >= SAY_AGAIN);
        if may {
            inner.missed = Some(Instant::now());
        }
        may
    }

    pub(crate) fn status(&self) -> PipelineStatus {
        let mut inner = self.inner();
        let now_ms = wall_ms();
        let progress = inner.progress.as_ref().map(BatchProgress::get);
        let failing = progress.filter(|progress| progress.failed_attempts > 0);
        if let Some(error) = failing.as_ref().and_then(|progress| progress.last_error.as_ref()) {
            let text = error.to_string();
            if inner.last_error.as_ref().is_none_or(|known| known.text != text) {
                inner.last_error = Some(error_now(&text));
            }
        }
        let state = match inner.state {
            State::Running if failing.is_some() => State::Failed,
            state => state,
        };
        let partitions = inner.partitions.iter_mut().map(|(partition, shown)| shown.status(partition, state, now_ms));
        let partitions = partitions.collect();
        PipelineStatus {
            pipeline: self.name.clone(),
            group: self.group.clone(),
            database: self.database.clone(),
            table: self.table.clone(),
            format: self.format.clone(),
            guarantee: inner.guarantee,
            state,
            max_latency_seconds: self.max_latency.as_secs_f64(),
            rebalances: self.metrics.rebalances.get(),
            replays: self.metrics.replays.get(),
            last_error: inner.last_error.clone(),
            last_token: inner.last_token.clone(),
            partitions,
        }
    }
}

impl Shown {
    /// Counts messages that have come to their end.
    pub(crate) fn ended(&mut self, timing: &Timing, took: Took, stored_ms: i64) {
        let (m, messages) = (&self.metrics, timing.messages);
        let kafka = |ms: i64| timing.fetched_ms.saturating_sub(ms).max(0) as f64 / 1e3;
        m.kafka.observe(kafka(timing.newest_ms), kafka(timing.oldest_ms), messages);
        m.gathering.observe(took.gathering, took.gathering, messages);
        m.storing.observe(took.storing, took.storing, messages);
        m.total.observe(took.low, took.high, messages);
        self.window.observe(stored_ms, took, messages);
    }

    fn status(&mut self, partition: &TopicPartition, of_pipeline: State, now_ms: i64) -> PartitionStatus {
        let (m, means) = (&self.metrics, self.window.means(now_ms));
        // What the whole pipeline suffers from counts for each partition.
        let state = match of_pipeline {
            State::Failed | State::Stopped => of_pipeline,
            _ => self.state,
        };
        PartitionStatus {
            topic: partition.topic.clone(),
            partition: partition.partition,
            state,
            committed_offset: self.committed_offset,
            stored_offset: self.stored_offset,
            high_watermark: self.high_watermark,
            lag_messages: m.lag.get().max(0) as u64,
            oldest_unstored_seconds: m.oldest.seconds(),
            latency: self.window.quantiles(now_ms),
            kafka_seconds: means.kafka_seconds,
            gathering_seconds: means.gathering_seconds,
            storing_seconds: means.storing_seconds,
            messages: m.messages.get(),
            rows: m.rows.get(),
            bytes: m.bytes.get(),
            batches: m.batches.get(),
            dead_letters: m.dead_letters.get(),
            skipped: m.skipped.get(),
            tombstones: m.tombstones.get(),
            truncated_offsets: m.truncated.get(),
            last_error: self.last_error.clone(),
            last_token: self.last_token.clone(),
        }
    }
}

pub(crate) fn error_now(text: &str) -> LastError {
    LastError { text: text.to_owned(), at_wall_micros: (wall_ms().max(0) as u64).saturating_mul(1_000) }
}
