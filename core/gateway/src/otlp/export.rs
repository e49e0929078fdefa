//! One request, once all of it has been read: its rows become inserts, one for each table, which are handed over together.
//!
//! Nothing is handed over before all of its tables are known and all of its blocks are made: what can be refused is refused
//! while nothing of the request is kept. Where one of several tables takes its rows and another doesn't for now, the whole
//! request is to come again; what was kept of it is known then by its token, if it has one.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::future::join_all;
use windrow_clickhouse::Exception;
use windrow_compression::cityhash128;
use windrow_engine::sink::TableKey;
use windrow_engine::{AckLevel, FailedInsert};
use windrow_otlp::answer::PartialSuccess;
use windrow_otlp::{decode, Block, DecodeError, Encoding, Kind, Layout, Limits, Request, Signal, Unreadable};
use windrow_settings::{AckRule, Settings};

use super::dead_letters::{self, Rejected};
use super::metrics::{signal_name, AcceptedRows};
use super::refused::{RefusalReason, Refused};
use super::sender::Sender;
use super::tables::{Search, Table};
use super::tenants::{by_tenant, names, OfTenant};
use crate::error::{Refusal, Text};
use crate::forward_reason::ForwardReason;
use crate::ingest::{accept_admitted, RowSource};
use crate::insert::{
    log_unreadable, NotGathered, Origin, Prepared, RequestedSettings, SentRows, Silent, StatementOptions,
};
use crate::state::State;
use crate::statement::{NativeInsert, StatementContext};

/// Payloads of more bytes than this are read on a thread that may be busy for a while.
const LARGE_BYTES: usize = 256 * 1024;
/// Tables of a request that are looked for, or made, at the same time. There may be hundreds.
const MAX_SEARCHES: usize = 16;
/// The longest id of a request. It stands in every record of the request.
const MAX_ID_BYTES: usize = 200;

/// A request, read and unpacked.
pub(super) struct Export<'e> {
    pub(super) signal: Signal,
    pub(super) encoding: Encoding,
    pub(super) payload: Bytes,
    /// The name that the request gives itself.
    pub(super) id: Option<&'e str>,
    /// The tenant that the request's header names.
    pub(super) tenant: Option<&'e str>,
}

/// The rows of a request for one table.
struct TableRows {
    tenant: Option<String>,
    kind: Kind,
    rows: usize,
    key: TableKey,
    /// The table, or the reason why the rows can't go there.
    table: Result<Arc<Table>, Refused>,
    request: Request,
    token: Option<String>,
    gathering: Gathering,
    /// The rows' share of the request, in bytes.
    payload_bytes: u64,
}

/// The outcome of the rows for one table, or of all rows of a request.
#[derive(Default)]
struct Outcome {
    rows: usize,
    rejected: usize,
    because: Option<String>,
}

/// Takes a request, or says why it was not taken. Rows that were rejected for good are reported together with
/// the success.
pub(super) async fn export(
    state: &Arc<State>,
    sender: &Sender,
    export: Export<'_>,
    origin: Origin<'_>,
) -> Result<Option<PartialSuccess>, Refused> {
    let (signal, bytes) = (export.signal, export.payload.len() as u64);
    let outcome = taken(state, sender, export, origin).await;
    let metrics = &state.otlp.metrics;
    match outcome {
        Ok((outcome, last_time)) => {
            let (rows, rejected) = (outcome.rows as u64, outcome.rejected as u64);
            metrics.taken(signal, AcceptedRows { rows, rejected, bytes, age: last_time.map(age) });
            let message = outcome.because.unwrap_or_default();
            Ok((rejected > 0).then_some(PartialSuccess { rejected: outcome.rejected, message }))
        }
        Err(refused) => {
            tracing::debug!(why = refused.why.as_str(), message = refused.message, "a request of OTLP was refused");
            Err(refused)
        }
    }
}

