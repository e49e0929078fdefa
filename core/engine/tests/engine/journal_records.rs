//! Tests that records of the journal are read as they were written, and that damaged ones are refused.

use std::sync::Arc;

use windrow_clickhouse::{Credentials, ErrorCode};
use windrow_columns::{read_json_each_row, ColumnSpec, DataType, DefaultKind, PartitionKey, PassthroughRows, ReadPlan};
use windrow_columns::{Format, ReadSettings, Rows};
use windrow_engine::{
    records::*,
    sink::{BatchId, Destination, Form, Partitioning, ShardTable},
};
use windrow_log::RecordId;

const COLUMNS: [(&str, &str); 7] = [
    ("id", "UInt64"),
    ("city", "LowCardinality(Nullable(String))"),
    ("tags", "Array(LowCardinality(String))"),
    ("at", "DateTime64(3, 'Europe/Berlin')"),
    ("where", "Tuple(`a b` Float64, c Map(String, UInt8))"),
    ("kind", "Enum8('x\\'' = -1, 'y' = 2)"),
    ("price", "Decimal(18, 4)"),
];

const PAYLOAD: &str = r#"{"id":1,"city":"Oslo","tags":["a","b"],"at":"2026-01-01 00:00:00.5","where":{"a b":1.5,"c":{"k":1}},"kind":"y","price":1.5}
{"id":2,"city":null,"tags":[],"at":"2026-01-01 00:00:00","where":{"a b":0,"c":{}},"kind":"y","price":2}
"#;

fn typed() -> (Destination, Rows) {
    let types: Vec<DataType> = COLUMNS.iter().map(|(_, text)| DataType::parse(text).unwrap()).collect();
    let columns = COLUMNS.iter().zip(&types).map(|((name, _), data_type)| ColumnSpec {
        name: name.to_string(),
        data_type: data_type.clone(),
        default_kind: DefaultKind::None,
    });
    let format = Format::named("JSONEachRow").unwrap();
    let plan = ReadPlan::new(columns.collect(), ReadSettings::of(format));
    let parsed = read_json_each_row(PAYLOAD.as_bytes(), &plan).unwrap();
    let destination = Destination {
        database: "default".into(),
        table: "odd `table`".into(),
        columns: COLUMNS.iter().map(|(name, _)| name.to_string()).collect(),
        form: Form::Native { types },
        credentials: Credentials { user: "joe".into(), password: "very secret".into() },
        own_account: false,
        roles: vec!["writer".into()],
        quota_key: "key".into(),
        shard: None,
        settings: vec![("insert_null_as_default".into(), "1".into())],
        deduplicates: true,
        is_replicated: true,
        has_views: false,
        hands_on: true,
        partitioning: Some(Partitioning {
            key: PartitionKey::parse("toYYYYMM(at)", "Europe/Berlin"),
            max_per_insert: Some(100),
        }),
    };
    (destination, Rows::Parsed(parsed.block))
}

fn text() -> (Destination, Rows) {
    let (destination, _) = typed();
    let form = Form::Text { format: "JSONEachRow", header: b"header".to_vec() };
    let rows = PassthroughRows::piece(b"{\"id\":1}\n{\"id\":2}\n".to_vec(), 2);
    (Destination { form, partitioning: None, ..destination }, Rows::Passthrough(rows))
}

fn context(destination: &Destination) -> Vec<u8> {
    encode_context(&ContextRecord { destination, query: "INSERT INTO t FORMAT JSONEachRow", format: "JSONEachRow" })
}

fn head() -> InsertHead {
    InsertHead {
        arrived_micros: 1_700_000_000_000_000,
        query_id: QueryId::Given("mine".into()),
        payload_bytes: PAYLOAD.len() as u64,
        ack: AckLevel::Disk,
        attempts: 3,
        dedup: vec![1, 2, 3],
    }
}

#[test]
fn destinations_come_back_without_the_password() {
    let of_shard = ShardTable {
        number: 2,
        topology: u64::MAX,
        replicas: vec!["tcp://a:9000".into(), "tcp://b:9000".into()],
        database: "default".into(),
        table: "local".into(),
    };
    let (cut, rows) = typed();
    let cut = Destination { shard: Some(Arc::new(of_shard)), ..cut };
    for (destination, _) in [typed(), text(), (cut, rows)] {
        let bytes = context(&destination);
        assert!(!bytes.windows(6).any(|window| window == b"secret"));
        let back = decode_context(&bytes).unwrap();
        let credentials = Credentials { user: "joe".into(), password: String::new() };
        assert_eq!(back.destination, Destination { credentials, own_account: true, ..destination });
        assert_eq!((&*back.query, &*back.format), ("INSERT INTO t FORMAT JSONEachRow", "JSONEachRow"));
    }
}

#[test]
fn inserts_come_back_with_their_rows() {
    for (destination, rows) in [typed(), text()] {
        let recorded = decode_context(&context(&destination)).unwrap();
        let random = InsertHead { query_id: QueryId::Random(7), ack: AckLevel::Stored, dedup: Vec::new(), ..head() };
        let memory = InsertHead { query_id: QueryId::Given(Arc::from("")), ack: AckLevel::Memory, ..head() };
        for head in [head(), random, memory] {
            let bytes = encode_insert(&head, &rows);
            assert_eq!(decode_insert_head(&bytes).unwrap(), head);
            assert_eq!(decode_insert(&bytes, &recorded).unwrap(), InsertRecord { head, rows: rows.clone() });
        }
    }
}

