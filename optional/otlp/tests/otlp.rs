//! Tests of requests, and of bytes that are no request.

use bytes::Bytes;
use windrow_columns::{decode_native, ColumnView, Layout as Cells, NativeLimits};
use windrow_otlp::{decode, DecodeError, Encoding, Kind, Layout, LayoutError, Limits, Request, Signal, Unreadable};

/// A request with a bit of everything, in JSON, which is easier to read than bytes.
const LOGS: &str = r#"{"resourceLogs":[
  {"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},
                             {"key":"tenant","value":{"stringValue":"a"}}]},
   "scopeLogs":[{"scope":{"name":"lib","attributes":[{"key":"x","value":{"boolValue":true}}]},
     "logRecords":[
       {"timeUnixNano":"1700000000000000001","severityNumber":9,"severityText":"INFO","body":{"stringValue":"one"},
        "traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","flags":1,
        "attributes":[{"key":"b","value":{"intValue":"7"}},
                      {"key":"a","value":{"kvlistValue":{"values":[{"key":"k","value":{"doubleValue":1.5}}]}}}]},
       {"observedTimeUnixNano":"1700000000000000002","body":{"arrayValue":{"values":[{"intValue":"1"},{}]}}}]}]},
  {"resource":{"attributes":[{"key":"tenant","value":{"stringValue":"b"}}]},
   "scopeLogs":[{"logRecords":[{"eventName":"three"}]}]},
  {"resource":{"attributes":[{"key":"tenant","value":{"stringValue":"a"}}]},
   "scopeLogs":[{"logRecords":[{"eventName":"four"}]}]}]}"#;

const METRICS: &str = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
  {"name":"g","gauge":{"dataPoints":[{"asInt":"5","exemplars":[{"asDouble":1}]},{"asDouble":"NaN"}]}},
  {"name":"s","sum":{"dataPoints":[{"asDouble":1.5}],"isMonotonic":true,"aggregationTemporality":2}},
  {"name":"h","histogram":{"dataPoints":[{"count":"3","bucketCounts":["1",2],"explicitBounds":[0.5]}]}},
  {"name":"e","exponentialHistogram":{"dataPoints":[{"scale":-1,"positive":{"offset":-2,"bucketCounts":["3"]}}]}},
  {"name":"q","summary":{"dataPoints":[{"quantileValues":[{"quantile":0.5,"value":2}]}]}},
  {"name":"nothing"}]}]}]}"#;

const TRACES: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[
  {"name":"n","kind":2,"startTimeUnixNano":"5","endTimeUnixNano":"9","status":{"code":2,"message":"m"},
   "events":[{"name":"e","attributes":[{"key":"k","value":{"bytesValue":"AQI="}}]}],
   "links":[{"spanId":"eee19b7ec3c1b174"}]}]}]}]}"#;

fn read(signal: Signal, json: &str) -> Request {
    decode(signal, Encoding::Json, &Bytes::copy_from_slice(json.as_bytes()), &Limits::default()).unwrap()
}

fn pairs(columns: &[(&str, &str)]) -> Vec<(String, String)> {
    columns.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
}

fn layout(kind: Kind, columns: &[(&str, &str)]) -> Layout {
    Layout::new(kind, &pairs(columns)).unwrap()
}

