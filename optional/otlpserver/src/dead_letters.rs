//! Rows that can never be stored, of a request whose other rows were taken. The sender is told, and drops
//! them. So they are kept as dead letters, where somebody finds them who can correct them, or their table.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use windrow_clickhouse::{Credentials, ErrorCode, Exception};
use windrow_columns::Rows;
use windrow_engine::sink::{BatchId, Destination, Form};
use windrow_engine::{AckLevel, DataKind, DeadLetterStore, DedupKeys, FailedInsert, InsertError, InsertKind, TableKey};
use windrow_gateway::protocol::{query_id, GatewayHandle};
use windrow_otlp::Block;
use windrow_sql::backquote_if_need;

use crate::refused::{RefusalReason, Refused};

/// The destination of rejected rows, and the account that they were sent by.
pub(crate) struct Rejected<'r> {
    pub(crate) key: &'r TableKey,
    /// The destination of other rows and what the log says of them, where the table is known.
    pub(crate) known: Option<(&'r Destination, &'r InsertKind)>,
    pub(crate) credentials: &'r Credentials,
    /// The token that a repeat of the request is known by.
    pub(crate) token: Option<&'r str>,
    pub(crate) payload_bytes: u64,
}

impl Rejected<'_> {
    /// Makes a dead letter of the rows of one block, which were all rejected for the same reason.
    pub(crate) fn dead_letter(&self, block: Block<'_>, because: &str) -> FailedInsert {
        let destination = self.destination(&block);
        let now_micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
        let own = Exception { code: ErrorCode::OK, line: because.to_owned(), before_writing: true };
        FailedInsert {
            dedup: self.token.map(|token| dedup(token, because, &destination)),
            kind: Arc::new(self.kind(&destination)),
            destination: Arc::new(destination),
            rows: Rows::Parsed(block.columns),
            query_id: query_id(None),
            payload_bytes: self.payload_bytes,
            ack: AckLevel::Disk,
            journal_id: None,
            arrived_wall_micros: now_micros,
            failed_wall_micros: now_micros,
            attempts: 0,
            batch: BatchId(0),
            error: InsertError::Exception(Exception::parse(because.as_bytes()).unwrap_or(own)),
        }
    }

    /// Makes the destination of a block. Everything else that is to be known of the table is looked up when
    /// the dead letter is retried.
    fn destination(&self, block: &Block<'_>) -> Destination {
        let TableKey { database, table } = self.key;
        let plain = || Destination {
            database: database.clone(),
            table: table.clone(),
            columns: Vec::new(),
            form: Form::Native { types: Vec::new() },
            credentials: self.credentials.clone(),
            own_account: false,
            roles: Vec::new(),
            quota_key: String::new(),
            settings: Vec::new(),
            deduplicates: false,
            is_replicated: false,
            has_views: false,
            hands_on: false,
            partitioning: None,
            shard: None,
        };
        Destination {
            columns: block.names.to_vec(),
            form: Form::Native { types: block.types.to_vec() },
            ..self.known.map_or_else(plain, |(destination, _)| destination.clone())
        }
    }

    fn kind(&self, destination: &Destination) -> InsertKind {
        if let Some((_, kind)) = self.known {
            return kind.clone();
        }
        let (database, table) = (backquote_if_need(&self.key.database), backquote_if_need(&self.key.table));
        let columns: Vec<String> = destination.columns.iter().map(|name| backquote_if_need(name)).collect();
        InsertKind {
            query: format!("INSERT INTO {database}.{table} ({}) FORMAT Native", columns.join(", ")),
            format: "Native".to_owned(),
            data_kind: DataKind::Preprocessed,
            limits: Default::default(),
        }
    }
}

/// Makes the keys of a dead letter. A request with an id that is sent again makes another dead letter; when
/// both are retried, they are one insert.
fn dedup(token: &str, because: &str, destination: &Destination) -> DedupKeys {
    let key = BatchId(0).derived(token.bytes().chain([0]).chain(because.bytes()));
    DedupKeys::of_dead_letter(key.0, destination)
}

/// Checks that there is room for dead letters, as far as is known before the request's other rows are taken.
pub(crate) fn have_room(gateway: &GatewayHandle) -> Result<(), Refused> {
    match gateway.dead_letters().is_full() {
        true => Err(not_kept("there is no room for more (`dead_letters.max_bytes`)")),
        false => Ok(()),
    }
}

pub(crate) async fn keep(gateway: &GatewayHandle, dead_letters: Vec<FailedInsert>) -> Result<(), Refused> {
    if dead_letters.is_empty() {
        return Ok(());
    }
    gateway.dead_letters().keep(dead_letters).await.map_err(|error| not_kept(&error.why))
}

/// Makes an error after which the sender keeps the request: nothing is thrown away for lack of room.
fn not_kept(why: &str) -> Refused {
    let text = format!("rows of this request can never be stored, and can't be kept as a dead letter for now: {why}");
    Refused::new(RefusalReason::Unavailable, text)
}
