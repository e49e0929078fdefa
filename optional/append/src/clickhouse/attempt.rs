//! One attempt to bring the rows of a staging table into their table.
//!
//! A single partition changes tables: parts that have moved are gone from the staging table, which says for
//! ever that they have. Several partitions are linked into the target by one statement, that makes all of
//! them visible at once (tried: no reader of 26.7 saw some of 270 parts).

use windrow_clickhouse::{CallError, ErrorCode};

use super::publication::{Publication, WrittenMethod};
use super::server::{Order, Session};
use super::statements::{attach_all, attach_partition, insert_rows, move_partition, Name};
use crate::answer::Atomicity;
use crate::id::AppendId;

/// The most rows that go into one block; `ONE_BLOCK_BYTES` is its most bytes. The server needs memory for a block.
const ONE_BLOCK_ROWS: u64 = 4 << 20;
const ONE_BLOCK_BYTES: u64 = 512 << 20;
const MANY_BLOCKS_ROWS: &str = "1048576";

const KNOWS_CHOICE_OF_SELECT: &str =
    "SELECT count() FROM system.settings WHERE name = 'deduplicate_insert_select' FORMAT TSV";

const NOT_SUPPORTED: [ErrorCode; 3] =
    [ErrorCode::NOT_IMPLEMENTED, ErrorCode::SYNTAX_ERROR, ErrorCode::SUPPORT_IS_DISABLED];

pub(super) fn query_id(id: AppendId) -> String {
    format!("windrow-append-{id}-publish")
}

pub(super) async fn attempt(
    session: &Session,
    id: AppendId,
    publication: &Publication,
    staging: &Name,
) -> Result<Atomicity, CallError> {
    match publication.method {
        WrittenMethod::Parts => parts(session, id, publication, staging).await,
        WrittenMethod::PartsByPartition => {
            for partition in publication.partitions() {
                let statement = attach_partition(staging, partition, &publication.target());
                order(session, id, &statement, &[]).await?;
            }
            Ok(publication.atomicity())
        }
        WrittenMethod::Rows => rows(session, id, publication, staging).await,
    }
}

async fn parts(
    session: &Session,
    id: AppendId,
    publication: &Publication,
    staging: &Name,
) -> Result<Atomicity, CallError> {
    let (partitions, target) = (publication.partitions(), publication.target());
    if partitions.len() > 1 {
        match order(session, id, &attach_all(staging, &target), &[]).await {
            // A server that is too old to take all at once.
            Err(CallError::Exception(exception)) if NOT_SUPPORTED.contains(&exception.code) => {}
            outcome => return outcome.map(|()| Atomicity::All),
        }
    }
    for partition in &partitions {
        order(session, id, &move_partition(staging, partition, &target), &[]).await?;
    }
    Ok(if partitions.len() > 1 { Atomicity::Partition } else { Atomicity::All })
}

/// Inserts the rows. Their order is kept by one thread that reads part after part, and one that writes.
async fn rows(
    session: &Session,
    id: AppendId,
    publication: &Publication,
    staging: &Name,
) -> Result<Atomicity, CallError> {
    let is_one_block = publication.rows <= ONE_BLOCK_ROWS && publication.unpacked_bytes <= ONE_BLOCK_BYTES;
    let block_rows = if is_one_block { publication.rows.max(1).to_string() } else { MANY_BLOCKS_ROWS.to_owned() };
    let token = query_id(id);
    let mut settings = vec![
        ("insert_deduplication_token", token.as_str()),
        ("insert_deduplicate", "1"),
        ("deduplicate_blocks_in_dependent_materialized_views", "1"),
        ("max_threads", "1"),
        ("max_insert_threads", "1"),
        ("parallel_view_processing", "0"),
        ("min_insert_block_size_rows", &block_rows),
        ("min_insert_block_size_bytes", "0"),
        // All parts of a block are written before the first is kept.
        ("max_insert_delayed_streams_for_parallel_write", "100000"),
    ];
    if publication.deduplicates && has_choice_of_select(session).await? {
        settings.push(("deduplicate_insert_select", "enable_when_possible"));
    }
    order(session, id, &insert_rows(staging, &publication.columns, &publication.target()), &settings).await?;
    Ok(publication.atomicity())
}

/// Says whether an INSERT SELECT has a setting of its own, as since 26.2. The embedded ClickHouse has it off
/// for everybody else.
async fn has_choice_of_select(session: &Session) -> Result<bool, CallError> {
    match session.ask(KNOWS_CHOICE_OF_SELECT, &[]).await {
        Ok(count) => Ok(count.trim() != "0"),
        // Where the settings may not be looked at, the older one has to do.
        Err(CallError::Exception(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn order(session: &Session, id: AppendId, statement: &str, settings: &[(&str, &str)]) -> Result<(), CallError> {
    session.order(&Order { statement, query_id: &query_id(id), settings, body: &[] }).await
}

/// Says whether an error was raised before a row of the last step was kept, so that a look at the tables is
/// all it takes.
pub(super) fn is_settled(error: &CallError) -> bool {
    let CallError::Exception(exception) = error else { return false };
    !exception.leaves_outcome_open() && exception.code != ErrorCode::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING
}