/// Returns all values of a column of texts.
fn texts(column: ColumnView<'_>) -> Vec<String> {
    let Cells::Strings(strings) = column.layout() else { panic!("no column of texts") };
    strings.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

fn column(request: &Request, kind: Kind, name: &str, type_text: &str) -> Vec<String> {
    let layout = layout(kind, &[(name, type_text)]);
    texts(request.block(&layout).columns.column(0).unwrap())
}

#[test]
fn rows_are_counted_by_kind() {
    let metrics = read(Signal::Metrics, METRICS);
    let expected =
        [(Kind::Gauge, 2), (Kind::Sum, 1), (Kind::Summary, 1), (Kind::Histogram, 1), (Kind::ExponentialHistogram, 1)];
    assert_eq!(metrics.kinds().collect::<Vec<_>>(), expected);
    assert_eq!(metrics.rows(), 6);
    assert_eq!(read(Signal::Logs, LOGS).kinds().collect::<Vec<_>>(), [(Kind::Logs, 4)]);
    assert_eq!(read(Signal::Logs, "{}").rows(), 0);
}

#[test]
fn a_block_is_a_native_block_of_the_layouts_columns() {
    let layout = layout(
        Kind::Logs,
        &[
            ("Timestamp", "DateTime64(9)"),
            ("Unknown", "UUID"),
            ("ServiceName", "LowCardinality(String)"),
            ("LogAttributes", "Map(LowCardinality(String), String)"),
            ("SeverityNumber", "Int32"),
        ],
    );
    let request = read(Signal::Logs, LOGS);
    let native = request.block(&layout).native();
    let block = decode_native(&native, NativeLimits::default()).unwrap();
    assert_eq!(block.names, ["Timestamp", "ServiceName", "LogAttributes", "SeverityNumber"]);
    assert_eq!(block.names, layout.columns().collect::<Vec<_>>());
    let types: Vec<String> = block.types.iter().map(ToString::to_string).collect();
    assert_eq!(types, ["DateTime64(9)", "String", "Map(String, String)", "Int32"]);
    assert_eq!(block.block.rows(), 4);
    assert_eq!(texts(block.block.column(1).unwrap()), ["shop", "shop", "", ""]);
}

#[test]
fn a_table_of_ones_own_is_filled_as_it_was_said() {
    let columns = pairs(&[("message", "String"), ("b", "Nullable(String)"), ("at", "UInt64"), ("json", "String")]);
    let mapping = pairs(&[
        ("message", "Body"),
        ("b", "LogAttributes['b']"),
        ("json", "LogAttributes"),
        ("at", "ObservedTimestamp"),
    ]);
    let layout = Layout::mapped(Kind::Logs, &columns, &mapping).unwrap();
    assert_eq!(layout.columns().collect::<Vec<_>>(), ["message", "b", "json", "at"]);
    let block = read(Signal::Logs, LOGS).block(&layout).columns;
    assert_eq!(texts(block.column(0).unwrap()), ["one", "[1,null]", "", ""]);
    assert_eq!(texts(block.column(1).unwrap()), ["7", "", "", ""]);
    assert_eq!(texts(block.column(2).unwrap())[0], r#"{"a":{"k":1.5},"b":7}"#);
}

#[test]
fn a_layout_says_what_can_not_be_filled() {
    let error = |columns: &[(&str, &str)]| Layout::new(Kind::Traces, &pairs(columns)).unwrap_err().to_string();
    let told = error(&[("SpanName", "String"), ("Duration", "Decimal(9, 2)")]);
    assert!(told.contains("Duration") && told.contains("Decimal(9, 2)") && told.contains("an integer"), "{told}");
    assert!(error(&[("Events", "Array(Tuple(Timestamp DateTime64(9)))")]).contains("flatten_nested"));
    assert!(error(&[("else", "String")]).contains("none of the columns"));
    let mapped = |mapping: &[(&str, &str)]| Layout::mapped(Kind::Traces, &pairs(&[("a", "String")]), &pairs(mapping));
    for wrong in ["Body", "SpanAttributes['a'", "SpanName['a']", "", "Events.Nothing"] {
        let error = mapped(&[("a", wrong)]).unwrap_err();
        assert_eq!(error, LayoutError::Source { column: "a".into(), source: wrong.into() });
    }
    assert_eq!(mapped(&[("b", "SpanName")]).unwrap_err(), LayoutError::NoColumn { column: "b".into() });
    let twice = mapped(&[("a", "SpanName"), ("a", "TraceId")]).unwrap_err();
    assert_eq!(twice, LayoutError::Twice { column: "a".into() });
    assert!(mapped(&[("a", r"SpanAttributes['it\'s']")]).is_ok());
    let nested = pairs(&[("n.a", "Array(String)"), ("n.b", "Array(String)")]);
    let lists = |one, other| Layout::mapped(Kind::Traces, &nested, &pairs(&[("n.a", one), ("n.b", other)]));
    assert!(lists("Links.SpanId", "Links.TraceId").is_ok());
    let error = lists("Links.SpanId", "Events.Name").unwrap_err();
    assert_eq!(error, LayoutError::Lists { column: "n.a".into(), other: "n.b".into() });
}

#[test]
fn requests_are_split_by_an_attribute_of_their_resources() {
    let request = read(Signal::Logs, LOGS);
    assert_eq!(request.resource_attribute("tenant"), None);
    let pieces = request.split_by_resource_attribute("tenant");
    let told: Vec<_> = pieces.iter().map(|(value, piece)| (value.as_deref(), piece.rows())).collect();
    assert_eq!(told, [(Some("a"), 3), (Some("b"), 1)]);
    assert_eq!(pieces[0].1.resource_attribute("tenant").as_deref(), Some("a"));
    assert_eq!(column(&pieces[0].1, Kind::Logs, "EventName", "String"), ["", "", "four"]);
    assert_eq!(column(&pieces[1].1, Kind::Logs, "EventName", "String"), ["three"]);
}

#[test]
fn a_request_is_as_old_as_its_last_record() {
    let last = |signal, json: &str| read(signal, json).last_time();
    assert_eq!(last(Signal::Logs, LOGS), None, "the last one has no time");
    let logs =
        r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"5"},{"observedTimeUnixNano":"7"}]}]}]}"#;
    assert_eq!(last(Signal::Logs, logs), Some(7));
    assert_eq!(last(Signal::Traces, TRACES), Some(9));
    let points = |of: &str| {
        format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"{of}":{{"dataPoints":[{{"timeUnixNano":"8"}}]}}}}]}}]}}]}}"#
        )
    };
    for kind in ["gauge", "sum", "histogram", "exponentialHistogram", "summary"] {
        assert_eq!(last(Signal::Metrics, &points(kind)), Some(8), "{kind}");
    }
    assert_eq!(last(Signal::Metrics, "{}"), None);
}

