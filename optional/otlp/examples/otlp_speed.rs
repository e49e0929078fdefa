//! Measures how many log records a second become a Native block on one core. A request has 100 records, with
//! 10 attributes on the resource, 5 on each record, and a body of 100 bytes. Usage: `otlp_speed [SECONDS]`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use windrow_columns::{ColumnSpec, DataType, DefaultKind, Format, ReadPlan, ReadSettings};
use windrow_otlp::{decode, Encoding, Kind, Layout, Limits, Signal};

const RECORDS: usize = 100;

/// The allocator that the program uses too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let seconds = std::env::args().nth(1).map_or(3.0, |text| text.parse().expect("seconds"));
    let request = Bytes::from(request());
    let map = "Map(LowCardinality(String), String)";
    let low = "LowCardinality(String)";
    let columns = [
        ("Timestamp", "DateTime64(9)"),
        ("TraceId", "String"),
        ("SpanId", "String"),
        ("TraceFlags", "UInt8"),
        ("SeverityText", low),
        ("SeverityNumber", "UInt8"),
        ("ServiceName", low),
        ("Body", "String"),
        ("ResourceSchemaUrl", low),
        ("ResourceAttributes", map),
        ("ScopeSchemaUrl", low),
        ("ScopeName", "String"),
        ("ScopeVersion", low),
        ("ScopeAttributes", map),
        ("LogAttributes", map),
        ("EventName", "String"),
    ];
    let columns = columns.map(|(name, of)| (name.to_owned(), of.to_owned()));
    let layout = Layout::new(Kind::Logs, &columns).expect("the exporter's table");
    let limits = Limits::default();
    let of_request = |what: &str, step: &dyn Fn() -> usize| measure(what, seconds, step);
    println!("{} bytes in a request of {RECORDS} records", request.len());
    of_request("decode", &|| decode(Signal::Logs, Encoding::Protobuf, &request, &limits).expect("a request").rows());
    let decoded = decode(Signal::Logs, Encoding::Protobuf, &request, &limits).expect("a request");
    of_request("block", &|| decoded.block(&layout).rows());
    of_request("decode, block, native", &|| {
        let request = decode(Signal::Logs, Encoding::Protobuf, &request, &limits).expect("a request");
        let block = request.block(&layout);
        std::hint::black_box(block.native());
        block.rows()
    });
    let native = decoded.block(&layout).native();
    let plan = plan(&columns);
    let format = Format::named("Native").expect("a format");
    of_request("the gateway's reading", &|| (format.read)(&native, &plan).expect("a block").block.rows());
}

fn plan(columns: &[(String, String)]) -> ReadPlan {
    let column = |(name, of): &(String, String)| ColumnSpec {
        name: name.clone(),
        data_type: DataType::parse(of).expect("a type"),
        default_kind: DefaultKind::None,
    };
    ReadPlan::new(columns.iter().map(column).collect(), ReadSettings::default())
}

fn measure(what: &str, seconds: f64, step: &dyn Fn() -> usize) {
    let (mut records, began) = (0, Instant::now());
    while began.elapsed() < Duration::from_secs_f64(seconds) {
        records += (0..100).map(|_| step()).sum::<usize>();
    }
    let per_second = records as f64 / began.elapsed().as_secs_f64();
    println!("{what:24} {:>6.2} million records/s", per_second / 1e6);
}

fn request() -> Vec<u8> {
    let resource =
        (0..10).flat_map(|n| attribute(1, &format!("resource.attribute.{n}"), &format!("value of {n} there")));
    let mut scope = field(1, &field(1, b"com.example.library"));
    for n in 0..RECORDS {
        scope.extend(field(2, &record(n)));
    }
    let resource: Vec<u8> = attribute(1, "service.name", "checkout").into_iter().chain(resource).collect();
    field(1, &[field(1, &resource), field(2, &scope), field(3, b"https://example.com/schema")].concat())
}

fn record(n: usize) -> Vec<u8> {
    let body = format!("{n:03} {}", "a line of a log as programs write them ".repeat(3));
    let mut record = fixed(1, 1_709_210_096_789_012_345 + n as u64);
    record.extend(fixed(11, 1_709_210_096_789_012_345 + n as u64));
    record.extend([0x10, 9]);
    record.extend(field(3, b"INFO"));
    record.extend(field(5, &field(1, &body.as_bytes()[..100])));
    for (key, value) in [("http.method", "GET"), ("http.route", "/api/orders/{id}"), ("thread.name", "worker-17")] {
        record.extend(attribute(6, key, value));
    }
    record.extend(field(6, &[field(1, b"http.status_code"), field(2, &[0x18, 200, 1])].concat()));
    record.extend(attribute(6, "user.id", &format!("user-{n}")));
    record.extend(field(9, &[7; 16]));
    record.extend(field(10, &[9; 8]));
    record
}

fn attribute(number: u8, key: &str, value: &str) -> Vec<u8> {
    field(number, &[field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat())
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    windrow_columns::wire::write_varint(&mut out, content.len() as u64);
    out.extend_from_slice(content);
    out
}

fn fixed(number: u8, value: u64) -> Vec<u8> {
    let mut out = vec![number << 3 | 1];
    out.extend(value.to_le_bytes());
    out
}
