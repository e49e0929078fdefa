//! How fast messages become rows: `cargo run --release -p windrow-kafka --example speed [FORMAT...]`. One thread,
//! rows of five fields.

use std::time::{Duration, Instant};

use windrow_columns::{ColumnSpec, DataType, DefaultKind, ReadSettings};
use windrow_kafka::messages::{Headers, Mapping, Message, MessageFormat, MessagePlan, MessageReader, SchemaSource};

/// As a fetch brings them.
const MESSAGES: usize = 100_000;
const ENOUGH: Duration = Duration::from_secs(2);

struct Case {
    name: &'static str,
    format: &'static str,
    rows_per_message: usize,
    virtual_columns: bool,
}

const fn case(name: &'static str, format: &'static str, rows_per_message: usize) -> Case {
    Case { name, format, rows_per_message, virtual_columns: false }
}

const SCHEMA: &str =
    "syntax = \"proto3\"; package demo; message Event { uint64 id = 1; string user = 2; double value = 3; \
    uint32 ok = 4; int64 time = 5; }";

const CASES: &[Case] = &[
    case("JSONEachRow", "JSONEachRow", 1),
    Case {
        name: "JSONEachRow with _topic, _partition, _offset, _timestamp_ms, _key",
        virtual_columns: true,
        ..case("", "JSONEachRow", 1)
    },
    case("JSONEachRow, 500 rows a message", "JSONEachRow", 500),
    case("CSV", "CSV", 1),
    case("TabSeparated", "TabSeparated", 1),
    case("RowBinary", "RowBinary", 1),
    case("RawBLOB", "RawBLOB", 1),
    case("ProtobufSingle", "ProtobufSingle", 1),
    case("Protobuf, 1 row a message", "Protobuf", 1),
    case("Protobuf, 500 rows a message", "Protobuf", 500),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for case in CASES {
        if wanted.is_empty() || wanted.iter().any(|name| case.format == name) {
            measure(case);
        }
    }
}

fn measure(case: &Case) {
    let plan = plan(case);
    let count = MESSAGES / case.rows_per_message;
    let values: Vec<Vec<u8>> = (0..count).map(|index| value(case, index)).collect();
    let bytes: usize = values.iter().map(Vec::len).sum();
    let (start, mut rounds, mut made) = (Instant::now(), 0u32, 0);
    while start.elapsed() < ENOUGH {
        let mut reader = MessageReader::new(&plan, "events", 1);
        for (offset, value) in values.iter().enumerate() {
            let message = Message {
                offset: offset as i64,
                timestamp_ms: 1_700_000_000_000 + offset as i64,
                key: Some(b"key"),
                value: Some(value),
                headers: Headers::default(),
            };
            reader.read(&message).expect("the message is well-formed");
        }
        made = reader.finish().iter().map(|run| run.rows).sum();
        rounds += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let rows_per_second = f64::from(rounds) * made as f64 / seconds;
    let megabytes_per_second = f64::from(rounds) * bytes as f64 / seconds / 1e6;
    println!("{:<70} {:>6.2} M rows/s {:>6.0} MB/s", case.name, rows_per_second / 1e6, megabytes_per_second);
}

fn plan(case: &Case) -> MessagePlan {
    let mut columns = match case.format {
        "RawBLOB" => vec![("body", "String")],
        _ => vec![
            ("id", "UInt64"),
            ("user", "String"),
            ("value", "Float64"),
            ("ok", "UInt8"),
            ("time", "DateTime64(3, 'UTC')"),
        ],
    };
    if case.virtual_columns {
        columns.extend([
            ("_topic", "LowCardinality(String)"),
            ("_partition", "UInt64"),
            ("_offset", "UInt64"),
            ("_timestamp_ms", "Nullable(DateTime64(3))"),
            ("_key", "String"),
        ]);
    }
    let column = |(name, data_type): (&str, &str)| ColumnSpec {
        name: name.to_owned(),
        data_type: DataType::parse(data_type).expect("a known type"),
        default_kind: DefaultKind::None,
    };
    let schema = SchemaSource { text: Some(SCHEMA), message: None };
    let format = MessageFormat::new(case.format, schema).expect("a known format");
    let columns = columns.into_iter().map(column).collect();
    MessagePlan::new(format, columns, &Mapping::default(), ReadSettings::default())
        .expect("a table that can be read into")
}

fn value(case: &Case, index: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for row in 0..case.rows_per_message {
        let id = (index * case.rows_per_message + row) as u64;
        let (user, value, ok) = (format!("user-{}", id % 1000), id as f64 / 8.0, id % 2);
        let time = format!("2026-01-02 03:04:{:02}.{:03}", id % 60, id % 1000);
        match case.format {
            "JSONEachRow" => out.extend_from_slice(
                format!("{{\"id\":{id},\"user\":\"{user}\",\"value\":{value},\"ok\":{ok},\"time\":\"{time}\"}}\n")
                    .as_bytes(),
            ),
            "CSV" => out.extend_from_slice(format!("{id},{user},{value},{ok},{time}\n").as_bytes()),
            "TabSeparated" => out.extend_from_slice(format!("{id}\t{user}\t{value}\t{ok}\t{time}\n").as_bytes()),
            "RowBinary" => {
                out.extend_from_slice(&id.to_le_bytes());
                out.push(user.len() as u8);
                out.extend_from_slice(user.as_bytes());
                out.extend_from_slice(&value.to_le_bytes());
                out.push(ok as u8);
                out.extend_from_slice(&(1_767_323_045_000 + id as i64).to_le_bytes());
            }
            "Protobuf" | "ProtobufSingle" => {
                let mut row = vec![1 << 3];
                push_varint(id, &mut row);
                row.extend_from_slice(&[2 << 3 | 2, user.len() as u8]);
                row.extend_from_slice(user.as_bytes());
                row.push(3 << 3 | 1);
                row.extend_from_slice(&value.to_le_bytes());
                row.extend_from_slice(&[4 << 3, ok as u8, 5 << 3]);
                push_varint(1_767_323_045 + id, &mut row);
                if case.format == "Protobuf" {
                    push_varint(row.len() as u64, &mut out);
                }
                out.extend_from_slice(&row);
            }
            _ => out.extend_from_slice(user.as_bytes()),
        }
    }
    out
}

fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
