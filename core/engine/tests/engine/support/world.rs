use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::registry::Registry;
use windrow_clickhouse::ErrorCode;
use windrow_engine::{
    policy::{FlushLimits, PolicyKind},
    sink::BatchId,
    AckLevel, BatchTicket, DataKind, DedupKeys, DeduplicationBounds, Gatherer, GathererOptions, Insert, InsertError,
    InsertKind, InsertStatus, PushError, PushedBatch, PushedMember, QueryId, Shape, Stores, TableKey, Ticket,
};

use super::dead_letters::FakeDeadLetters;
use super::rows::{rows_for, shape_of};
use super::sink::FakeSink;

/// A gatherer on a scripted sink. Its buffers are sealed by number of inserts or by command, never by time.
pub struct World {
    pub gatherer: Gatherer<FakeSink>,
    pub sink: FakeSink,
    pub dead_letters: FakeDeadLetters,
    kind: Arc<InsertKind>,
    stale: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// Creates a world whose batches are of `inserts_per_batch`.
    pub fn sealing_at(inserts_per_batch: u64) -> World {
        World::with(inserts_per_batch, GathererOptions::default())
    }

    /// Creates a world whose batches are only sealed by a flush.
    pub fn sealing_on_command() -> World {
        World::sealing_at(u64::MAX)
    }

    pub fn with(inserts_per_batch: u64, options: GathererOptions) -> World {
        let dead_letters = FakeDeadLetters::default();
        let stores = Stores { dead_letters: Some(Arc::new(dead_letters.clone())), ..Stores::none() };
        World::on(FakeSink::new(), dead_letters, stores, inserts_per_batch, options)
    }

    /// Creates a world on these parts. `dead_letters` is the store of dead letters that `stores` has.
    pub fn on(
        sink: FakeSink,
        dead_letters: FakeDeadLetters,
        stores: Stores,
        inserts_per_batch: u64,
        options: GathererOptions,
    ) -> World {
        let limits = FlushLimits {
            kind: PolicyKind::Fixed,
            busy_timeout_max_ms: 3_600_000,
            max_query_number: inserts_per_batch,
            ..FlushLimits::default()
        };
        let kind = InsertKind {
            query: "INSERT INTO t FORMAT JSONEachRow".into(),
            format: "JSONEachRow".into(),
            data_kind: DataKind::Parsed,
            limits,
        };
        let stale = Arc::new(Mutex::new(Vec::new()));
        let told = stale.clone();
        let gatherer = Gatherer::open(sink.clone(), options, stores, &mut Registry::default(), move |table| {
            told.lock().unwrap().push(table.table.clone());
        });
        World { gatherer, sink, dead_letters, kind: Arc::new(kind), stale }
    }

    pub fn shape(&self, table: &str, role: &str) -> Arc<Shape> {
        self.gatherer.shape(shape_of(table, role))
    }

    /// Returns a shape whose table recognises a batch that comes again.
    pub fn deduplicating_shape(&self, table: &str) -> Arc<Shape> {
        let mut destination = shape_of(table, "deduplicates");
        destination.deduplicates = true;
        self.gatherer.shape(destination)
    }

    /// Returns an insert of these rows. Its id in the log is the first row's number.
    pub fn insert(&self, shape: &Shape, rows: &[u64], waits: bool) -> Insert {
        Insert {
            rows: rows_for(shape.destination(), rows),
            payload_bytes: 30 * rows.len() as u64,
            writer: rows[0],
            back_after: None,
            ack: if waits { AckLevel::Stored } else { AckLevel::Memory },
            patience: Duration::from_secs(86_400),
            at_once: false,
            dedup: None,
            history: None,
            query_id: QueryId::Given(rows[0].to_string().into()),
            kind: self.kind.clone(),
            trace: None,
        }
    }

    pub async fn try_push(&self, shape: &Arc<Shape>, row: u64) -> Result<Option<Ticket>, PushError> {
        self.gatherer.push(shape, self.insert(shape, &[row], true)).await
    }

    /// Pushes an insert of one row that a client waits for.
    pub async fn push(&self, shape: &Arc<Shape>, row: u64) -> Ticket {
        self.push_rows(shape, &[row]).await
    }

    pub async fn push_rows(&self, shape: &Arc<Shape>, rows: &[u64]) -> Ticket {
        let pushed = self.gatherer.push(shape, self.insert(shape, rows, true)).await;
        pushed.expect("there is room").expect("who waits gets a ticket")
    }

