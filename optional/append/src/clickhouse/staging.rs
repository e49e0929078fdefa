//! The staging table of an append that is open: made, filled, given up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::{CallError, Exception};
use windrow_columns::{Block, DataType};

use super::blame::{locate, Stretch};
use super::read::Batch;
use super::server::{failure, may_not, persist, Order, Server, Session};
use super::statements::{create_staging, drop_table, insert_blocks, Name};
use super::table::{altered, Table};
use crate::error::AppendError;
use crate::id::AppendId;
use crate::request::OpenRequest;
use crate::target::Held;

/// The bytes of an INSERT, if they come in time (`INSERT_ROWS` is the number of rows): fewer parts.
const INSERT_BYTES: usize = 16 << 20;
const INSERT_ROWS: usize = 1 << 20;
/// The bytes that all appends together keep back while they wait for more.
const KEPT_BACK_BYTES: u64 = 64 << 20;
/// The time for which ClickHouse may be away before an append fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// The bytes of rows that all appends keep back.
#[derive(Clone, Default)]
pub(super) struct KeptBack(Arc<AtomicU64>);

pub(super) struct Staging {
    pub(super) session: Session,
    pub(super) name: Name,
    id: AppendId,
    table: Arc<Table>,
    waiting: Option<Block>,
    stretches: Vec<Stretch>,
    kept_back: KeptBack,
    counted_bytes: u64,
    inserts: u64,
    pub(super) rows: u64,
}

impl Staging {
    pub(super) async fn make(
        server: &Server,
        id: AppendId,
        opening: &OpenRequest,
        table: Arc<Table>,
        kept_back: KeptBack,
    ) -> Result<Staging, AppendError> {
        let name = table.name.staging(id);
        let statements = create_staging(&name, &table.name, &table);
        let own = server.own();
        let session = match make(&own, &name, &statements).await {
            Ok(()) => own,
            Err(error) if may_not(&error) => {
                let session = server.session(opening.credentials.clone());
                make(&session, &name, &statements).await.map_err(failure)?;
                session
            }
            Err(error) => return Err(failure(error)),
        };
        match persist(PATIENCE, || altered(&session, &name, &table)).await {
            Ok(None) => {}
            Ok(Some(error)) => return Err(error),
            Err(error) => return Err(failure(error)),
        }
        let (waiting, stretches, counted_bytes, inserts, rows) = (None, Vec::new(), 0, 0, 0);
        Ok(Staging { session, name, id, table, waiting, stretches, kept_back, counted_bytes, inserts, rows })
    }

    pub(super) async fn put(&mut self, batches: Vec<Held<Batch>>) -> Result<(), AppendError> {
        for Held { number, batch } in batches {
            self.join(number, batch.block);
            if self.is_enough() {
                self.flush().await?;
            }
        }
        self.count();
        match self.kept_back.0.load(Ordering::Relaxed) > KEPT_BACK_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    fn join(&mut self, number: u64, block: Block) {
        let rows = block.rows() as u64;
        if rows == 0 {
            return;
        }
        self.stretches.push(Stretch { batch: number, rows });
        self.rows += rows;
        match &mut self.waiting {
            Some(waiting) => waiting.append(&block),
            None => self.waiting = Some(block),
        }
    }

    fn is_enough(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.bytes() >= INSERT_BYTES || waiting.rows() >= INSERT_ROWS)
    }

    fn count(&mut self) {
        let bytes = self.waiting.as_ref().map_or(0, |waiting| waiting.bytes() as u64);
        self.kept_back.0.fetch_add(bytes, Ordering::Relaxed);
        self.kept_back.0.fetch_sub(self.counted_bytes, Ordering::Relaxed);
        self.counted_bytes = bytes;
    }

    /// Sends the rows that wait.
    pub(super) async fn flush(&mut self) -> Result<(), AppendError> {
        let (waiting, stretches) = (self.waiting.take(), std::mem::take(&mut self.stretches));
        self.count();
        let Some(block) = waiting else { return Ok(()) };
        let columns = self.table.written();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let types: Vec<DataType> = columns.iter().map(|column| column.sent.clone()).collect();
        let (statement, body) = (insert_blocks(&self.name, &names), block.into_native(&names, &types));
        self.inserts += 1;
        let token = format!("windrow-append-{}-{}", self.id, self.inserts);
        let settings = [
            ("insert_deduplication_token", token.as_str()),
            ("insert_deduplicate", "1"),
            // One block, one part for each partition, in the order of the rows.
            ("min_insert_block_size_rows", "0"),
            ("min_insert_block_size_bytes", "0"),
            ("max_insert_threads", "1"),
            // What an INSERT into the table itself would collapse is collapsed when it is merged there; here rows are
            // counted.
            ("optimize_on_insert", "0"),
        ];
        let order = Order { statement: &statement, query_id: &token, settings: &settings, body: &body };
        let sent = persist(PATIENCE, || self.session.order(&order)).await;
        sent.map_err(|error| match error {
            CallError::Exception(exception) => locate(self.as_of_target(exception), &stretches),
            error => failure(error),
        })
    }

    /// Returns the error with the target's name: the user knows nothing of a staging table.
    fn as_of_target(&self, exception: Exception) -> Exception {
        Exception { line: exception.line.replace(&self.name.table, &self.table.name.table), ..exception }
    }

    /// Gives up the rows that wait.
    pub(super) fn forget(&mut self) {
        self.waiting = None;
        self.count();
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn id(&self) -> AppendId {
        self.id
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Makes the staging table. A table of that name that is there was made by an attempt whose answer was lost,
/// and is empty.
async fn make(session: &Session, name: &Name, statements: &[String]) -> Result<(), CallError> {
    let mut is_first = true;
    persist(PATIENCE, move || {
        let clears = !std::mem::take(&mut is_first);
        async move {
            if clears {
                session.run(&drop_table(name)).await?;
            }
            for statement in statements {
                session.run(statement).await?;
            }
            Ok(())
        }
    })
    .await
}
