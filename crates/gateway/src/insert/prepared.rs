use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use windrow_gatherer::{AckLevel, Gatherer, InsertKind, Shape};
use windrow_sink::{Destination, Sink};

use super::answer_form::AnswerForm;
use super::dedup_plan::DedupPlan;
use super::renewal::Renewal;
use super::ways::{Gatherable, Kinship, NotGatherable, Ways};

/// Everything about an insert but its payload: admitted, and ready for the payloads of many.
pub(crate) struct Prepared {
    ways: Ways,
    /// Where its inserts go, for the log: how they are written is each way's own.
    pub(crate) destination: Destination,
    pub(crate) ack: AckLevel,
    /// Its batch is sealed with it: it did not ask to be gathered.
    pub(crate) at_once: bool,
    /// Where repeats are to be recognised.
    pub(crate) dedup: Option<DedupPlan>,
    pub(crate) wait_timeout: Duration,
    pub(crate) answer_form: AnswerForm,
    pub(crate) kind: Arc<InsertKind>,
    /// When the backend said what the table is.
    pub(crate) schema_asked_at: Instant,
    /// One per kinship of the payloads that have come so far.
    shapes: RwLock<Vec<(Kinship, Arc<Shape>)>>,
    prepared_at: Instant,
    pub(crate) renewal: Renewal,
}

impl Prepared {
    pub(crate) fn new(
        ways: Ways,
        ack: AckLevel,
        wait_timeout: Duration,
        kind: InsertKind,
        destination: Destination,
    ) -> Prepared {
        Prepared {
            ways,
            destination,
            ack,
            at_once: false,
            dedup: None,
            wait_timeout,
            answer_form: AnswerForm::default(),
            kind: Arc::new(kind),
            schema_asked_at: Instant::now(),
            shapes: RwLock::default(),
            prepared_at: Instant::now(),
            renewal: Renewal::default(),
        }
    }

    pub(crate) fn read(&self, payload: &[u8]) -> Result<Gatherable, NotGatherable> {
        self.ways.read(payload, &self.kind)
    }

    /// Whether payloads name columns that the table didn't have when it was asked for, which is some time ago: it may have
    /// them by now.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.ways.has_skipped() && self.schema_asked_at.elapsed() >= Self::BELIEVED_FOR
    }

    /// For so long nobody doubts what a table is. Clients that always send more than there are columns ask no oftener.
    pub(crate) const BELIEVED_FOR: Duration = Duration::from_millis(500);

    /// What its inserts of this kinship have in common.
    pub(crate) fn kind(&self, kinship: &Kinship) -> Arc<InsertKind> {
        match (kinship, &self.ways.opaque) {
            (Kinship::Opaque { .. }, Some(opaque)) => opaque.kind.clone(),
            _ => self.kind.clone(),
        }
    }

    /// The shape of payloads of this kinship.
    pub(crate) fn shape<S: Sink>(&self, kinship: &Kinship, gatherer: &Gatherer<S>) -> Arc<Shape> {
        let known = self.shapes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shape)) = known.iter().find(|(known, _)| known == kinship) {
            return shape.clone();
        }
        drop(known);
        let shape = gatherer.shape(self.ways.destination(kinship));
        let mut shapes = self.shapes.write().unwrap_or_else(PoisonError::into_inner);
        if shapes.len() < 64 {
            shapes.push((kinship.clone(), shape.clone()));
        }
        shape
    }

    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.prepared_at)
    }

    /// True for one caller, once half of `ttl` has passed: it is to ask the backend again, so that nobody has to wait for
    /// the answer when the rest has passed too.
    pub(crate) fn should_renew(&self, ttl: Duration) -> bool {
        self.prepared_at.elapsed() > ttl / 2 && self.renewal.begin()
    }
}

/// The inserts that have been admitted lately, by what they have in common besides the payload.
pub(crate) struct PreparedInserts {
    entries: RwLock<HashMap<Box<[u8]>, Entry>>,
    ttl: Duration,
    /// For so long an answer may be gone by where there is no newer one to be had.
    away_ttl: Duration,
    /// Grows whenever what was learnt from the backend may no longer be so.
    epoch: AtomicU64,
}

struct Entry {
    prepared: Arc<Prepared>,
    epoch: u64,
}

/// What is known of inserts of one kind.
pub(crate) enum Known {
    /// It holds.
    Fresh(Arc<Prepared>),
    /// It was so: the backend is to be asked again, if it can be.
    Earlier(Arc<Prepared>),
    Nothing,
}

const MAX_ENTRIES: usize = 10_000;
/// Statements with a longer head are admitted each time: ten thousand of them would be too much to keep.
const MAX_SIGNATURE_BYTES: usize = 16 * 1024;

impl PreparedInserts {
    pub(crate) fn new(ttl: Duration, away_ttl: Duration) -> PreparedInserts {
        PreparedInserts { entries: RwLock::default(), ttl, away_ttl, epoch: AtomicU64::new(0) }
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(crate) fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn get(&self, signature: &[u8]) -> Known {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = entries.get(signature) else { return Known::Nothing };
        let age = entry.prepared.prepared_at.elapsed();
        match () {
            () if age < self.ttl && entry.epoch == self.epoch() => Known::Fresh(entry.prepared.clone()),
            () if age < self.away_ttl => Known::Earlier(entry.prepared.clone()),
            () => Known::Nothing,
        }
    }

    pub(crate) fn remove(&self, signature: &[u8]) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).remove(signature);
    }

    /// Keeps an insert that was prepared with what was known in `epoch`.
    pub(crate) fn put(&self, signature: &[u8], epoch: u64, prepared: Arc<Prepared>) {
        if signature.len() > MAX_SIGNATURE_BYTES {
            return;
        }
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MAX_ENTRIES {
            let (now_epoch, ttl) = (self.epoch(), self.ttl);
            entries.retain(|_, entry| entry.epoch == now_epoch && entry.prepared.prepared_at.elapsed() < ttl);
            if entries.len() >= MAX_ENTRIES {
                entries.clear();
            }
        }
        entries.insert(signature.into(), Entry { prepared, epoch });
    }
}
