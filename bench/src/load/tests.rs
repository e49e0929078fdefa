//! The load generator against a server that misbehaves on purpose: what it says was acknowledged has to be what the
//! server acknowledged, id by id.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

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

fn serve(stream: TcpStream, acknowledged: &Mutex<BTreeSet<Id>>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let id = read_insert(&mut reader)?;
        let answer = answer_to(id.1);
        if answer != BUSY && answer != CUT_SHORT {
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

fn plan(address: &str, in_step: bool) -> Plan {
    let text = format!(
        r#"{{"address": "{address}", "heads": ["POST / HTTP/1.1\r\nHost: x\r\nContent-Length: "], "zipf": false,
        "stride": null, "format": "JSONEachRow", "connections": 5, "first_conn": 0, "warmup_seconds": 0,
        "seconds": 600, "inserts_per_connection": 70, "interval_seconds": null, "in_step": {in_step},
        "grace_seconds": 10}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn run_against_misbehaving_server(in_step: bool) -> (Load, BTreeSet<Id>) {
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
    let load = run(plan(&address, in_step)).unwrap();
    let acknowledged = acknowledged.lock().unwrap().clone();
    (load, acknowledged)
}

#[test]
fn what_it_calls_acknowledged_is_what_the_server_acknowledged() {
    for in_step in [false, true] {
        let (load, by_server) = run_against_misbehaving_server(in_step);
        let mut by_load = BTreeSet::new();
        for (conn, (sent, unacknowledged)) in load.sent.iter().zip(&load.unacknowledged).enumerate() {
            assert_eq!(*sent, 70);
            by_load.extend((0..*sent).filter(|seq| !unacknowledged.contains(seq)).map(|seq| (conn as u64, seq)));
        }
        assert_eq!(by_load, by_server);
        assert_eq!(load.in_window, by_server.len() as u64);
        assert_eq!((load.statuses[&200], load.statuses[&503], load.broken), (250, 50, 50));
        assert_eq!(load.steps_ms.len(), if in_step { 70 } else { 0 });
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    assert!(run(plan("127.0.0.1:1", false)).is_err());
}

#[test]
fn only_whole_intervals_are_missed() {
    let next = Instant::now();
    let interval = Duration::from_secs(1);
    let at = |ms| next + Duration::from_millis(ms);
    let missed: Vec<u32> = [0, 999, 1000, 3500].map(|ms| missed_since(next, at(ms), interval)).to_vec();
    assert_eq!(missed, [0, 0, 1, 3]);
}

#[test]
fn quantiles_are_of_a_sorted_list_and_of_nothing_0() {
    let sorted: Vec<u32> = (1..=10_000).collect();
    assert_eq!([0.5, 0.95, 0.99, 1.0].map(|share| quantile_ms(&sorted, share)), [5.0, 9.5, 9.9, 10.0]);
    assert_eq!(quantile_ms(&[], 0.99), 0.0);
}