#[test]
fn objects_that_json_can_not_have_are_rejected() {
    let attributes = |value: &str| {
        format!(
            r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"eventName":"kept"}},{{"attributes":{value}}}]}}]}}]}}"#
        )
    };
    let layout = layout(Kind::Logs, &[("LogAttributes", "JSON"), ("LogAttributesKeys", "Array(String)")]);
    let nan = r#"[{"key":"k","value":{"arrayValue":{"values":[{"doubleValue":"-Infinity"}]}}}]"#;
    let doubled = r#"[{"key":"a.b","value":{"intValue":1}},
        {"key":"a","value":{"kvlistValue":{"values":[{"key":"b","value":{"intValue":1}}]}}}]"#;
    let cases = [(nan, "infinite", r#"{"k":["-Infinity"]}"#), (doubled, "path", r#"{"a":{"b":1},"a.b":1}"#)];
    for (value, because, kept) in cases {
        let request = read(Signal::Logs, &attributes(value));
        let block = request.block(&layout);
        assert_eq!((block.rows(), block.rejected), (1, 1), "{value}");
        assert!(block.rejected_because.unwrap().contains(because), "{value}");
        let rejected = request.rejected_block(&layout);
        assert_eq!((rejected.rows(), rejected.rejected), (1, 1), "{value}");
        assert_eq!(texts(rejected.columns.column(0).unwrap()), [kept], "{value}");
    }
    // An empty value is none.
    assert_eq!(
        read(Signal::Logs, &attributes(&doubled.replace(r#"{"intValue":1}}]"#, "{}}]"))).block(&layout).rejected,
        0
    );
}

#[test]
fn rows_without_a_table_that_fits_are_kept_in_its_columns_all_the_same() {
    let all = [(Signal::Logs, LOGS, 16), (Signal::Traces, TRACES, 22)];
    for (signal, json, columns) in all {
        let request = read(signal, json);
        for (kind, rows) in request.kinds() {
            let layout = Layout::natural(kind, None).unwrap();
            assert_eq!((request.block(&layout).rows(), layout.columns().count()), (rows, columns), "{kind:?}");
        }
    }
    let request = read(Signal::Metrics, METRICS);
    for (kind, rows) in request.kinds() {
        assert_eq!(request.block(&Layout::natural(kind, None).unwrap()).rows(), rows, "{kind:?}");
    }
    let mapping = pairs(&[("message", "Body"), ("pod", "ResourceAttributes['tenant']"), ("unknown", "Nothing")]);
    let layout = Layout::natural(Kind::Logs, Some(&mapping)).unwrap();
    assert_eq!(layout.columns().collect::<Vec<_>>(), ["message", "pod"]);
    let request = read(Signal::Logs, LOGS);
    assert_eq!(texts(request.block(&layout).columns.column(1).unwrap()), ["a", "a", "b", "a"]);
}

#[test]
fn a_small_request_makes_no_large_block() {
    let many = vec![r#"{"flags":1}"#; 10_000].join(",");
    let resource = format!(r#"{{"attributes":[{{"key":"k","value":{{"stringValue":"{}"}}}}]}}"#, "v".repeat(10_000));
    let json = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{many}]}}],"resource":{resource}}}]}}"#);
    let payload = Bytes::from(json);
    let limits = Limits { max_unfolded_bytes: 50 << 20, ..Limits::default() };
    let error = decode(Signal::Logs, Encoding::Json, &payload, &limits).unwrap_err();
    assert_eq!(error, DecodeError::TooLarge { max_unfolded_bytes: 50 << 20 });
    assert!(decode(Signal::Logs, Encoding::Json, &payload, &Limits::default()).is_ok());
    let layout = layout(Kind::Logs, &[("LogAttributesKeys", "Array(String)")]);
    let within =
        |key: &str, inner: &str| format!(r#"{{"key":"{key}","value":{{"kvlistValue":{{"values":[{inner}]}}}}}}"#);
    let entries = (0..5_000).map(|n| format!(r#"{{"key":"{n}"}}"#)).collect::<Vec<_>>().join(",");
    let long = within(&"k".repeat(100_000), &entries);
    let request = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"attributes":[{long}]}}]}}]}}]}}"#);
    assert_eq!(read(Signal::Logs, &request).block(&layout).rejected, 1);
}

