//! Rows that come with a command: parameters, or rows for a table.

use arrow_flight::{FlightData, PutResult};
use prost::Message;
use tonic::{Status, Streaming};

use super::{bound, get, ingest, Inner};
use crate::command::Command;
use crate::error::status;
use crate::incoming::Incoming;
use crate::login::Caller;
use crate::messages::{DoPutPreparedStatementResult, DoPutUpdateResult};

pub(super) async fn put(inner: &Inner, caller: &Caller, messages: Streaming<FlightData>) -> Result<PutResult, Status> {
    let mut incoming = Incoming::open(messages, &inner.metrics.received).await?;
    let rows = match Command::read(&incoming.command)? {
        Command::Update(update) => {
            get::no_transaction(update.transaction_id.as_ref())?;
            inner.store.update(caller, &update.query).await.map_err(|exception| status(&exception))?
        }
        Command::PreparedUpdate(update) => {
            let handle = &update.prepared_statement_handle;
            let prepared = inner.statements.get(caller, handle).map_err(|exception| status(&exception))?;
            bound::update(inner, caller, prepared, &mut incoming).await.map_err(|exception| status(&exception))?
        }
        Command::Ingest(wanted) => {
            get::no_transaction(wanted.transaction_id.as_ref())?;
            Some(ingest::ingest(inner, caller, &wanted, &mut incoming).await.map_err(|exception| status(&exception))?)
        }
        Command::PreparedQuery(query) => {
            let handle = query.prepared_statement_handle;
            bound::bind(inner, caller, &handle, &mut incoming).await.map_err(|exception| status(&exception))?;
            let answer = DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) };
            return Ok(PutResult { app_metadata: answer.encode_to_vec().into() });
        }
        _ => return Err(Status::invalid_argument("this command takes no rows")),
    };
    // Not -1, which would say that nobody knows: of that the JDBC driver concludes that there are rows, and runs it
    // once more.
    let record_count = rows.and_then(|rows| i64::try_from(rows).ok()).unwrap_or(0);
    Ok(PutResult { app_metadata: DoPutUpdateResult { record_count }.encode_to_vec().into() })
}
