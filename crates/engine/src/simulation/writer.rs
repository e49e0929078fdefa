//! A client: one insert after the other, each with an answer, or given up.

use std::sync::Arc;
use std::time::Duration;

use crate::policy::{FlushLimits, PolicyKind};
use fastrand::Rng;

use super::books::{Level, Told};
use super::rows::{destination_of, payload_bytes, rows_of};
use super::scenario::WriterPlan;
use super::system::SimSink;
use super::world::World;
use crate::{
    AckLevel, DataKind, Gatherer, Insert, InsertError, InsertKind, PushError, QueryId, Shape, Ticket, Withdrawal,
};

pub(super) struct Writer {
    pub(super) world: World,
    pub(super) gatherer: Gatherer<SimSink>,
    pub(super) number: usize,
    pub(super) life: usize,
    pub(super) plan: WriterPlan,
    /// At the most: a thousand seeds are better than a long one.
    pub(super) inserts: usize,
    pub(super) random: Rng,
}

impl Writer {
    pub(super) async fn run(mut self) {
        let deduplicates = self.world.scenario.tables[self.plan.table];
        let shape = self.gatherer.shape(destination_of(self.plan.table, deduplicates));
        let kind = Arc::new(self.kind());
        for _ in 0..self.inserts {
            self.pause(self.plan.pause_ms).await;
            if self.world.is_winding_up() {
                return;
            }
            let level = self.plan.levels[self.random.usize(0..self.plan.levels.len())];
            let number = self.world.books().send(self.number, &shape.destination().table, level, self.life);
            let insert = self.insert(number, level, &shape, &kind);
            let told = self.send(&shape, insert).await;
            self.world.tell(number, told);
            if told != Told::Acknowledged {
                self.pause(1_000).await;
            }
        }
    }

    async fn pause(&mut self, most_ms: u64) {
        if most_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.random.u64(0..=most_ms))).await;
        }
    }

    async fn send(&mut self, shape: &Arc<Shape>, insert: Insert) -> Told {
        let gatherer = self.gatherer.clone();
        let push = gatherer.push(shape, insert);
        let pushed = match self.is_impatient() {
            true => {
                let patience = Duration::from_millis(self.random.u64(0..60));
                match tokio::time::timeout(patience, push).await {
                    Ok(pushed) => pushed,
                    Err(_) => return Told::Nothing,
                }
            }
            false => push.await,
        };
        match pushed {
            Ok(None) => Told::Acknowledged,
            Ok(Some(ticket)) => self.wait(ticket).await,
            Err(error) => told_by_refusal(&error),
        }
    }

    async fn wait(&mut self, mut ticket: Ticket) -> Told {
        if !self.is_impatient() {
            return told_by(&ticket.outcome().await);
        }
        let patience = Duration::from_millis(self.random.u64(0..2_000));
        if let Ok(outcome) = tokio::time::timeout(patience, ticket.outcome()).await {
            return told_by(&outcome);
        }
        match ticket.withdraw().await {
            Withdrawal::Withdrawn { .. } => Told::Refused,
            Withdrawal::InFlight => Told::Nothing,
            Withdrawal::Done(outcome) => told_by(&outcome),
        }
    }

    fn is_impatient(&mut self) -> bool {
        self.random.u32(0..100) < self.plan.impatient
    }

    fn insert(&self, number: u64, level: Level, shape: &Shape, kind: &Arc<InsertKind>) -> Insert {
        Insert {
            rows: rows_of(number, &shape.destination().form),
            payload_bytes: payload_bytes(number),
            writer: self.number as u64,
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

    fn kind(&self) -> InsertKind {
        let limits = match self.world.scenario.seed % 3 {
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
}

fn told_by(outcome: &Result<(), InsertError>) -> Told {
    match outcome {
        Ok(()) => Told::Acknowledged,
        Err(InsertError::OutcomeUnknown(_)) => Told::Nothing,
        Err(InsertError::Exception(_) | InsertError::Failed(_) | InsertError::Unreachable(_)) => Told::Refused,
    }
}

fn told_by_refusal(error: &PushError) -> Told {
    match error {
        PushError::Failed(error) => told_by(&Err(error.clone())),
        // A disk that failed may have it all the same, and show it after a crash.
        PushError::NotJournaled { is_certain: false, .. } => Told::Nothing,
        _ => Told::Refused,
    }
}