#[test]
fn values_are_nested_so_far_and_no_further() {
    let nested = |depth: usize| {
        let mut value = vec![0x18, 1];
        for _ in 0..depth {
            value = field(5, &field(1, &value));
        }
        let record = field(5, &value);
        Bytes::from(field(1, &field(2, &field(2, &record))))
    };
    let decoded = |depth| decode(Signal::Logs, Encoding::Protobuf, &nested(depth), &Limits::default());
    assert!(decoded(32).is_ok());
    assert_eq!(decoded(33).unwrap_err(), DecodeError::TooDeep { max_depth: 32 });
    assert_eq!(decoded(20_000).unwrap_err(), DecodeError::TooDeep { max_depth: 32 });
    let json = |depth: usize, open: &str, close: &str| {
        let body = format!("{}{{}}{}", open.repeat(depth), close.repeat(depth));
        decode(
            Signal::Logs,
            Encoding::Json,
            &around(Signal::Logs, &format!(r#"{{"body":{body}}}"#)).into(),
            &Limits::default(),
        )
    };
    for (open, close) in [(r#"{"kvlistValue":{"values":[{"value":"#, "}]}}"), (r#"{"arrayValue":{"values":["#, "]}}")] {
        assert!(json(32, open, close).is_ok());
        assert_eq!(json(33, open, close).unwrap_err(), DecodeError::TooDeep { max_depth: 32 });
        assert_eq!(json(20_000, open, close).unwrap_err(), DecodeError::TooDeep { max_depth: 32 });
    }
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    windrow_columns::wire::write_varint(&mut out, content.len() as u64);
    out.extend_from_slice(content);
    out
}

/// Returns fields in JSON that make their record unreadable: the value is not the field's, or is no JSON.
fn spoiled_fields(signal: Signal) -> Vec<String> {
    let deep = |field: &str| {
        let (open, close) = (r#"{"kvlistValue":{"values":[{"value":"#, "}]}}");
        format!(r#""{field}":[{{"value":{}{{}}{}}}]"#, open.repeat(33), close.repeat(33))
    };
    let attributes = |field: &str| {
        let bad = [
            "{}",
            "7",
            r#"[7]"#,
            r#"[[]]"#,
            r#"[{"key":7}]"#,
            r#"[{"value":"v"}]"#,
            r#"[{"value":[]}]"#,
            r#"[{"value":{"intValue":1.5}}]"#,
            r#"[{"value":{"intValue":"9223372036854775808"}}]"#,
            r#"[{"value":{"boolValue":"true"}}]"#,
            r#"[{"value":{"boolValue":1}}]"#,
            r#"[{"value":{"stringValue":7}}]"#,
            r#"[{"value":{"stringValue":"\q"}}]"#,
            r#"[{"value":{"doubleValue":1e999}}]"#,
            r#"[{"value":{"doubleValue":NaN}}]"#,
            r#"[{"value":{"doubleValue":"much"}}]"#,
            r#"[{"value":{"bytesValue":"%"}}]"#,
            r#"[{"value":{"arrayValue":[]}}]"#,
            r#"[{"value":{"kvlistValue":{"values":{}}}}]"#,
        ];
        bad.iter().map(|bad| format!(r#""{field}":{bad}"#)).chain([deep(field)]).collect::<Vec<_>>()
    };
    let times = |field: &str| {
        let bad = ["-1", "1.5", "true", "{}", "[5]", "01", "18446744073709551616", r#""noon""#, r#""\ud83d""#, r#""""#];
        bad.map(|bad| format!(r#""{field}":{bad}"#)).to_vec()
    };
    let own: &[&str] = match signal {
        Signal::Logs => &[
            r#""traceId":"00""#,
            r#""spanId":"zz00000000000000""#,
            r#""spanId":7"#,
            r#""severityNumber":"LOUD""#,
            r#""severityText":{}"#,
            r#""body":"text""#,
            r#""eventName":["e"]"#,
            r#""flags":-1"#,
            r#""flags":4294967296"#,
        ],
        Signal::Traces => &[
            r#""parentSpanId":"0""#,
            r#""kind":"NEW""#,
            r#""kind":2147483648"#,
            r#""status":7"#,
            r#""status":{"code":"BAD"}"#,
            r#""events":{}"#,
            r#""events":[7]"#,
            r#""events":[{"timeUnixNano":"x"}]"#,
            r#""links":[{"spanId":"00"}]"#,
        ],
        Signal::Metrics => &[
            r#""asInt":1.5"#,
            r#""asDouble":"x""#,
            r#""exemplars":[{"traceId":"00"}]"#,
            r#""exemplars":{}"#,
            r#""flags":-1"#,
        ],
    };
    let time = if signal == Signal::Traces { "startTimeUnixNano" } else { "timeUnixNano" };
    own.iter().map(|own| (*own).to_owned()).chain(attributes("attributes")).chain(times(time)).collect()
}

/// Returns a request of such rows, with the messages around them.
fn around(signal: Signal, rows: &str) -> String {
    match signal {
        Signal::Logs => format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{rows}]}}]}}]}}"#),
        Signal::Traces => format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{rows}]}}]}}]}}"#),
        Signal::Metrics => format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"m","gauge":{{"dataPoints":[{rows}]}}}}]}}]}}]}}"#
        ),
    }
}

