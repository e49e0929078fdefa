//! One request, once all of it has been read: its rows become inserts, one for each table, which are handed over together.
//!
//! Nothing is handed over before all of its tables are known and all of its blocks are made: what can be refused is refused
//! while nothing of the request is kept. Where one of several tables takes its rows and another doesn't for now, the whole
//! request is to come again; what was kept of it is known then by its token, if it has one.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::future::join_all;
use windrow_compression::cityhash128;
use windrow_engine::sink::TableKey;
use windrow_engine::{AckLevel, FailedInsert};
use windrow_gateway::protocol::{ColumnRows, GatewayHandle, Gathering, NotStored, Origin, User};
use windrow_otlp::answer::PartialSuccess;
use windrow_otlp::{decode, Block, DecodeError, Encoding, Kind, Layout, Limits, Request, Signal, Unreadable};
use windrow_settings::{AckRule, Settings};

use crate::dead_letters::{self, Rejected};
use crate::metrics::{signal_name, AcceptedRows};
use crate::refused::{RefusalReason, Refused};
use crate::tables::{Search, Table};
use crate::tenants::{by_tenant, names, OfTenant};
use crate::Context;

/// Payloads of more bytes than this are read on a thread that may be busy for a while.
const LARGE_BYTES: usize = 256 * 1024;
/// Tables of a request that are looked for, or made, at the same time. There may be hundreds.
const MAX_SEARCHES: usize = 16;
/// The longest id of a request. It stands in every record of the request.
const MAX_ID_BYTES: usize = 200;

/// A request, read and unpacked.
pub(crate) struct Export<'e> {
    pub(crate) signal: Signal,
    pub(crate) encoding: Encoding,
    pub(crate) payload: Bytes,
    /// The name that the request gives itself.
    pub(crate) id: Option<&'e str>,
    /// The tenant that the request's header names.
    pub(crate) tenant: Option<&'e str>,
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
pub(crate) async fn export(
    context: &Context,
    user: &User,
    export: Export<'_>,
    origin: Origin<'_>,
) -> Result<Option<PartialSuccess>, Refused> {
    let (signal, bytes) = (export.signal, export.payload.len() as u64);
    let outcome = taken(context, user, export, origin).await;
    let metrics = &context.shared.metrics;
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
    context: &Context,
    user: &User,
    export: Export<'_>,
    origin: Origin<'_>,
) -> Result<(Outcome, Option<u64>), Refused> {
    let gateway = &context.gateway;
    let settings = gateway.settings();
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
            let gathering = gathering(&settings, &key, user);
            parts.push(TableRows { tenant, kind, rows, key, table, request, token, gathering, payload_bytes });
        }
    }
    // The tables of a new installation are made together.
    let mut tables = Vec::with_capacity(parts.len());
    for some in parts.chunks(MAX_SEARCHES) {
        tables.extend(join_all(some.iter().map(|part| part.find(context, user))).await);
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
        dead_letters::have_room(gateway)?;
    }
    let handed_over = parts.iter().zip(blocks).map(async |(part, made)| match made {
        Ok((table, block)) => part.hand_over(gateway, user, origin, table, block).await,
        Err(refused) => Err(refused.clone()),
    });
    let outcomes = join_all(handed_over).await;
    let mut whole = together(parts.iter().map(|part| part.rows).zip(&outcomes))?;
    whole.add_unreadable(export.signal, unreadable);
    let mut rejected = Vec::new();
    for (part, outcome) in parts.iter().zip(&outcomes) {
        part.add_dead_letters(gateway, user, outcome, &mut rejected);
    }
    dead_letters::keep(gateway, rejected).await?;
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
pub(crate) fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
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

/// Reads the settings for gathering rows for a table. A sender that waits until its rows are stored waits for no hold.
fn gathering(settings: &Settings, key: &TableKey, user: &User) -> Gathering {
    let own = settings.otlp.ack;
    let by_rule = settings.table_rules(&key.database, &key.table, &user.credentials().user).ack;
    let waits = if by_rule == AckRule::Client { own } else { by_rule } == AckRule::Stored;
    let ack = match own {
        AckRule::Memory => AckLevel::Memory,
        AckRule::Stored => AckLevel::Stored,
        AckRule::Disk | AckRule::Client => AckLevel::Disk,
    };
    Gathering { ack, hold_ms: settings.otlp.hold_ms.filter(|_| !waits) }
}

impl TableRows {
    async fn find(&self, context: &Context, user: &User) -> Result<Arc<Table>, Refused> {
        let (gathering, token) = (self.gathering, self.token.as_deref());
        Search { context, user, kind: self.kind, key: &self.key, gathering, token }.find().await
    }

    /// Makes the rows with the columns of their table.
    fn made(&self) -> Result<(&Table, Block<'_>), &Refused> {
        self.table.as_ref().map(|table| (&**table, self.block(table)))
    }

    async fn hand_over(
        &self,
        gateway: &GatewayHandle,
        user: &User,
        origin: Origin<'_>,
        table: &Table,
        block: Block<'_>,
    ) -> Result<Outcome, Refused> {
        let (rows, rejected) = (block.rows(), block.rejected);
        let outcome = Outcome { rows, rejected, because: block.rejected_because.map(str::to_owned) };
        if rows == 0 {
            return Ok(outcome);
        }
        let rows = ColumnRows {
            block: block.columns,
            again: &|| self.block(table).columns,
            payload_bytes: self.payload_bytes,
            gathering: self.gathering,
            token: self.token.as_deref(),
        };
        match table.insert.store(gateway, user, rows, origin).await {
            Ok(()) => Ok(outcome),
            Err(NotStored::TooLarge) => Err(Refused::new(RefusalReason::TooLarge, TOO_LARGE)),
            Err(NotStored::Refused(refusal)) => Err(refusal.into()),
        }
    }

    fn block<'t>(&self, table: &'t Table) -> Block<'t> {
        aside(self.payload_bytes as usize, || self.request.block(&table.layout))
    }

    /// Adds dead letters of the rows that were rejected, where their sender is told that the others were
    /// taken. A user who may not write into the table has no right to have rows kept for it.
    fn add_dead_letters(
        &self,
        gateway: &GatewayHandle,
        user: &User,
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
        let layout = table.map(|table| table.layout.clone()).or_else(|| natural_layout(gateway, self.kind));
        let Some(layout) = layout.filter(|_| is_kept) else { return };
        let rejected = Rejected {
            key: &self.key,
            known: table.and_then(|table| table.insert.destination_and_kind()),
            credentials: user.credentials(),
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
fn natural_layout(gateway: &GatewayHandle, kind: Kind) -> Option<Layout> {
    let settings = gateway.settings();
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