/// Takes a request, and returns its outcome with the time of its last record.
async fn taken(
    state: &Arc<State>,
    sender: &Sender,
    export: Export<'_>,
    origin: Origin<'_>,
) -> Result<(Outcome, Option<u64>), Refused> {
    let settings = state.options.settings.get();
    let limits = Limits { max_unfolded_bytes: settings.http.max_decompressed_bytes, ..Limits::default() };
    let read = || decode(export.signal, export.encoding, &export.payload, &limits);
    let request = aside(export.payload.len(), read).map_err(unreadable)?;
    let id = id_of(&export, settings.otlp.deduplicate_by_bytes)?;
    let (all_rows, last_time, unreadable) = (request.rows(), request.last_time(), request.unreadable().cloned());
    let share = |rows: usize| (export.payload.len() as u64 * rows as u64) / all_rows.max(1) as u64;
    let mut parts = Vec::new();
    for OfTenant { tenant, request } in by_tenant(request, export.tenant, &settings.otlp.tenants)? {
        for (kind, rows) in request.kinds() {
            let token = id.as_ref().map(|id| token(id, tenant.as_deref()));
            let (database, table) = names(&settings.otlp.tables, kind, tenant.as_deref());
            let (key, table) =
                (TableKey { database, table }, Err(Refused::new(RefusalReason::Unavailable, "not looked for yet")));
            let (tenant, request, payload_bytes) = (tenant.clone(), request.clone(), share(rows));
            let gathering = Gathering::of(&settings, &key, sender);
            parts.push(TableRows { tenant, kind, rows, key, table, request, token, gathering, payload_bytes });
        }
    }
    // The tables of a new installation are made together.
    let mut tables = Vec::with_capacity(parts.len());
    for some in parts.chunks(MAX_SEARCHES) {
        tables.extend(join_all(some.iter().map(|part| part.find(state, sender))).await);
    }
    if let Some(refused) = tables.iter().filter_map(|table| table.as_ref().err()).find(|it| it.why.is_passing()) {
        return Err(refused.clone());
    }
    parts.iter_mut().zip(tables).for_each(|(part, table)| part.table = table);
    origin.mark("admit");
    let blocks: Vec<_> = parts.iter().map(TableRows::made).collect();
    let is_some_unfit = blocks.iter().flatten().any(|(_, block)| block.rejected > 0);
    let is_some_for_nothing = blocks.iter().any(Result::is_err) && blocks.iter().any(Result::is_ok);
    if is_some_unfit || is_some_for_nothing {
        dead_letters::have_room(state)?;
    }
    let handed_over = parts.iter().zip(blocks).map(async |(part, made)| match made {
        Ok((table, block)) => part.hand_over(state, sender, origin, table, block).await,
        Err(refused) => Err(refused.clone()),
    });
    let outcomes = join_all(handed_over).await;
    let mut whole = together(parts.iter().map(|part| part.rows).zip(&outcomes))?;
    whole.add_unreadable(export.signal, unreadable);
    let mut rejected = Vec::new();
    for (part, outcome) in parts.iter().zip(&outcomes) {
        part.add_dead_letters(state, sender, outcome, &mut rejected);
    }
    dead_letters::keep(state, rejected).await?;
    Ok((whole, last_time))
}

impl Outcome {
    /// Adds rows that can't be read. Nobody knows what these rows are, so nothing of them can be kept.
    fn add_unreadable(&mut self, signal: Signal, unreadable: Option<Unreadable>) {
        let Some(Unreadable { rows, because }) = unreadable else { return };
        let signal = signal_name(signal);
        tracing::warn!(signal, rows, because, "rows of OTLP can't be read: their sender was told");
        self.rejected += rows;
        self.because.get_or_insert(because);
    }
}

/// Returns the outcome of the whole request. A sender that has to send the request again is not told of the
/// rows that will never be taken.
fn together<'o>(outcomes: impl Iterator<Item = (usize, &'o Result<Outcome, Refused>)>) -> Result<Outcome, Refused> {
    let mut whole = Outcome::default();
    let (mut passing, mut refused_for_good, mut is_any_taken) = (None, None, false);
    for (sent, outcome) in outcomes {
        match outcome {
            Ok(Outcome { rows, rejected, because }) => {
                is_any_taken = true;
                (whole.rows, whole.rejected) = (whole.rows + rows, whole.rejected + rejected);
                whole.because = whole.because.or_else(|| because.clone());
            }
            Err(refused) if refused.why.is_passing() => passing = passing.or(Some(refused)),
            Err(refused) => {
                whole.rejected += sent;
                whole.because.get_or_insert_with(|| refused.message.clone());
                refused_for_good = refused_for_good.or(Some(refused));
            }
        }
    }
    match (passing, refused_for_good) {
        (Some(refused), _) => Err(refused.clone()),
        (None, Some(refused)) if !is_any_taken => Err(refused.clone()),
        (None, _) => Ok(whole),
    }
}

