use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use windrow_clickhouse::Client;
use windrow_columns::Present;
use windrow_engine::{
    sink::{Destination, Sink},
    AckLevel, Gatherer, InsertKind, Shape,
};

use windrow_clickhouse::native::RowShape;

use super::answer_form::AnswerForm;
use super::dedup_plan::DedupPlan;
use super::questions::{Questions, ReadPermit};
use super::readers::{BatchCompatibility, Gatherable, JoinPlan, Readers, Unread};
use crate::admission::{Grounds, ShardOfCut, Sharding, Standing};
use crate::cluster::InsertKey;
use crate::recent::Recent;

/// An admitted insert without its payload, ready for the payloads of many such inserts.
pub(crate) struct Prepared {
    readers: Readers,
    pub(crate) ack: AckLevel,
    /// Says whether the batch is sealed with the insert, which did not ask to be gathered.
    pub(crate) at_once: bool,
    /// Plan by which repeats are recognised, where they are to be.
    pub(crate) dedup: Option<DedupPlan>,
    /// Plan by which a repeat of an insert that was cut by shards is recognised, where rows can't be cut now.
    pub(crate) dedup_by_parts: Option<DedupPlan>,
    /// Says whether the table was found to be another one than before.
    pub(crate) is_made_anew: bool,
    /// Rules by which rows are cut, where the shards of their table get them directly.
    pub(crate) sharding: Option<Sharding>,
    pub(crate) wait_timeout: Duration,
    pub(crate) answer_form: AnswerForm,
    pub(crate) kind: Arc<InsertKind>,
    /// Answers of the backend that the admission is based on.
    pub(crate) grounds: Grounds,
    /// Standing of the admission itself, where only time can tell whether it holds.
    pub(crate) renewal: Standing,
    /// Shapes, one for each batch compatibility that payloads have had so far, and for each shard.
    shapes: RwLock<Vec<KnownShape>>,
}

struct KnownShape {
    compatibility: BatchCompatibility,
    /// Shard that gets the rows, where they are cut.
    shard: Option<ShardOfCut>,
    shape: Arc<Shape>,
}

impl Prepared {
    pub(crate) fn new(
        readers: Readers,
        ack: AckLevel,
        wait_timeout: Duration,
        kind: InsertKind,
        grounds: Grounds,
    ) -> Prepared {
        Prepared {
            readers,
            ack,
            at_once: false,
            dedup: None,
            is_made_anew: false,
            dedup_by_parts: None,
            sharding: None,
            wait_timeout,
            answer_form: AnswerForm::default(),
            kind: Arc::new(kind),
            grounds,
            renewal: Standing::default(),
            shapes: RwLock::default(),
        }
    }

    pub(crate) fn read(&self, payload: &[u8]) -> Result<Gatherable, Unread> {
        self.readers.read(payload, &self.kind)
    }