#[test]
fn a_row_that_can_not_be_read_takes_no_other_along() {
    for signal in [Signal::Logs, Signal::Traces, Signal::Metrics] {
        let good = |at: usize| format!(r#"{{"attributes":[{{"key":"k","value":{{"intValue":{at}}}}}]}}"#);
        let column = match signal {
            Signal::Logs => (Kind::Logs, "LogAttributes"),
            Signal::Traces => (Kind::Traces, "SpanAttributes"),
            Signal::Metrics => (Kind::Gauge, "Attributes"),
        };
        let layout =
            Layout::mapped(column.0, &pairs(&[("a", "String")]), &pairs(&[("a", &format!("{}['k']", column.1))]))
                .unwrap();
        for spoiled in spoiled_fields(signal) {
            let bad = format!(r#"{{"attributes":[{{"key":"k","value":{{"intValue":7}}}}],{spoiled}}}"#);
            let request = read(
                signal,
                &around(signal, &[&good(0), &bad, &good(1), "[]", &good(2)].map(|row| row.to_owned()).join(",")),
            );
            assert_eq!(request.unreadable().map(|unreadable| unreadable.rows), Some(2), "{spoiled}");
            assert_eq!(texts(request.block(&layout).columns.column(0).unwrap()), ["0", "1", "2"], "{spoiled}");
            let alone = decode(signal, Encoding::Json, &Bytes::from(around(signal, &bad)), &Limits::default());
            assert!(alone.is_err(), "{spoiled}: nothing of it can be read");
        }
    }
}

#[test]
fn what_rows_share_takes_them_along_and_no_others() {
    let kept = |signal, json: &str| {
        let request = read(signal, json);
        (request.rows(), request.unreadable().cloned())
    };
    let lost = |rows, because: &str| Some(Unreadable { rows, because: because.to_owned() });
    let resource = r#"{"resourceLogs":[{"resource":{"attributes":7},"scopeLogs":[{"logRecords":[{},{},{"flags":-1}]}]},
        {"scopeLogs":[{"logRecords":[{}]},{"scope":{"name":7},"logRecords":[{},{}]},7]}]}"#;
    assert_eq!(kept(Signal::Logs, resource), (1, lost(6, "the field flags is a number in a smaller range")));
    let metric = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
        {"name":7,"gauge":{"dataPoints":[{},{}]}}, {"name":"a","sum":{"dataPoints":[{},{"flags":-1}]}},
        {"name":"b","histogram":{"aggregationTemporality":"NEW","dataPoints":[{}]}},
        {"name":"c","exponentialHistogram":{"dataPoints":[{"positive":{"offset":"x"}},{}]}},
        {"name":"d","summary":{"dataPoints":[{"quantileValues":[{"quantile":"x"}]},{}]}}]}]}]}"#;
    assert_eq!(kept(Signal::Metrics, metric), (3, lost(6, "the field name is no number")));
}

