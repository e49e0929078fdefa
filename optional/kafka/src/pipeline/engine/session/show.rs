//! The view of a session: metrics, the log, the rows of `system.windrow_kafka`.

use windrow_engine::sink::Sink;

use super::Session;
use crate::pipeline::accounts::Phase;
use crate::pipeline::engine::push::StoredBatch;
use crate::pipeline::latency::{wall_ms, MissedReason};
use crate::pipeline::status::State;

impl<S: Sink> Session<S> {
    /// Counts a stored batch. For partitions that the pipeline has lost, only late messages are counted.
    pub(super) fn count(&mut self, batch: &StoredBatch) {
        let max_latency_ms = i64::try_from(self.sizes.max_latency.as_millis()).unwrap_or(i64::MAX);
        for range in &batch.ranges {
            let partition = range.range.partition();
            if let Some(own) = self.partitions.get_mut(&partition) {
                own.stored(range.range.next_offset());
            }
            self.pipeline.view.update(&partition, |shown| {
                let m = &shown.metrics;
                let messages: u64 = range.timings.iter().map(|timing| timing.messages).sum();
                m.messages.inc_by(messages);
                m.rows.inc_by(range.rows);
                m.bytes.inc_by(range.bytes);
                m.tombstones.inc_by(range.tombstones);
                m.batches.inc();
                shown.last_token = range.range.to_string();
                for timing in range.timings.iter().filter(|timing| timing.messages > 0) {
                    shown.ended(timing, timing.took(batch.pushed_ms, batch.stored_ms), batch.stored_ms);
                }
            });
            for timing in &range.timings {
                let late = timing.missed(batch.stored_ms, max_latency_ms);
                if late > 0 {
                    let reason = timing.reason(batch.pushed_ms, batch.stored_ms, batch.had_too_many_parts);
                    let took = timing.took(batch.pushed_ms, batch.stored_ms);
                    self.pipeline.view.missed(&partition, reason, late, took);
                }
            }
        }
    }

    pub(super) fn show_held(&mut self) {
        let held_bytes = i64::try_from(self.held_bytes).unwrap_or(i64::MAX);
        self.pipeline.view.metrics.held.inc_by(held_bytes - self.shown_bytes);
        self.shown_bytes = held_bytes;
    }

    pub(super) fn show_partitions(&mut self) {
        self.show_held();
        let has_partitions = !self.partitions.is_empty();
        let view = &self.pipeline.view;
        let is_failing = self.failing.is_some() || self.reading.is_none() && !self.is_describing;
        view.set_state(match (is_failing, has_partitions) {
            (true, _) => State::Failed,
            (false, true) => State::Running,
            (false, false) => State::Waiting,
        });
        for (partition, own) in &mut self.partitions {
            let phase = self.accounts.phase(partition);
            let stored_offset = self.accounts.stored(partition);
            let watermarks = self.consumer.watermarks(&own.claim);
            let end = watermarks.map(|watermarks| watermarks.last_stable.min(watermarks.high));
            let lag = end.zip(stored_offset).map_or(0, |(end, stored)| (end - stored).max(0));
            own.lags(lag);
            let oldest_ms = own.oldest_ms();
            view.update(partition, |shown| {
                shown.state = match phase {
                    Some(Phase::Replaying) => State::Replaying,
                    Some(Phase::Running) if self.is_paused => State::Paused,
                    Some(Phase::Running | Phase::Revoked) => State::Running,
                    Some(Phase::Starting) | None => State::Waiting,
                };
                shown.committed_offset = self.accounts.committed(partition);
                shown.stored_offset = stored_offset;
                shown.high_watermark = watermarks.map(|watermarks| watermarks.high);
                shown.metrics.lag.set(lag);
                shown.metrics.oldest.set(oldest_ms);
                shown.metrics.paused.set(i64::from(self.is_paused));
            });
        }
    }

    /// Reports latency that is too long, also of messages that are not stored yet.
    pub(super) fn complain_of_latency(&mut self) {
        let max_latency_ms = i64::try_from(self.sizes.max_latency.as_millis()).unwrap_or(i64::MAX);
        let now_ms = wall_ms();
        let is_sink_slow = self.failing.is_some() || self.accounts.is_pushing() || self.reading.is_none();
        for (partition, own) in &self.partitions {
            let Some(oldest_ms) = own.oldest_ms() else { continue };
            let age_ms = now_ms.saturating_sub(oldest_ms);
            // What is only just late will be told when it is stored.
            if age_ms > max_latency_ms.saturating_mul(2) {
                let reason = match (is_sink_slow, own.is_waiting()) {
                    (true, _) => MissedReason::SinkSlow,
                    (false, true) => MissedReason::Parse,
                    (false, false) => MissedReason::ConsumerBehind,
                };
                self.pipeline.view.tell_missed_latency(partition, reason, age_ms as f64 / 1e3);
            }
        }
    }
}
