//! Queries and their rows. `GetFlightInfo` gives a ticket that has the whole query in it; `DoGet` runs it.

use arrow_array::RecordBatch;
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, SchemaResult, Ticket};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use tonic::Status;
use windrow_clickhouse::{ErrorCode, Exception};

use super::{bound, Inner};
use crate::catalog;
use crate::command::Command;
use crate::error::{self, status};
use crate::login::Caller;
use crate::messages::{Named, TicketStatementQuery};
use crate::outgoing::{schema_bytes, sent_schema};
use crate::sql::{kind, Kind};
use crate::store::{Rows, Store};

pub(super) async fn info(inner: &Inner, caller: &Caller, asked: FlightDescriptor) -> Result<FlightInfo, Status> {
    let command = Command::read(&asked.cmd)?;
    let ticket = match &command {
        Command::Query(query) => {
            no_transaction(query.transaction_id.as_ref())?;
            TicketStatementQuery { statement_handle: Bytes::from(query.query.clone().into_bytes()) }.in_any()
        }
        Command::PreparedQuery(_) => asked.cmd.clone(),
        _ => {
            layout(&command).ok_or_else(no_question)?;
            asked.cmd.clone()
        }
    };
    let schema = match &command {
        // Only the database knows it, and says it with the rows.
        Command::Query(_) => None,
        Command::PreparedQuery(query) => {
            let prepared = inner.statements.get(caller, &query.prepared_statement_handle);
            let prepared = prepared.map_err(|exception| status(&exception))?;
            // With parameters the types may be others than those that were guessed without.
            match crate::sql::marks(inner.store.dialect(), &prepared.sql).parameters {
                0 => {
                    result_schema(&inner.store, caller, &prepared.sql).await.map_err(|exception| status(&exception))?
                }
                _ => None,
            }
        }
        _ => layout(&command),
    };
    let info = FlightInfo::new()
        .with_endpoint(FlightEndpoint::new().with_ticket(Ticket { ticket }))
        .with_descriptor(asked)
        .with_total_records(-1)
        .with_total_bytes(-1)
        .with_ordered(true);
    match schema {
        Some(schema) => info.try_with_schema(&schema).map_err(|error| internal(&error)),
        None => Ok(info),
    }
}

pub(super) async fn schema(inner: &Inner, caller: &Caller, asked: FlightDescriptor) -> Result<SchemaResult, Status> {
    let command = Command::read(&asked.cmd)?;
    let sql = match &command {
        Command::Query(query) => Some(query.query.clone()),
        Command::PreparedQuery(query) => {
            let prepared = inner.statements.get(caller, &query.prepared_statement_handle);
            Some(prepared.map_err(|exception| status(&exception))?.sql)
        }
        _ => None,
    };
    let schema = match sql {
        Some(sql) => result_schema(&inner.store, caller, &sql).await.map_err(|exception| status(&exception))?,
        None => Some(layout(&command).ok_or_else(no_question)?),
    };
    let schema = schema.unwrap_or_else(|| Rows::none().schema);
    Ok(SchemaResult { schema: schema_bytes(&schema).map_err(|exception| status(&exception))? })
}

pub(super) async fn rows(inner: &Inner, caller: &Caller, ticket: Ticket) -> Result<Rows, Status> {
    let command = Command::read(&ticket.ticket)?;
    answer(inner, caller, command).await.map_err(|exception| status(&exception))
}

async fn answer(inner: &Inner, caller: &Caller, command: Command) -> Result<Rows, Exception> {
    let store = &inner.store;
    let listed = match command {
        Command::Ticket(ticket) => {
            let sql = std::str::from_utf8(&ticket.statement_handle);
            let sql = sql.map_err(|_| error::own(ErrorCode::BAD_ARGUMENTS, "the ticket holds no statement"))?;
            return store.query(caller, sql).await;
        }
        Command::PreparedQuery(query) => {
            let prepared = inner.statements.get(caller, &query.prepared_statement_handle)?;
            return bound::query(inner, caller, prepared).await;
        }
        Command::SqlInfo(asked) => made(catalog::sql_info(store.dialect(), &asked.info))?,
        Command::Catalogs => catalog::list_catalogs(store, caller).await?,
        Command::DbSchemas(asked) => catalog::list_db_schemas(store, caller, &asked).await?,
        Command::Tables(asked) => catalog::list_tables(store, caller, &asked).await?,
        Command::TableTypes => catalog::list_table_types()?,
        Command::PrimaryKeys(asked) => catalog::list_primary_keys(store, caller, &asked).await?,
        Command::XdbcTypeInfo(asked) => made(catalog::list_types(store.dialect(), asked.data_type))?,
        other => match layout(&other) {
            Some(schema) => RecordBatch::new_empty(schema),
            None => return Err(error::own(ErrorCode::BAD_ARGUMENTS, "this is no ticket for rows")),
        },
    };
    Ok(Rows::ready(listed))
}

/// Returns the columns of an answer that Flight SQL itself defines.
fn layout(command: &Command) -> Option<SchemaRef> {
    Some(match command {
        Command::SqlInfo(_) => catalog::sql_info_layout(),
        Command::XdbcTypeInfo(_) => catalog::xdbc_type_info(),
        Command::Catalogs => catalog::catalogs(),
        Command::DbSchemas(_) => catalog::db_schemas(),
        Command::Tables(asked) => catalog::tables_layout(asked.include_schema),
        Command::TableTypes => catalog::table_types(),
        Command::PrimaryKeys(_) => catalog::primary_keys(),
        Command::ForeignKeys => catalog::foreign_keys(),
        _ => return None,
    })
}

/// Returns the columns of a statement's rows without running it, or `None` where it has none, or they are not
/// known before.
pub(super) async fn result_schema(store: &Store, caller: &Caller, sql: &str) -> Result<Option<SchemaRef>, Exception> {
    let dialect = store.dialect();
    let marks = crate::sql::marks(dialect, sql);
    let probe = marks.replaced(sql, |_| " NULL ".to_owned());
    let asked = match kind(dialect, &probe) {
        Kind::Other => return Ok(None),
        Kind::Listing => store.query(caller, &probe).await,
        Kind::Selection(selection) => store.query(caller, &selection).await,
    };
    match asked {
        Ok(rows) => Ok(Some(sent_schema(&rows.schema)).filter(|schema| !schema.fields().is_empty())),
        // What is wrong with it, or with NULLs in place of its parameters, shows when it is run.
        Err(_) if marks.parameters > 0 => Ok(None),
        // A WITH that leads to an INSERT; a true mistake shows when it is run.
        Err(exception) if exception.code == ErrorCode::SYNTAX_ERROR => Ok(None),
        Err(exception) => Err(exception),
    }
}

pub(super) fn no_transaction(id: Option<&Bytes>) -> Result<(), Status> {
    match id.is_some_and(|id| !id.is_empty()) {
        true => Err(Status::unimplemented("transactions are not supported: each statement is one of its own")),
        false => Ok(()),
    }
}

fn made(batch: Result<RecordBatch, ArrowError>) -> Result<RecordBatch, Exception> {
    batch.map_err(|error| error::own(ErrorCode::STD_EXCEPTION, &error.to_string()))
}

fn internal(error: &ArrowError) -> Status {
    Status::internal(error.to_string())
}

fn no_question() -> Status {
    Status::invalid_argument("this command has no rows to give")
}
