//! One request, once all of it has been read: its rows become inserts, one for each table, which are handed over together.
//!
//! Nothing is handed over before all of its tables are known and all of its blocks are made: what can be refused is refused
//! while nothing of the request is kept. Where one of several tables takes its rows and another doesn't for now, the whole
//! request is to come again; what was kept of it is known then by its token, if it has one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use windrow_clickhouse::{Call, CallError};
use windrow_compression::cityhash128;
use windrow_otlp::answer::PartialSuccess;
use windrow_otlp::{decode, DecodeError, Encoding, Kind, Limits, Request, Signal};
use windrow_sql::backquote;

use super::metrics::Taken;
use super::refused::{Refused, Why};
use super::sender::Sender;
use super::tables::{Search, Table};
use super::tenants::{by_tenant, names, OfTenant};
use crate::error::Refusal;
use crate::insert::{hand_over, NotGathered, Origin, Param, Silent};
use crate::state::State;

/// Larger ones are read on a thread that may be busy for a while.
const LARGE_BYTES: usize = 256 * 1024;
/// What the data port has beyond the time that an insert waits to be stored.
const GRACE: Duration = Duration::from_secs(30);
/// Longer names of requests would stand in every record of them.
const MAX_ID_BYTES: usize = 200;

/// A request, read and unpacked.
pub(super) struct Export<'e> {
    pub(super) signal: Signal,
    pub(super) encoding: Encoding,
    pub(super) payload: Bytes,
    /// The name that it gives itself.
    pub(super) id: Option<&'e str>,
    /// The tenant that its header names.
    pub(super) tenant: Option<&'e str>,
}

/// The rows of a request for one table.
struct Part {
    tenant: Option<String>,
    kind: Kind,
    rows: usize,
    table: Arc<Table>,
    request: Request,
    token: Option<String>,
}

/// What became of the rows for one table.
struct Outcome {
    rows: usize,
    rejected: usize,
    because: Option<String>,
}

/// Takes a request, or says why not. What was rejected of it for good is told with a success.
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
        Ok(outcome) => {
            let (rows, rejected) = (outcome.rows as u64, outcome.rejected as u64);
            metrics.taken(signal, Taken { rows, rejected, bytes });
            let message = outcome.because.unwrap_or_default();
            Ok((rejected > 0).then_some(PartialSuccess { rejected: outcome.rejected, message }))
        }
        Err(refused) => {
            tracing::debug!(why = refused.why.as_str(), message = refused.message, "a request of OTLP was refused");
            Err(refused)
        }
    }
}

async fn taken(
    state: &Arc<State>,
    sender: &Sender,
    export: Export<'_>,
    origin: Origin<'_>,
) -> Result<Outcome, Refused> {
    let settings = state.options.settings.get();
    let limits = Limits { max_unfolded_bytes: settings.http.max_decompressed_bytes, ..Limits::default() };
    let read = || decode(export.signal, export.encoding, &export.payload, &limits);
    let request = aside(export.payload.len(), read).map_err(unreadable)?;
    let id = id_of(&export, settings.otlp.deduplicate_by_bytes)?;
    let all_rows = request.rows();
    let mut outcomes = Vec::new();
    let mut parts = Vec::new();
    for OfTenant { tenant, request } in by_tenant(request, export.tenant, &settings.otlp.tenants)? {
        for (kind, rows) in request.kinds() {
            let token = id.as_ref().map(|id| token(id, tenant.as_deref()));
            let (database, table) = names(&settings.otlp.tables, kind, tenant.as_deref());
            let params = params(&settings.otlp.ack, token.as_deref());
            let has_token = token.is_some();
            let search = Search { state, sender, kind, database, table, params: &params, has_token };
            match search.find().await {
                Ok(table) => {
                    let (tenant, request) = (tenant.clone(), request.clone());
                    parts.push(Part { tenant, kind, rows, table, request, token });
                }
                Err(refused) if refused.why.is_passing() => return Err(refused),
                Err(refused) => outcomes.push(Err((rows, refused))),
            }
        }
    }
    origin.mark("admit");
    let share = |rows: usize| (export.payload.len() as u64 * rows as u64) / all_rows.max(1) as u64;
    let stored = parts.iter().map(|part| part.hand_over(state, sender, &settings.otlp.ack, share(part.rows), origin));
    for (part, stored) in parts.iter().zip(join_all(stored).await) {
        outcomes.push(stored.map_err(|refused| (part.rows, refused)));
    }
    together(outcomes)
}