#[test]
fn a_message_of_protobuf_that_can_not_be_read_takes_no_other_along() {
    let good = |at: u8| field(12, &[b'0' + at]);
    let bad: [(&str, Vec<u8>); 9] = [
        ("cut off", vec![0x62, 5, b'x']),
        ("no number", vec![0x00]),
        ("no wire type", vec![0x0E]),
        ("an end of nothing", vec![0x0C]),
        ("another wire type", vec![0x08, 5]),
        ("a number that is too long", [&[0x10][..], &[0xFF; 10], &[1]].concat()),
        ("an id of another length", field(9, &[1, 2, 3])),
        ("deep in a value", field(5, &field(5, &field(1, &[0x0A, 9])))),
        ("a body of another type", vec![0x28, 1]),
    ];
    let layout = layout(Kind::Logs, &[("EventName", "String")]);
    for (what, bad) in &bad {
        let records = [&good(0), bad, &good(1)].map(|record| field(2, record)).concat();
        let payload = field(1, &[field(2, &records), field(2, &field(2, &good(2)))].concat());
        let request = decode(Signal::Logs, Encoding::Protobuf, &payload.into(), &Limits::default()).unwrap();
        assert_eq!(request.unreadable().map(|unreadable| unreadable.rows), Some(1), "{what}");
        assert_eq!(texts(request.block(&layout).columns.column(0).unwrap()), ["0", "1", "2"], "{what}");
        let split = request.split_by_resource_attribute("tenant");
        assert_eq!(split.iter().map(|(_, piece)| piece.rows()).sum::<usize>(), 3, "{what}");
    }
    // Where a resource is cut off nobody knows where the next one begins.
    let cut = [field(1, &field(2, &field(2, &good(0)))), vec![0x0A, 90, 1]].concat();
    assert!(decode(Signal::Logs, Encoding::Protobuf, &cut.into(), &Limits::default()).is_err());
}

/// Writes every request that can be read with every layout of its kinds.
fn exercise(signal: Signal, payload: &[u8]) {
    let payload = Bytes::copy_from_slice(payload);
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let Ok(request) = decode(signal, encoding, &payload, &Limits::default()) else { continue };
        for (kind, rows) in request.kinds() {
            for layout in layouts(kind) {
                let block = request.block(&layout);
                assert_eq!(block.rows() + block.rejected, rows);
                let read = decode_native(&block.native(), NativeLimits::default()).unwrap();
                assert_eq!(read.block.rows(), block.rows());
            }
        }
        let rows = request.rows();
        let split = request.split_by_resource_attribute("tenant");
        assert_eq!(split.iter().map(|(_, piece)| piece.rows()).sum::<usize>(), rows);
    }
}

fn layouts(kind: Kind) -> [Layout; 2] {
    let map = "Map(LowCardinality(String), String)";
    let list = "Array(Map(LowCardinality(String), String))";
    let common = [("ResourceAttributes", map), ("ServiceName", "String"), ("ScopeDroppedAttrCount", "UInt32")];
    let own: &[(&str, &str)] = match kind {
        Kind::Logs => &[("Body", "String"), ("LogAttributes", map), ("Timestamp", "DateTime"), ("TraceId", "String")],
        Kind::Traces => &[
            ("Events.Attributes", list),
            ("Links.SpanId", "Array(String)"),
            ("Duration", "Int64"),
            ("SpanAttributes", "JSON"),
        ],
        Kind::Gauge => &[("Value", "Float64"), ("Exemplars.TraceId", "Array(String)"), ("Attributes", map)],
        Kind::Sum => &[("Value", "Float32"), ("IsMonotonic", "Bool"), ("AggregationTemporality", "Int32")],
        Kind::Summary => &[("ValueAtQuantiles.Value", "Array(Float64)"), ("TimeUnix", "DateTime64(3)")],
        Kind::Histogram => &[("BucketCounts", "Array(UInt64)"), ("ExplicitBounds", "Array(Float64)")],
        Kind::ExponentialHistogram => &[("PositiveBucketCounts", "Array(UInt64)"), ("Scale", "Int32")],
    };
    let json = [("ResourceAttributes", "JSON"), ("ResourceAttributesKeys", "Array(LowCardinality(String))")];
    [layout(kind, &[&common[..], own].concat()), layout(kind, &[&json[..], own].concat())]
}

