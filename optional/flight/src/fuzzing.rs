//! The functions that read bytes from outside, in a form that a fuzzer can call.

use arrow_flight::FlightData;
use bytes::Bytes;

use crate::command::Command;
use crate::sql::{bound_insert, kind, marks, Dialect};

/// Reads a command, a ticket or the body of an action, and then the statement that it has. Says whether it
/// was a command.
pub fn command(bytes: &[u8]) -> bool {
    let Ok(command) = Command::read(&Bytes::copy_from_slice(bytes)) else { return false };
    match command {
        Command::Query(query) => statement(&query.query),
        Command::Update(update) => statement(&update.query),
        Command::CreatePrepared(request) => statement(&request.query),
        Command::Ticket(ticket) => std::str::from_utf8(&ticket.statement_handle).map_or((), statement),
        _ => {}
    }
    true
}

/// Finds out everything about a statement that is needed before it is run.
pub fn statement(sql: &str) {
    for dialect in [Dialect::DuckDb, Dialect::ClickHouse] {
        let marks = marks(dialect, sql);
        let filled = marks.replaced(sql, |_| "NULL".to_owned());
        let _ = kind(dialect, &filled);
        let _ = bound_insert(dialect, sql);
    }
}

/// Reads the payload of a handshake.
pub fn hand_shake(payload: &[u8]) {
    let _ = crate::login::basic_auth(payload);
}

/// Checks a message of rows before it is decoded. Says whether it may be decoded.
pub fn rows(header: &[u8], body: &[u8]) -> bool {
    let (data_header, data_body) = (Bytes::copy_from_slice(header), Bytes::copy_from_slice(body));
    crate::incoming::cap(&FlightData { data_header, data_body, ..Default::default() }).is_ok()
}