/// What is said of the whole request. Who has to send it again hears nothing of what will never be taken.
fn together(outcomes: Vec<Result<Outcome, (usize, Refused)>>) -> Result<Outcome, Refused> {
    let mut whole = Outcome { rows: 0, rejected: 0, because: None };
    let (mut passing, mut refused_for_good, mut is_any_taken) = (None, None, outcomes.is_empty());
    for outcome in outcomes {
        match outcome {
            Ok(Outcome { rows, rejected, because }) => {
                is_any_taken = true;
                (whole.rows, whole.rejected) = (whole.rows + rows, whole.rejected + rejected);
                whole.because = whole.because.or(because);
            }
            Err((_, refused)) if refused.why.is_passing() => passing = passing.or(Some(refused)),
            Err((rows, refused)) => {
                whole.rejected += rows;
                whole.because.get_or_insert_with(|| refused.message.clone());
                refused_for_good = refused_for_good.or(Some(refused));
            }
        }
    }
    match (passing, refused_for_good) {
        (Some(refused), _) => Err(refused),
        (None, Some(refused)) if !is_any_taken => Err(refused),
        (None, _) => Ok(whole),
    }
}

/// Runs something that may take a while, for so many bytes, where it holds up no other connection.
pub(super) fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    match bytes > LARGE_BYTES {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

fn unreadable(error: DecodeError) -> Refused {
    let why = match error {
        DecodeError::Malformed(_) | DecodeError::TooDeep { .. } => Why::Malformed,
        DecodeError::TooLarge { .. } => Why::TooLarge,
    };
    Refused::new(why, error.to_string())
}

/// By what a repeat of the request is known.
fn id_of(export: &Export<'_>, by_bytes: bool) -> Result<Option<String>, Refused> {
    match export.id {
        Some(id) if id.len() > MAX_ID_BYTES => {
            Err(Refused::new(Why::Malformed, format!("a request's id has at most {MAX_ID_BYTES} bytes")))
        }
        Some(id) if !id.is_empty() => Ok(Some(id.to_owned())),
        _ if by_bytes => {
            let hash = u128::from_le_bytes(cityhash128(&export.payload));
            Ok(Some(format!("{hash:032x}")))
        }
        _ => Ok(None),
    }
}

/// Tokens are looked up by table; tenants may share one.
fn token(id: &str, tenant: Option<&str>) -> String {
    match tenant {
        Some(tenant) => format!("otlp {tenant} {id}"),
        None => format!("otlp {id}"),
    }
}

fn params<'p>(ack: &'p str, token: Option<&'p str>) -> Vec<Param<'p>> {
    let param =
        |name: &'static str, value: &'p str| Param { name: name.as_bytes().into(), value: value.as_bytes().into() };
    let named = [("async_insert", Some("1")), ("windrow_ack", Some(ack)), ("insert_deduplication_token", token)];
    named.into_iter().filter_map(|(name, value)| Some(param(name, value?))).collect()
}

impl Part {
    async fn hand_over(
        &self,
        state: &Arc<State>,
        sender: &Sender,
        ack: &str,
        payload_bytes: u64,
        origin: Origin<'_>,
    ) -> Result<Outcome, Refused> {
        let layout = &self.table.layout;
        let block = aside(payload_bytes as usize, || self.request.block(layout));
        let (rows, rejected) = (block.rows(), block.rejected);
        let because = block.rejected_because.map(str::to_owned);
        let outcome = Outcome { rows, rejected, because };
        if rejected > 0 {
            self.tell_of_rejected(&outcome);
        }
        if rows == 0 {
            return Ok(outcome);
        }
        let params = params(ack, self.token.as_deref());
        let candidate = self.table.candidate(sender, &params);
        let Some(prepared) = &self.table.prepared else {
            return self.post(state, sender, &params, &block.native()).await.map(|()| outcome);
        };
        let parsed = candidate.admitted_as(prepared.clone()).take(state, block.columns, payload_bytes);
        origin.mark("parse");
        let is_elsewhere = |parsed: &crate::insert::Parsed| {
            state.cluster.as_ref().is_some_and(|cluster| parsed.owner_elsewhere(cluster).is_some())
        };
        match parsed {
            Ok(parsed) if !is_elsewhere(&parsed) => {
                hand_over(state, parsed, origin, &mut Silent).await.map_err(|refusal| {
                    state.metrics.refused(&refusal);
                    Refused::from(refusal)
                })?;
            }
            Err(NotGathered::Forward("too_large")) => return Err(Refused::new(Why::TooLarge, TOO_LARGE)),
            Err(NotGathered::Refused(refusal)) => return Err(refusal.into()),
            _ => self.post(state, sender, &params, &self.request.block(layout).native()).await?,
        }
        Ok(outcome)
    }

    /// Sends the rows as an insert to the data port, which knows the way of what can't be gathered here.
    async fn post(&self, state: &State, sender: &Sender, params: &[Param<'_>], native: &[u8]) -> Result<(), Refused> {
        let Some(client) = state.own_http.get().filter(|_| !state.is_closing()) else {
            return Err(Refusal::unreachable("the gateway is starting or ending").into());
        };
        let columns: Vec<String> = self.table.layout.columns().map(backquote).collect();
        let database = self.table.name.database.iter().map(|name| backquote(name) + ".").collect::<String>();
        let table = backquote(&self.table.name.table);
        let statement = format!("INSERT INTO {database}{table} ({}) FORMAT Native\n", columns.join(", "));
        let body = [statement.as_bytes(), native];
        let wait_ms = state.options.settings.get().gather.wait_for_async_insert_timeout_ms;
        let call = Call::new(&sender.given, "").body(&body).timeout(Duration::from_millis(wait_ms) + GRACE);
        let call = params.iter().fold(call, |call, param| call.param(param.name(), param.text().unwrap_or_default()));
        match client.call(call).await {
            Ok(_) => Ok(()),
            Err(CallError::Exception(exception)) => Err(Refusal::exception(exception).into()),
            Err(CallError::NotSent(error)) => Err(Refusal::unreachable(&error.to_string()).into()),
            Err(CallError::Unknown(cause)) => Err(Refusal::backend_lost(&cause).into()),
        }
    }

    fn tell_of_rejected(&self, outcome: &Outcome) {
        tracing::warn!(
            kind = self.kind.as_str(),
            tenant = self.tenant,
            table = self.table.name.table,
            rows = outcome.rejected,
            because = outcome.because,
            "rows of OTLP can never be stored in their table; their sender was told"
        );
    }
}

const TOO_LARGE: &str = "the rows of this request are more than may be held for their table; send fewer in a request";

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(rows: usize, rejected: usize) -> Result<Outcome, (usize, Refused)> {
        Ok(Outcome { rows, rejected, because: (rejected > 0).then(|| "unfit".to_owned()) })
    }

    fn no(rows: usize, why: Why) -> Result<Outcome, (usize, Refused)> {
        Err((rows, Refused::new(why, why.as_str())))
    }

    #[test]
    fn what_may_pass_decides_over_what_was_taken() {
        let refused = |outcomes| together(outcomes).err().map(|refused| refused.why);
        assert_eq!(refused(vec![ok(3, 0), no(2, Why::Unavailable)]), Some(Why::Unavailable));
        assert_eq!(refused(vec![no(1, Why::NoTable), no(2, Why::Unavailable)]), Some(Why::Unavailable));
        assert_eq!(refused(vec![no(1, Why::NoTable)]), Some(Why::NoTable));
        assert_eq!(refused(Vec::new()), None, "an empty request is a success");
    }

    #[test]
    fn rows_of_one_table_may_be_rejected_beside_those_of_another() {
        let whole = together(vec![ok(3, 1), no(2, Why::NoTable), ok(5, 0)]).unwrap_or_else(|_| panic!("taken"));
        assert_eq!((whole.rows, whole.rejected, whole.because.as_deref()), (8, 3, Some("unfit")));
        let unfit = together(vec![ok(0, 4)]).unwrap_or_else(|_| panic!("nothing to send again"));
        assert_eq!((unfit.rows, unfit.rejected), (0, 4));
    }
}
