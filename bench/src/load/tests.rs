//! The load generator against a server that misbehaves on purpose: what it says was acknowledged has to be what the
//! server acknowledged, id by id.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{insert_query, run, LoadOutcome, Plan, RowFormat, RowsOfRun};
use crate::wire::Endpoint;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const OK_IN_CHUNKS: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
const OK_AND_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
const CUT_SHORT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Le";

type Id = (u64, u64);

/// Answers by sequence number, and remembers what it acknowledged.
fn answer_to(seq: u64) -> &'static [u8] {
    match seq % 7 {
        1 => OK_IN_CHUNKS,
        2 => BUSY,
        4 => CUT_SHORT,
        5 => OK_AND_CLOSE,
        _ => OK,
    }
}

fn acknowledges(answer: &[u8]) -> bool {
    answer != BUSY && answer != CUT_SHORT
}

fn serve(stream: TcpStream, acknowledged: &Mutex<BTreeSet<Id>>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let id = read_insert(&mut reader)?;
        let answer = answer_to(id.1);
        if acknowledges(answer) {
            assert!(acknowledged.lock().unwrap().insert(id), "{id:?} was sent twice");
        }
        writer.write_all(answer).ok()?;
        if answer == CUT_SHORT || answer == OK_AND_CLOSE {
            return None;
        }
    }
}

fn read_insert(reader: &mut impl BufRead) -> Option<Id> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let row: serde_json::Value = serde_json::from_slice(&body).expect("a row is JSON");
    Some((row["conn"].as_u64().unwrap(), row["seq"].as_u64().unwrap()))
}

fn run_against_misbehaving_server(threads: u32) -> (LoadOutcome, BTreeSet<Id>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let shared = acknowledged.clone();
    // Ends with the test's process: nothing in it has to be waited for, every answer was read by the load generator.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = shared.clone();
            std::thread::spawn(move || serve(stream, &shared));
        }
    });
    let outcome = run(&Plan {
        target: Endpoint::without_user(address),
        query: insert_query("bench.t", RowFormat::JsonEachRow, &["async_insert=0"]),
        targets: None,
        format: RowFormat::JsonEachRow,
        rows: RowsOfRun::default(),
        connections: 5,
        threads,
        warmup: Duration::ZERO,
        window: Duration::from_secs(600),
        inserts_per_connection: Some(70),
        interval: None,
        grace: Duration::from_secs(10),
    })
    .unwrap();
    let acknowledged = acknowledged.lock().unwrap().clone();
    (outcome, acknowledged)
}

#[test]
fn what_it_calls_acknowledged_is_what_the_server_acknowledged() {
    for threads in [1, 2] {
        let (outcome, by_server) = run_against_misbehaving_server(threads);
        let mut by_load = BTreeSet::new();
        for (conn, ids) in outcome.ids.iter().enumerate() {
            assert_eq!(ids.sent, 70);
            let unacknowledged: BTreeSet<u64> = ids.unacknowledged.iter().copied().collect();
            by_load.extend((0..ids.sent).filter(|seq| !unacknowledged.contains(seq)).map(|seq| (conn as u64, seq)));
        }
        assert_eq!(by_load, by_server);
        assert_eq!(outcome.acknowledged_in_window, by_server.len() as u64);
        assert_eq!((outcome.statuses[&200], outcome.statuses[&503], outcome.broken), (250, 50, 50));
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let plan = Plan {
        target: Endpoint::without_user("127.0.0.1:1".to_owned()),
        query: String::new(),
        targets: None,
        format: RowFormat::JsonEachRow,
        rows: RowsOfRun::default(),
        connections: 3,
        threads: 2,
        warmup: Duration::ZERO,
        window: Duration::from_secs(600),
        inserts_per_connection: Some(1),
        interval: None,
        grace: Duration::ZERO,
    };
    assert!(run(&plan).is_err());
}