    /// Returns the permit to ask ClickHouse to read payloads that can't be read here.
    pub(crate) fn permit_to_ask<'q>(&self, questions: &'q Questions) -> Option<ReadPermit<'q>> {
        self.readers.backend.as_ref()?.permit_to_ask(questions)
    }

    /// Lets ClickHouse read a payload. `query_parameters` are those of the request, which expressions may
    /// name. `None`: the insert is to be forwarded.
    pub(crate) async fn ask<'p>(
        &'p self,
        client: &Client,
        permit: ReadPermit<'_>,
        payload: &[u8],
        query_parameters: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Option<Gatherable> {
        self.readers.ask(client, permit, payload, query_parameters).await
    }

    /// Says whether ClickHouse may refuse the rows for the marks that the table collapses rows by.
    pub(crate) fn has_doubtful_marks(&self, read: &Gatherable) -> bool {
        self.grounds.schema.marks.as_ref().is_some_and(|marks| !self.readers.has_sound_marks(marks, read))
    }

    /// Says whether the table was asked for some time ago, and payloads may have been read wrongly if it has
    /// changed since: they name columns that the table didn't have then, or they name no types, and other
    /// types would give other values.
    pub(crate) fn is_doubtful(&self) -> bool {
        (self.readers.has_skipped() || self.readers.name_no_types()) && self.is_old()
    }

    /// Says whether the table was asked for some time ago.
    pub(crate) fn is_old(&self) -> bool {
        self.grounds.schema.confirmed().elapsed() >= Self::BELIEVED_FOR
    }

    /// Time for which the answer about a table is not doubted. Clients that always send fields without a
    /// column cause no more frequent questions.
    pub(crate) const BELIEVED_FOR: Duration = Duration::from_millis(500);

    /// Says whether blocks of rows can be taken, in the format Native.
    pub(crate) fn reads_blocks(&self) -> bool {
        let pass = self.readers.passthrough.as_ref().is_some_and(|reader| matches!(reader.plan, JoinPlan::Blocks(_)));
        pass || self.readers.parsing.as_ref().is_some_and(|parsing| parsing.format.name == "Native")
    }

    /// Returns the key of an insert that names itself, before its rows are read.
    pub(crate) fn key_by_token(&self, token: Option<&str>) -> Option<InsertKey> {
        Some(InsertKey::new(&self.dedup.as_ref()?.keys_of_whole(token?), true))
    }

    /// Says whether rows can be taken that are columns already.
    pub(crate) fn takes_columns(&self) -> bool {
        self.readers.parsing.is_some()
    }

    /// Returns the set of all columns that rows may bring. `None`: rows can't be taken as columns.
    pub(super) fn all_columns(&self) -> Option<Present> {
        self.readers.parsing.as_ref().map(|parsing| Present::all(parsing.plan.columns().len()))
    }

    /// Returns the columns that the inserts are to bring, with their types as the backend writes them.
    pub(crate) fn header(&self) -> Option<Vec<(&str, &str)>> {
        let (schema, columns) = (&self.grounds.schema, &self.destination().columns);
        columns.iter().map(|name| Some((name.as_str(), schema.type_name(name)?))).collect()
    }

    /// Returns the number of columns of such blocks, and the least bytes of a row.
    pub(crate) fn row_shape(&self) -> RowShape {
        let Some(parsing) = &self.readers.parsing else { return RowShape::default() };
        let columns = parsing.plan.columns();
        let bytes = columns.iter().map(|column| column.data_type.fixed_width().unwrap_or(1)).sum();
        RowShape { columns: columns.len(), bytes }
    }

    /// Says whether payloads of this batch compatibility have all columns that an insert may bring.
    pub(super) fn is_whole(&self, compatibility: &BatchCompatibility) -> bool {
        match (compatibility, &self.readers.parsing) {
            (BatchCompatibility::Parsed(present), Some(parsing)) => {
                *present == Present::all(parsing.plan.columns().len())
            }
            (BatchCompatibility::Blocks { are_whole }, _) => *are_whole,
            _ => true,
        }
    }

    /// Returns the destination of the inserts, for the log.
    pub(crate) fn destination(&self) -> &Arc<Destination> {
        self.readers.any_destination()
    }

    /// Returns the kind of the inserts whose payloads have this batch compatibility.
    pub(crate) fn kind(&self, compatibility: &BatchCompatibility) -> Arc<InsertKind> {
        match (compatibility, &self.readers.passthrough) {
            (BatchCompatibility::Passthrough { .. } | BatchCompatibility::Blocks { .. }, Some(passthrough)) => {
                passthrough.kind.clone()
            }
            (BatchCompatibility::BackendRead, _) => {
                self.readers.backend.as_ref().and_then(|backend| backend.kind()).unwrap_or(&self.kind).clone()
            }
            _ => self.kind.clone(),
        }
    }

    /// Returns the shape of payloads of this batch compatibility; where rows are cut, for this shard.
    pub(crate) fn shape<S: Sink>(
        &self,
        compatibility: &BatchCompatibility,
        shard: Option<ShardOfCut>,
        gatherer: &Gatherer<S>,
    ) -> Arc<Shape> {
        let known = self.shapes.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |known: &&KnownShape| known.shard == shard && known.compatibility == *compatibility;
        if let Some(known) = known.iter().find(is_meant) {
            return known.shape.clone();
        }
        drop(known);
        let destination = self.readers.destination(compatibility);
        let shape = gatherer.shape(match self.sharding.as_ref().zip(shard) {
            Some((sharding, shard)) => Arc::new(sharding.destination(&destination, shard)),
            None => destination,
        });
        let mut shapes = self.shapes.write().unwrap_or_else(PoisonError::into_inner);
        let shards = self.sharding.as_ref().map_or(1, |sharding| sharding.count() as usize);
        if shapes.len() < MAX_SHAPES.max(4 * shards) {
            shapes.reserve_exact(1);
            shapes.push(KnownShape { compatibility: compatibility.clone(), shard, shape: shape.clone() });
        }
        shape
    }
}

/// Bound of a statement's shapes: payloads may lack some column or other, but nobody sends so many kinds.
const MAX_SHAPES: usize = 64;

/// Inserts that have been admitted lately, by their signature, which has everything but the payload.
pub(crate) struct PreparedInserts {
    entries: Recent<Box<[u8]>, Arc<Prepared>>,
    /// Notification for the task that keeps admissions on disk.
    changed: Arc<Notify>,
}

/// Bound of the remembered inserts, some 150 MB with all that they refer to. At least half of them are found
/// again, however many others come.
const MAX_ENTRIES: usize = 40_000;
/// Bound of a signature. Statements with a longer one are admitted each time: they would be too much to keep.
const MAX_SIGNATURE_BYTES: usize = 16 * 1024;

impl PreparedInserts {
    pub(crate) fn new() -> PreparedInserts {
        PreparedInserts { entries: Recent::new(MAX_ENTRIES), changed: Arc::default() }
    }

    /// Returns the last admission of such inserts, whether it still holds or not.
    pub(crate) fn get(&self, signature: &[u8]) -> Option<Arc<Prepared>> {
        self.entries.get(signature)
    }

    pub(crate) fn remove(&self, signature: &[u8]) {
        let is_kept = self.entries.get(signature).is_some_and(|known| known.ack != AckLevel::Stored);
        self.entries.remove(signature);
        if is_kept {
            self.has_changed();
        }
    }

    pub(crate) fn all(&self) -> Vec<(Box<[u8]>, Arc<Prepared>)> {
        self.entries.entries()
    }

    pub(crate) fn has_changed(&self) {
        self.changed.notify_one();
    }

    pub(crate) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    pub(crate) fn put(&self, signature: &[u8], prepared: Arc<Prepared>) {
        if signature.len() <= MAX_SIGNATURE_BYTES {
            let is_waited_for = prepared.ack == AckLevel::Stored;
            self.entries.put(signature.into(), prepared);
            if !is_waited_for {
                self.has_changed();
            }
        }
    }

    /// Forgets the inserts that have not been used since the call before this one.
    pub(crate) fn age(&self) {
        self.entries.age();
    }
}