/// Returns the age of a record of that time. It is zero where the sender's clock is ahead.
fn age(time_ns: u64) -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_nanos(time_ns)).unwrap_or_default()
}

/// Runs work on so many bytes where it holds up no other connection, although it may take a while.
pub(super) fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    match bytes > LARGE_BYTES {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

fn unreadable(error: DecodeError) -> Refused {
    let why = match error {
        DecodeError::Malformed(_) | DecodeError::TooDeep { .. } => RefusalReason::Malformed,
        DecodeError::TooLarge { .. } => RefusalReason::TooLarge,
    };
    Refused::new(why, error.to_string())
}

/// Returns the id that a repeat of the request is known by, if there is one.
fn id_of(export: &Export<'_>, by_bytes: bool) -> Result<Option<String>, Refused> {
    match export.id {
        Some(id) if id.len() > MAX_ID_BYTES => {
            Err(Refused::new(RefusalReason::Malformed, format!("a request's id has at most {MAX_ID_BYTES} bytes")))
        }
        Some(id) if !id.is_empty() => Ok(Some(id.to_owned())),
        _ if by_bytes => {
            let hash = u128::from_le_bytes(cityhash128(&export.payload));
            Ok(Some(format!("{hash:032x}")))
        }
        _ => Ok(None),
    }
}

/// Makes the token of a tenant's rows. Tokens are looked up by table, and tenants may share a table.
fn token(id: &str, tenant: Option<&str>) -> String {
    match tenant {
        Some(tenant) => format!("otlp {tenant} {id}"),
        None => format!("otlp {id}"),
    }
}

/// The settings for gathering rows for a table.
#[derive(Debug, Clone, Copy)]
struct Gathering {
    ack: AckLevel,
    hold_ms: Option<u64>,
}

impl Gathering {
    /// Reads the settings for a table. A sender that waits until its rows are stored waits for no hold.
    fn of(settings: &Settings, key: &TableKey, sender: &Sender) -> Gathering {
        let own = settings.otlp.ack;
        let by_rule = settings.table_rules(&key.database, &key.table, &sender.credentials.user).ack;
        let waits = if by_rule == AckRule::Client { own } else { by_rule } == AckRule::Stored;
        let ack = match own {
            AckRule::Memory => AckLevel::Memory,
            AckRule::Stored => AckLevel::Stored,
            AckRule::Disk | AckRule::Client => AckLevel::Disk,
        };
        Gathering { ack, hold_ms: settings.otlp.hold_ms.filter(|_| !waits) }
    }

    fn requested(self) -> RequestedSettings {
        RequestedSettings::gathered(self.ack, self.hold_ms)
    }

    /// Returns the same settings for an insert that leaves this gateway.
    fn options(self, token: Option<&str>) -> StatementOptions<'_> {
        let mut options = StatementOptions::default();
        options.set("async_insert", "1");
        options.set("windrow_ack", self.ack.as_str());
        if let Some(hold_ms) = self.hold_ms {
            options.set("windrow_flush_policy", "fixed");
            options.set("async_insert_busy_timeout_max_ms", hold_ms.to_string());
        }
        if let Some(token) = token {
            options.set("insert_deduplication_token", token);
        }
        options
    }
}

/// Rows for one table, which are columns already.
struct RowsOfPart<'p> {
    block: Option<Block<'p>>,
    payload_bytes: u64,
    /// The same rows in the format Native, where the table has columns that are only passed through.
    native: Vec<u8>,
}