    pub async fn push_all(&self, shape: &Arc<Shape>, rows: impl IntoIterator<Item = u64>) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        for row in rows {
            tickets.push(self.push(shape, row).await);
        }
        tickets
    }

    /// Pushes an insert of one row at ack level `memory`.
    pub async fn leave(&self, shape: &Arc<Shape>, row: u64) {
        let pushed = self.gatherer.push(shape, self.insert(shape, &[row], false)).await;
        assert!(pushed.expect("there is room").is_none(), "who doesn't wait gets no ticket");
    }

    /// Pushes an insert at ack level `disk`; ends when it is acknowledged.
    pub async fn keep(&self, shape: &Arc<Shape>, row: u64) -> Result<(), PushError> {
        let insert = Insert { ack: AckLevel::Disk, ..self.insert(shape, &[row], false) };
        let pushed = self.gatherer.push(shape, insert).await?;
        assert!(pushed.is_none(), "who doesn't wait gets no ticket");
        Ok(())
    }

    pub async fn keep_all(&self, shape: &Arc<Shape>, rows: impl IntoIterator<Item = u64>) {
        for row in rows {
            self.keep(shape, row).await.expect("there is room");
        }
    }

    /// Pushes an insert that a client waits for, with the deduplication key `key`.
    pub async fn push_keyed(&self, shape: &Arc<Shape>, row: u64, key: u128) -> Ticket {
        let insert = Insert {
            dedup: Some(DedupKeys::new(1, key, Vec::new(), DeduplicationBounds::DEFAULT)),
            ..self.insert(shape, &[row], true)
        };
        self.gatherer.push(shape, insert).await.expect("there is room").expect("who waits gets a ticket")
    }

    /// Returns a member of a batch that its source has put together, in blocks of one row each.
    pub fn member(&self, shape: &Shape, rows: &[u64]) -> PushedMember {
        PushedMember {
            rows: rows.iter().map(|row| rows_for(shape.destination(), &[*row])).collect(),
            payload_bytes: 30 * rows.len() as u64,
            gathered_for: Duration::ZERO,
            query_id: QueryId::Given(rows[0].to_string().into()),
            kind: self.kind.clone(),
        }
    }

    pub fn batch(&self, shape: &Shape, id: u128, members: &[&[u64]]) -> PushedBatch {
        let members = members.iter().map(|rows| self.member(shape, rows)).collect();
        PushedBatch { id: BatchId(id), members, sent_before: false }
    }

    pub async fn push_batch(&self, shape: &Arc<Shape>, id: u128, members: &[&[u64]]) -> BatchTicket {
        self.gatherer.push_batch(shape, self.batch(shape, id, members)).await.expect("the gatherer is open")
    }

    pub async fn flush(&self) {
        self.gatherer.flush(None).await;
        // Dead letters are handed over beside it.
        self.settle_down().await;
    }

    pub async fn flush_table(&self, table: &str) {
        self.gatherer.flush(Some(&[TableKey { database: "default".into(), table: table.into() }])).await;
    }

    /// Lets every task go on until it waits for something.
    pub async fn settle_down(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Returns the tables that were reported as changed, in order.
    pub fn stale_tables(&self) -> Vec<String> {
        self.stale.lock().unwrap().clone()
    }

    /// Returns query ids and statuses of all inserts in the log, oldest first.
    pub fn logged(&self) -> Vec<(String, InsertStatus)> {
        let batches = self.gatherer.log();
        let inserts = batches.iter().flat_map(|batch| batch.inserts.iter());
        inserts.map(|insert| (insert.query_id.to_string(), insert.status)).collect()
    }
}

/// Returns the outcomes of all tickets, with the code of an exception and the kind of any other error.
pub async fn outcomes(tickets: Vec<Ticket>) -> Vec<Result<(), Told>> {
    let mut outcomes = Vec::new();
    for mut ticket in tickets {
        outcomes.push(ticket.outcome().await.map_err(Told::from));
    }
    outcomes
}

/// The outcome that a client was told, as far as the tests need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Exception(ErrorCode),
    OutcomeUnknown,
    Unreachable,
}

impl From<InsertError> for Told {
    fn from(error: InsertError) -> Told {
        match error {
            InsertError::Exception(exception) | InsertError::Failed(exception) => Told::Exception(exception.code),
            InsertError::OutcomeUnknown(_) => Told::OutcomeUnknown,
            InsertError::Unreachable(_) => Told::Unreachable,
        }
    }
}