/// Returns samples in Protobuf, as a request in JSON would become.
fn samples() -> Vec<(Signal, Vec<u8>)> {
    let text = |number, text: &str| field(number, text.as_bytes());
    let attribute = |number, value: &[u8]| field(number, &[text(1, "k"), field(2, value)].concat());
    let values: Vec<Vec<u8>> = vec![
        text(1, "v"),
        vec![0x10, 1],
        vec![0x18, 0xFF, 0x01],
        [&[0x21][..], &1.5_f64.to_le_bytes()].concat(),
        field(5, &field(1, &text(1, "e"))),
        field(6, &attribute(1, &[0x10, 1])),
        field(7, &[1, 2]),
    ];
    let attributes = |number| values.iter().flat_map(|value| attribute(number, value)).collect::<Vec<u8>>();
    let resource = field(1, &attributes(1));
    let record = [field(5, &text(1, "b")), attributes(6), field(9, &[1; 16]), vec![0x45, 1, 0, 0, 0]].concat();
    let span = [
        field(1, &[1; 16]),
        attributes(9),
        field(11, &attributes(3)),
        field(13, &attributes(4)),
        field(15, &[0x18, 2]),
    ]
    .concat();
    let exemplar = [field(4, &[1; 8]), attributes(7)].concat();
    let number = field(1, &[field(5, &exemplar), attributes(7)].concat());
    let histogram = field(1, &[field(6, &[0; 16]), vec![0x31, 1, 0, 0, 0, 0, 0, 0, 0], field(8, &exemplar)].concat());
    let exponential = field(1, &[vec![0x30, 5], field(8, &[0x08, 3, 0x12, 2, 1, 2])].concat());
    let summary = field(1, &field(6, &[&[0x09][..], &0.5_f64.to_le_bytes()].concat()));
    let metric = |number, data: &[u8]| field(2, &[text(1, "m"), field(number, data)].concat());
    let metrics =
        [metric(5, &number), metric(7, &number), metric(9, &histogram), metric(10, &exponential), metric(11, &summary)]
            .concat();
    let request = |rows: Vec<u8>| field(1, &[resource.clone(), field(2, &rows)].concat());
    vec![
        (Signal::Logs, request(field(2, &record))),
        (Signal::Traces, request(field(2, &span))),
        (Signal::Metrics, request(metrics)),
    ]
}

#[test]
fn every_truncation_is_read_or_refused() {
    for (signal, sample) in samples() {
        let whole = decode(signal, Encoding::Protobuf, &Bytes::from(sample.clone()), &Limits::default()).unwrap();
        assert!(whole.rows() > 0);
        for length in 0..=sample.len() {
            exercise(signal, &sample[..length]);
        }
    }
    for (signal, sample) in [(Signal::Logs, LOGS), (Signal::Traces, TRACES), (Signal::Metrics, METRICS)] {
        for length in 0..sample.len() {
            let payload = Bytes::copy_from_slice(&sample.as_bytes()[..length]);
            assert!(decode(signal, Encoding::Json, &payload, &Limits::default()).is_err(), "{length} bytes");
        }
        exercise(signal, sample.as_bytes());
    }
}

#[test]
fn changed_and_random_bytes_are_read_or_refused() {
    let seed = 20261;
    let mut random = fastrand::Rng::with_seed(seed);
    for (signal, sample) in samples() {
        for _ in 0..4_000 {
            let mut changed = sample.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..changed.len());
                changed[at] = random.u8(..);
            }
            exercise(signal, &changed);
        }
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..random.usize(..60)).map(|_| random.u8(..)).collect();
            exercise(signal, &bytes);
        }
    }
}
