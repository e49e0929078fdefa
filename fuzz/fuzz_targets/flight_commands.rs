#![no_main]
//! Reads any bytes that may come over Flight SQL's port as a command, a ticket, a handshake or a message of
//! rows: they are read or refused.

use libfuzzer_sys::fuzz_target;
use windrow_flight::fuzzing;

/// The text that names of commands begin with: the fuzzer would not find it.
const NAMES_BEGIN: &str = "type.googleapis.com/arrow.flight.protocol.sql.";
const NAMES: [&str; 20] = [
    "CommandStatementQuery",
    "CommandStatementUpdate",
    "TicketStatementQuery",
    "CommandPreparedStatementQuery",
    "CommandPreparedStatementUpdate",
    "CommandStatementIngest",
    "CommandGetSqlInfo",
    "CommandGetXdbcTypeInfo",
    "CommandGetCatalogs",
    "CommandGetDbSchemas",
    "CommandGetTables",
    "CommandGetTableTypes",
    "CommandGetPrimaryKeys",
    "CommandGetExportedKeys",
    "CommandGetImportedKeys",
    "CommandGetCrossReference",
    "ActionCreatePreparedStatementRequest",
    "ActionClosePreparedStatementRequest",
    "ActionBeginTransactionRequest",
    "CommandStatementSubstraitPlan",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&what, rest)) = bytes.split_first() else { return };
    match usize::from(what) {
        0 => {
            fuzzing::command(rest);
        }
        1 => fuzzing::hand_shake(rest),
        2 => {
            if let Ok(sql) = std::str::from_utf8(rest) {
                fuzzing::statement(sql);
            }
        }
        3 => {
            let (header, body) = rest.split_at(rest.len() / 2);
            fuzzing::rows(header, body);
        }
        number => {
            fuzzing::command(&any(NAMES[number % NAMES.len()], rest));
        }
    }
});

fn any(name: &str, value: &[u8]) -> Vec<u8> {
    let name = format!("{NAMES_BEGIN}{name}");
    let mut bytes = vec![0x0a, name.len() as u8];
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0x12);
    bytes.extend_from_slice(&varint(value.len()));
    bytes.extend_from_slice(value);
    bytes
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 128 {
        bytes.push(number as u8 & 127 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