impl RowSource for RowsOfPart<'_> {
    async fn rows(&mut self, prepared: &Arc<Prepared>) -> Result<SentRows<'_>, NotGathered> {
        let block = self.block.take().ok_or(NotGathered::NoRows)?;
        if prepared.takes_columns() {
            return Ok(SentRows::Columns { block: block.columns, payload_bytes: self.payload_bytes });
        }
        self.native = block.native();
        Ok(SentRows::Bytes(&self.native))
    }
}

impl TableRows {
    async fn find(&self, state: &Arc<State>, sender: &Sender) -> Result<Arc<Table>, Refused> {
        let (gathering, token) = (self.gathering.requested(), self.token.as_deref());
        Search { state, sender, kind: self.kind, key: &self.key, gathering: &gathering, token }.find().await
    }

    /// Makes the rows with the columns of their table.
    fn made(&self) -> Result<(&Table, Block<'_>), &Refused> {
        self.table.as_ref().map(|table| (&**table, self.block(table)))
    }

    async fn hand_over(
        &self,
        state: &Arc<State>,
        sender: &Sender,
        origin: Origin<'_>,
        table: &Table,
        block: Block<'_>,
    ) -> Result<Outcome, Refused> {
        let (rows, rejected) = (block.rows(), block.rejected);
        let outcome = Outcome { rows, rejected, because: block.rejected_because.map(str::to_owned) };
        if rows == 0 {
            return Ok(outcome);
        }
        let (requested, token) = (self.gathering.requested(), self.token.as_deref());
        let context = |options| StatementContext {
            state,
            user_key: sender.key.clone(),
            names_user: true,
            options,
            query_id: None,
            came_by_hop: false,
            stays_here: false,
        };
        let accepted = match &table.prepared {
            Ok(prepared) => {
                let candidate = table.candidate(sender, &requested, token);
                let mut source =
                    RowsOfPart { block: Some(block), payload_bytes: self.payload_bytes, native: Vec::new() };
                let (context, prepared) = (context(StatementOptions::NONE), prepared.clone());
                accept_admitted(&context, &candidate, prepared, origin, &mut source).await
            }
            Err(reason) => Err(NotGathered::Forward(*reason)),
        };
        let why = match accepted {
            Ok(accepted) => {
                let stored = accepted.store(state, origin, &mut Silent).await;
                return stored.map(|_| outcome).map_err(|refusal| {
                    state.metrics.refused(&refusal);
                    refusal.into()
                });
            }
            Err(NotGathered::Forward(ForwardReason::TooLarge)) => {
                return Err(Refused::new(RefusalReason::TooLarge, TOO_LARGE))
            }
            Err(NotGathered::Refused(refusal)) => return Err(refusal.into()),
            Err(why) => why,
        };
        let insert = NativeInsert {
            table: &table.name,
            columns: table.statement.columns.as_deref().unwrap_or_default(),
            block: &self.block(table).native(),
            given: &sender.given,
        };
        let context = context(self.gathering.options(token));
        let passed_on = match why {
            NotGathered::Elsewhere(owner) => context.pass_to_owner(&insert, owner, origin).await,
            NotGathered::NotRead { unread, prepared, query_id } => {
                let passed_on = context.pass_on(&insert, unread.reason, origin).await;
                if let Err(Refusal { code, text: Text::Backend(line), .. }) = &passed_on {
                    let exception = Exception { code: *code, line: line.clone(), before_writing: true };
                    log_unreadable(state, &prepared, query_id, self.payload_bytes, exception);
                }
                passed_on
            }
            why => context.pass_on(&insert, why.reason(), origin).await,
        };
        passed_on.map(|()| outcome).map_err(Refused::from)
    }

