#![no_main]
//! Reads export requests of any bytes, in Protobuf and in JSON, into blocks for the exporter's tables: every
//! row that was counted is in a block, or was rejected, and the block can be read.

use std::sync::LazyLock;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use windrow_columns::{decode_native, NativeLimits};
use windrow_otlp::{decode, Encoding, Kind, Layout, Limits, Signal};

const MAP: &str = "Map(LowCardinality(String), String)";
const MAPS: &str = "Array(Map(LowCardinality(String), String))";
const TEXTS: &str = "Array(String)";
const NUMBERS: &str = "Array(UInt64)";

/// Columns of a table, more than any kind has: each kind uses its own.
const COLUMNS: &[(&str, &str)] = &[
    ("ResourceAttributes", MAP),
    ("ResourceAttributesKeys", TEXTS),
    ("ServiceName", "String"),
    ("ScopeAttributes", "JSON"),
    ("LogAttributes", "JSON"),
    ("LogAttributesKeys", TEXTS),
    ("SpanAttributes", MAP),
    ("Attributes", MAP),
    ("Body", "String"),
    ("Timestamp", "DateTime64(9)"),
    ("TimeUnix", "DateTime"),
    ("TraceId", "String"),
    ("Duration", "UInt64"),
    ("Events.Attributes", MAPS),
    ("Links.TraceId", TEXTS),
    ("Value", "Float64"),
    ("Exemplars.SpanId", TEXTS),
    ("BucketCounts", NUMBERS),
    ("ExplicitBounds", "Array(Float64)"),
    ("PositiveBucketCounts", NUMBERS),
    ("ValueAtQuantiles.Value", "Array(Float64)"),
];

static LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    let columns: Vec<_> = COLUMNS.iter().map(|(name, of)| ((*name).to_owned(), (*of).to_owned())).collect();
    Kind::ALL.map(|kind| Layout::new(kind, &columns).expect("columns of every kind")).into()
});

fuzz_target!(|payload: &[u8]| {
    let payload = Bytes::copy_from_slice(payload);
    let limits = Limits { max_unfolded_bytes: 1 << 20, ..Limits::default() };
    for signal in [Signal::Logs, Signal::Traces, Signal::Metrics] {
        for encoding in [Encoding::Protobuf, Encoding::Json] {
            let Ok(request) = decode(signal, encoding, &payload, &limits) else { continue };
            for (kind, rows) in request.kinds() {
                let block = request.block(&LAYOUTS[kind as usize]);
                assert_eq!(block.rows() + block.rejected, rows);
                let read = decode_native(&block.native(), NativeLimits::default()).expect("a Native block");
                assert_eq!(read.block.rows(), block.rows());
            }
        }
    }
});