#[test]
fn what_becomes_of_inserts_comes_back() {
    let members: Vec<RecordId> = [1, 2, 99].map(RecordId).to_vec();
    let piece = Piece { batch: BatchId(12345), members: members.clone() };
    assert_eq!(decode_piece(&encode_piece(&piece)), Ok(piece));
    assert_eq!(decode_done(&encode_done(&members)), Ok(Done { inserts: members }));
}

fn stream() -> StreamRecord<'static> {
    StreamRecord {
        pipeline: "clicks",
        topic: "clicks.v1",
        topic_id: *b"0123456789abcdef",
        database: "default",
        table: "clicks",
        format: "JSONEachRow",
    }
}

fn message() -> MessageRecord<'static> {
    MessageRecord {
        failed_micros: 1_700_000_000_000_000,
        code: ErrorCode::from_number(-1),
        error: "no nümber",
        was_read: true,
        attempts: 2,
        partition: 3,
        offset: 1 << 40,
        timestamp_ms: -1,
        value_bytes: 100,
        key: Some(b"key"),
        headers: vec![("trace", Some(b"\xff")), ("", None), ("trace", Some(b""))],
        value: Some(b"{\"id\":"),
    }
}

#[test]
fn messages_come_back_with_all_they_had() {
    assert_eq!(decode_stream(&encode_stream(&stream())), Ok(stream()));
    let bare = MessageRecord {
        key: None,
        headers: Vec::new(),
        value: None,
        value_bytes: 0,
        error: "",
        was_read: false,
        ..message()
    };
    let empty = MessageRecord { key: Some(b""), value: Some(b""), offset: i64::MAX, ..bare.clone() };
    for message in [message(), bare, empty] {
        assert_eq!(decode_message(&encode_message(&message)), Ok(message));
    }
    let grown = MessageRecord { value_bytes: 5, ..message() };
    assert!(decode_message(&encode_message(&grown)).is_err(), "a value is kept in whole or in part");
}

#[test]
fn a_message_is_laid_out_as_it_was() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let bare =
        MessageRecord { error: "no", headers: vec![("h", None)], value: Some(b"v"), value_bytes: 1, ..message() };
    let expected = concat!(
        "01",
        "00401e18240a0600",
        "ffffffff",
        "020000006e6f",
        "01",
        "02000000",
        "03000000",
        "0000000000010000",
        "ffffffffffffffff",
        "0100000000000000",
        "01030000006b6579",
        "01000000010000006800",
        "010100000076"
    );
    assert_eq!(hex(&encode_message(&bare)), expected);
    let short = StreamRecord { pipeline: "p", topic: "t", database: "d", table: "b", format: "f", ..stream() };
    let expected = "010100000070010000007430313233343536373839616263646566010000006401000000620100000066";
    assert_eq!(hex(&encode_stream(&short)), expected);
}

#[test]
fn cut_off_records_are_refused() {
    let (destination, rows) = typed();
    let recorded = decode_context(&context(&destination)).unwrap();
    let insert = encode_insert(&head(), &rows);
    let piece = encode_piece(&Piece { batch: BatchId(1), members: vec![RecordId(1)] });
    let done = encode_done(&[RecordId(1)]);
    let (topic, message) = (encode_stream(&stream()), encode_message(&message()));
    (0..topic.len()).for_each(|end| assert!(decode_stream(&topic[..end]).is_err(), "{end}"));
    (0..message.len()).for_each(|end| assert!(decode_message(&message[..end]).is_err(), "{end}"));
    let whole = context(&destination);
    (0..whole.len()).for_each(|end| assert!(decode_context(&whole[..end]).is_err(), "{end}"));
    (0..insert.len()).for_each(|end| assert!(decode_insert(&insert[..end], &recorded).is_err(), "{end}"));
    (0..piece.len()).for_each(|end| assert!(decode_piece(&piece[..end]).is_err(), "{end}"));
    (0..done.len()).for_each(|end| assert!(decode_done(&done[..end]).is_err(), "{end}"));
}

#[test]
fn random_changes_are_no_danger() {
    let mut random = fastrand::Rng::with_seed(7);
    for (destination, rows) in [typed(), text()] {
        let recorded = decode_context(&context(&destination)).unwrap();
        let records = [
            context(&destination),
            encode_insert(&head(), &rows),
            encode_done(&[RecordId(5); 9]),
            encode_stream(&stream()),
            encode_message(&message()),
        ];
        for _ in 0..20_000 {
            let mut bytes = records[random.usize(..5)].clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            // Whatever they say, nothing panics and nothing large is allocated.
            let _ = decode_context(&bytes);
            let _ = decode_insert(&bytes, &recorded);
            let _ = (decode_piece(&bytes), decode_done(&bytes), decode_insert_head(&bytes));
            let _ = (decode_stream(&bytes), decode_message(&bytes));
        }
    }
}