    fn block<'t>(&self, table: &'t Table) -> Block<'t> {
        aside(self.payload_bytes as usize, || self.request.block(&table.layout))
    }

    /// Adds dead letters of the rows that were rejected, where their sender is told that the others were
    /// taken. A user who may not write into the table has no right to have rows kept for it.
    fn add_dead_letters(
        &self,
        state: &State,
        sender: &Sender,
        outcome: &Result<Outcome, Refused>,
        dead_letters: &mut Vec<FailedInsert>,
    ) {
        let refused = outcome.as_ref().err();
        let (rows, because) = match outcome {
            Ok(Outcome { rejected, because, .. }) => (*rejected, because.as_deref().unwrap_or_default()),
            Err(refused) => (self.rows, refused.message.as_str()),
        };
        if rows == 0 {
            return;
        }
        let is_kept = refused
            .is_none_or(|refused| !matches!(refused.why, RefusalReason::Forbidden | RefusalReason::Unauthenticated));
        tracing::warn!(
            kind = self.kind.as_str(),
            tenant = self.tenant,
            database = self.key.database,
            table = self.key.table,
            rows,
            because,
            "rows of OTLP can never be stored in their table: their sender was told{}",
            if is_kept { ", and they become a dead letter" } else { "" }
        );
        let table = self.table.as_ref().ok();
        let layout = table.map(|table| table.layout.clone()).or_else(|| natural_layout(state, self.kind));
        let Some(layout) = layout.filter(|_| is_kept) else { return };
        let rejected = Rejected {
            key: &self.key,
            prepared: table.and_then(|table| table.prepared.as_deref().ok()),
            credentials: &sender.credentials,
            token: self.token.as_deref(),
            payload_bytes: self.payload_bytes,
        };
        let mut unfit = rows;
        if let Some(refused) = refused {
            let block = aside(self.payload_bytes as usize, || self.request.block(&layout));
            unfit = block.rejected;
            if block.rows() > 0 {
                dead_letters.push(rejected.dead_letter(block, &refused.message));
            }
        }
        if unfit > 0 {
            let block = aside(self.payload_bytes as usize, || self.request.rejected_block(&layout));
            let because = block.rejected_because.unwrap_or_default();
            dead_letters.push(rejected.dead_letter(block, because));
        }
    }
}

/// Returns a layout for rows without a table that they fit into.
fn natural_layout(state: &State, kind: Kind) -> Option<Layout> {
    let settings = state.options.settings.get();
    let mapping = settings.otlp.mappings.iter().find(|mapping| mapping.kind == kind.as_str());
    let mapped = mapping.and_then(|mapping| Layout::natural(kind, Some(&mapping.columns)).ok());
    mapped.or_else(|| Layout::natural(kind, None).ok())
}

const TOO_LARGE: &str = "the rows of this request are more than may be held for their table; send fewer in a request";

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (usize, Result<Outcome, Refused>);

    fn ok(rows: usize, rejected: usize) -> Told {
        let because = (rejected > 0).then(|| "unfit".to_owned());
        (rows + rejected, Ok(Outcome { rows, rejected, because }))
    }

    fn no(rows: usize, why: RefusalReason) -> Told {
        (rows, Err(Refused::new(why, why.as_str())))
    }

    fn all(outcomes: Vec<Told>) -> Result<Outcome, Refused> {
        together(outcomes.iter().map(|(rows, outcome)| (*rows, outcome)))
    }

    #[test]
    fn what_may_pass_decides_over_what_was_taken() {
        let refused = |outcomes| all(outcomes).err().map(|refused| refused.why);
        assert_eq!(refused(vec![ok(3, 0), no(2, RefusalReason::Unavailable)]), Some(RefusalReason::Unavailable));
        assert_eq!(
            refused(vec![no(1, RefusalReason::NoTable), no(2, RefusalReason::Unavailable)]),
            Some(RefusalReason::Unavailable)
        );
        assert_eq!(refused(vec![no(1, RefusalReason::NoTable)]), Some(RefusalReason::NoTable));
        assert_eq!(refused(Vec::new()), None, "an empty request is a success");
    }

    #[test]
    fn rows_of_one_table_may_be_rejected_beside_those_of_another() {
        let whole = all(vec![ok(3, 1), no(2, RefusalReason::NoTable), ok(5, 0)]).unwrap_or_else(|_| panic!("taken"));
        assert_eq!((whole.rows, whole.rejected, whole.because.as_deref()), (8, 3, Some("unfit")));
        let unfit = all(vec![ok(0, 4)]).unwrap_or_else(|_| panic!("nothing to send again"));
        assert_eq!((unfit.rows, unfit.rejected), (0, 4));
    }
}
