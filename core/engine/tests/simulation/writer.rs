//! A writer: it sends one insert after the other, each with an answer, or given up.

use std::sync::Arc;
use std::time::Duration;

use crate::policy::{FlushLimits, PolicyKind};
use fastrand::Rng;

use super::books::{Level, Told};
use super::hand_over::{hand_over, Part, Patience};
use super::rows::{destination_of, payload_bytes, rows_of};
use super::scenario::WriterPlan;
use super::system::{SimSink, SHARDS};
use super::world::World;
use super::UNDELAYED;
use crate::{AckLevel, DataKind, Gatherer, Insert, InsertKind, QueryId, Shape};

pub(super) struct Writer {
    pub(super) world: World,
    pub(super) gatherer: Gatherer<SimSink>,
    pub(super) number: usize,
    pub(super) life: usize,
    pub(super) plan: WriterPlan,
    /// The most inserts: a thousand seeds are better than a long one.
    pub(super) inserts: usize,
    pub(super) random: Rng,
}

impl Writer {
    pub(super) async fn run(mut self) {
        let (table, plan) = (self.plan.table, self.world.scenario.tables[self.plan.table]);
        let shapes: Vec<Arc<Shape>> =
            (0..=SHARDS).map(|shard| self.gatherer.shape(destination_of(table, plan, shard))).collect();
        let kind = Arc::new(kind_of(&self.world));
        for _ in 0..self.inserts {
            self.pause(self.plan.pause_ms).await;
            if self.world.is_winding_up() {
                return;
            }
            let level = self.plan.levels[self.random.usize(0..self.plan.levels.len())];
            let (mut numbers, mut parts) = (Vec::new(), Vec::new());
            for shard in plan.shards_of_insert(&mut self.random) {
                let shape = shapes[shard as usize].clone();
                let (place, now_ms) = (shape.destination().physical_table(), self.world.time.now_ms());
                let number = self.world.books().send(self.number, place, level, self.life, now_ms);
                let insert = insert_of(number, self.number as u64, level, &shape, &kind);
                numbers.push(number);
                parts.push(Part { shape, insert });
            }
            let patience = self.patience();
            let world = self.world.clone();
            let tell = |part: usize, told| world.tell(numbers[part], told);
            let told = hand_over(&self.gatherer, parts, patience, tell).await;
            if told.iter().any(|told| *told != Told::Acknowledged) {
                self.pause(1_000).await;
            }
        }
    }

    async fn pause(&mut self, most_ms: u64) {
        if most_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.random.u64(0..=most_ms))).await;
        }
    }

    fn patience(&mut self) -> Patience {
        // Who waits for ever for the shard that is away shows nothing of the other.
        let until_stored = match self.world.scenario.shard_away {
            None => self.at_most(2_000),
            Some(_) => Some(UNDELAYED),
        };
        Patience { until_taken: self.at_most(60), until_stored }
    }

    fn at_most(&mut self, ms: u64) -> Option<Duration> {
        self.is_impatient().then(|| Duration::from_millis(self.random.u64(0..ms)))
    }

    fn is_impatient(&mut self) -> bool {
        self.random.u32(0..100) < self.plan.impatient
    }
}

/// Returns an insert whose rows show `number`.
pub(super) fn insert_of(number: u64, writer: u64, level: Level, shape: &Shape, kind: &Arc<InsertKind>) -> Insert {
    Insert {
        rows: rows_of(number, &shape.destination().form),
        payload_bytes: payload_bytes(number),
        writer,
        back_after: None,
        ack: match level {
            Level::Memory => AckLevel::Memory,
            Level::Disk => AckLevel::Disk,
            Level::Stored => AckLevel::Stored,
        },
        patience: Duration::from_secs(30),
        at_once: false,
        dedup: None,
        history: None,
        query_id: QueryId::Given(number.to_string().into()),
        kind: kind.clone(),
        trace: None,
    }
}

pub(super) fn kind_of(world: &World) -> InsertKind {
    let limits = match world.scenario.seed % 3 {
        0 => FlushLimits { kind: PolicyKind::Fixed, busy_timeout_max_ms: 50, ..FlushLimits::default() },
        1 => FlushLimits {
            kind: PolicyKind::Fixed,
            busy_timeout_max_ms: 2_000,
            max_query_number: 5,
            ..FlushLimits::default()
        },
        _ => FlushLimits::default(),
    };
    InsertKind { query: "INSERT INTO t FORMAT X".into(), format: "X".into(), data_kind: DataKind::Parsed, limits }
}
