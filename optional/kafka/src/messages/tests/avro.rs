use fastrand::Rng;
use windrow_columns::{Block, ColumnSpec, ReadPlan};

use super::{column, defaulted, mapping, message, plan, rows, settings};
use crate::messages::{MessageFormat, MessagePlan, MessageReader, SchemaSource, Unread};

const SEED: u64 = 20_261_124;

const FIELDS: &str = r#"
    {"name": "id", "type": "long", "doc": "of the row"},
    {"name": "user", "type": ["null", {"type": "string", "avro.java.string": "String"}], "default": null},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "skipped", "type": ["int", "string", "null", {"type": "map", "values": {"type": "array", "items": "double"}}]},
    {"name": "nothing", "type": "null"},
    {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [
        {"name": "city", "type": "string"}, {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}}]}]},
    {"name": "other", "type": "org.shop.Place", "aliases": ["another"]},
    {"name": "tags", "type": {"type": "array", "items": ["string", "null"]}},
    {"name": "counts", "type": {"type": "map", "values": "int"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "ok", "type": "boolean"},
    {"name": "ratio", "type": "float"},
    {"name": "size", "type": "Size"}"#;

fn schema(fields: &str) -> String {
    format!(r#"{{"type": "record", "name": "Event", "namespace": "org.shop", "fields": [{fields}]}}"#)
}

fn table() -> Vec<ColumnSpec> {
    vec![
        column("id", "UInt32"),
        defaulted("user", "String"),
        column("at", "DateTime64(6, 'UTC')"),
        column("second", "DateTime('UTC')"),
        column("place.city", "Nullable(String)"),
        column("place.size", "Enum8('L' = 3, 'S' = 4)"),
        column("other", "Tuple(size LowCardinality(String), city String)"),
        column("tags", "Array(Nullable(String))"),
        column("counts", "Map(String, UInt8)"),
        column("price", "Decimal(9, 2)"),
        column("hash", "FixedString(4)"),
        column("day", "Date32"),
        column("ok", "UInt8"),
        column("ratio", "Float64"),
        column("size", "String"),
        defaulted("inserted", "DateTime('UTC')"),
        column("extra", "Array(UInt8)"),
    ]
}

fn zigzag(value: i64) -> Vec<u8> {
    let mut value = ((value << 1) ^ (value >> 63)) as u64;
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn text(value: &[u8]) -> Vec<u8> {
    [zigzag(value.len() as i64), value.to_vec()].concat()
}

/// Makes a row of `FIELDS`. `with` says whether the nullable values are there.
fn row(id: i64, with: bool) -> Vec<u8> {
    let user = if with { [zigzag(1), text(b"ann")].concat() } else { zigzag(0) };
    let place = if with { [zigzag(1), text(b"Rome"), zigzag(1)].concat() } else { zigzag(0) };
    let skipped = if with {
        [zigzag(3), zigzag(1), text(b"k"), zigzag(1), vec![0; 8], zigzag(0), zigzag(0)].concat()
    } else {
        zigzag(2)
    };
    let tags = [zigzag(1), zigzag(0), text(b"x"), zigzag(-1), zigzag(1), zigzag(1), zigzag(0)].concat();
    let counts = [zigzag(1), text(b"n"), zigzag(7), zigzag(0)].concat();
    [
        zigzag(id),
        user,
        zigzag(1_700_000_000_123),
        skipped,
        place,
        [text(b"Oslo"), zigzag(0)].concat(),
        tags,
        counts,
        text(&[0xFF, 0x38]),
        b"abcd".to_vec(),
        zigzag(19_000),
        vec![1],
        0.5f32.to_le_bytes().to_vec(),
        zigzag(1),
    ]
    .concat()
}

fn expected(id: i64, with: bool) -> String {
    let (user, city, size) = if with { (r#""user": "ann","#, "\"Rome\"", "L") } else { ("", "null", "L") };
    format!(
        r#"{{"id": {id}, {user} "at": "2023-11-14 22:13:20.123", "place.city": {city}, "place.size": "{size}",
            "other": {{"size": "S", "city": "Oslo"}}, "tags": ["x", null], "counts": {{"n": 7}}, "price": -2.00, "hash": "abcd",
            "day": "2022-01-08", "ok": 1, "ratio": 0.5, "size": "L", "extra": []}}"#
    )
}

fn confluent(id: u32, row: &[u8]) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), row].concat()
}

fn registry_plan() -> MessagePlan {
    let plan = plan("AvroConfluent", table(), &[("second", "")]);
    plan.add_schema(7, &schema(FIELDS)).unwrap();
    plan
}

fn shown(without: &[&str]) -> Vec<ColumnSpec> {
    table().into_iter().filter(|column| column.name != "second" && !without.contains(&column.name.as_str())).collect()
}

#[test]
fn rows_are_read_by_the_schema_that_they_name() {
    let plan = registry_plan();
    let mut reader = MessageReader::new(&plan, "t", 0);
    assert_eq!(reader.read(&message(1, &confluent(7, &row(1, true)))), Ok(1));
    assert_eq!(reader.read(&message(2, &confluent(7, &row(2, true)))), Ok(1));
    // A null asks for the DEFAULT expression, so that this is another run.
    assert_eq!(reader.read(&message(3, &confluent(7, &row(3, false)))), Ok(1));
    // An older schema.
    assert_eq!(reader.read(&message(4, &confluent(8, &zigzag(4)))), Err(Unread::MissingSchema(8)));
    plan.add_schema(8, &schema(r#"{"name": "id", "type": "int"}"#)).unwrap();
    assert_eq!(reader.read(&message(4, &confluent(8, &zigzag(4)))), Ok(1));
    let runs = reader.finish();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].block, rows(&shown(&["inserted"]), &(expected(1, true) + &expected(2, true))));
    let older = r#"{"id": 4, "place.city": null}"#;
    assert_eq!(runs[1].block, rows(&shown(&["inserted", "user"]), &(expected(3, false) + older)));
    assert!(plan.question().is_none());
}

#[test]
fn schemas_without_a_place_in_the_table_are_refused_with_their_messages() {
    let plan = registry_plan();
    let mut reader = MessageReader::new(&plan, "t", 0);
    for (id, fields, reason) in [
        (20, r#"{"name": "id", "type": "string"}"#, "field id (string) can't be read into a column of type UInt32"),
        (21, r#"{"name": "x", "type": "int"}"#, "no column of the table takes a field"),
        (22, r#"{"name": "id", "type": "Unknown"}"#, "a type in it is unknown"),
        (23, r#"{"name": "id", "type": {"type": "array", "items": "null"}}"#, "can't be read"),
    ] {
        let error = plan.add_schema(id, &schema(fields)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        let Err(Unread::Refused(error)) = reader.read(&message(1, &confluent(id, &zigzag(1)))) else {
            panic!("{fields}")
        };
        assert!(error.certain && error.text.contains(reason), "{error}");
    }
    plan.refuse_schema(24, "the registry has no schema 24");
    let Err(Unread::Refused(error)) = reader.read(&message(1, &confluent(24, &zigzag(1)))) else {
        panic!("it is not there")
    };
    assert_eq!(error.text, "the registry has no schema 24");
    for value in [&b"\x01\0\0\0\x07\x02"[..], b"\0\0\0", b"{}"] {
        assert!(matches!(reader.read(&message(1, value)), Err(Unread::Refused(error)) if error.certain));
    }
    // A field that was named has to be there.
    let named = super::plan("AvroConfluent", table(), &[("second", "at"), ("at", "")]);
    assert!(named
        .add_schema(1, &schema(r#"{"name": "id", "type": "int"}"#))
        .unwrap_err()
        .to_string()
        .contains("Field at not found"));
}

const LISTS: &str = r#"
    {"name": "id", "type": "int"},
    {"name": "c", "type": {"type": "array", "items": {"type": "record", "name": "C", "fields": [
        {"name": "a", "type": "int"}, {"name": "more", "type": "string"},
        {"name": "d", "type": ["null", {"type": "record", "name": "D", "fields": [{"name": "y", "type": ["null", "string"]}]}]},
        {"name": "e", "type": {"type": "array", "items": {"type": "record", "name": "E", "fields": [{"name": "x", "type": "long"}]}}}]}}},
    {"name": "n", "type": ["null", {"type": "array", "items": ["null", {"type": "record", "name": "N", "fields": [
        {"name": "x", "type": ["string"]}]}]}]},
    {"name": "u", "type": [{"type": "record", "name": "U", "fields": [{"name": "x", "type": "boolean"}]}]}"#;

fn lists() -> Vec<ColumnSpec> {
    vec![
        column("id", "UInt32"),
        column("c.a", "Array(UInt16)"),
        column("c.b", "Array(Nullable(String))"),
        column("c.d.y", "Array(String)"),
        column("c.e.x", "Array(Array(Int64))"),
        column("n.x", "Array(LowCardinality(String))"),
        column("u.x", "Bool"),
    ]
}

fn lists_row(with: bool) -> Vec<u8> {
    let e = [zigzag(2), zigzag(5), zigzag(6), zigzag(0)].concat();
    let first = [zigzag(1), text(b"m"), zigzag(1), zigzag(1), text(b"y"), e].concat();
    let second = [zigzag(2), text(b""), zigzag(0), zigzag(0)].concat();
    // In a block of one, and in another with its size before it.
    let c = [zigzag(1), first, zigzag(-1), zigzag(second.len() as i64), second, zigzag(0)].concat();
    let n = [zigzag(1), zigzag(2), zigzag(1), zigzag(0), text(b"x"), zigzag(0), zigzag(0)].concat();
    let (c, n) = if with { (c, n) } else { (zigzag(0), zigzag(0)) };
    [zigzag(9), c, n, zigzag(0), vec![1]].concat()
}

const LISTS_ROW: &str = r#"{"id": 9, "c.a": [1, 2], "c.b": [null, null], "c.d.y": ["y", ""], "c.e.x": [[5, 6], []], "n.x": ["x", ""], "u.x": true}"#;
const NO_LISTS_ROW: &str = r#"{"id": 9, "c.a": [], "c.b": [], "c.d.y": [], "c.e.x": [], "n.x": [], "u.x": true}"#;

#[test]
fn lists_of_records_become_the_columns_of_a_nested() {
    let plan = plan("AvroConfluent", lists(), &[]);
    plan.add_schema(1, &schema(LISTS)).unwrap();
    let mut reader = MessageReader::new(&plan, "t", 0);
    for _ in 0..100 {
        assert_eq!(reader.read(&message(1, &confluent(1, &lists_row(true)))), Ok(1));
        assert_eq!(reader.read(&message(2, &confluent(1, &lists_row(false)))), Ok(1));
        let whole = confluent(1, &lists_row(true));
        assert!(reader.read(&message(3, &whole[..whole.len() / 2])).is_err());
    }
    assert_eq!(reader.finish()[0].block, rows(&lists(), &format!("{LISTS_ROW}{NO_LISTS_ROW}").repeat(100)));
    assert_eq!(plan.unused_fields_of(&confluent(1, &lists_row(true))).unwrap(), ["c.more"]);
    let file = file(LISTS, &[lists_row(true), lists_row(false)]);
    let of_files = super::plan("Avro", lists(), &[]);
    let mut reader = MessageReader::new(&of_files, "t", 0);
    assert_eq!(reader.read(&message(1, &file)), Ok(2));
    assert_eq!(of_files.unused_fields_of(&file).unwrap(), ["c.more"]);
    assert_eq!(reader.finish()[0].block, rows(&lists(), &format!("{LISTS_ROW}{NO_LISTS_ROW}")));
}

#[test]
fn what_lies_nowhere_is_told() {
    let list =
        r#"{"type": "array", "items": {"type": "record", "name": "C", "fields": [{"name": "a", "type": "int"}]}}"#;
    let cases = [
        (
            format!(r#"{{"name": "c", "type": {list}}}"#),
            "c.a",
            "Int32",
            "in a list of records can't be read into a column of type Int32",
        ),
        (
            r#"{"name": "c", "type": {"type": "map", "values": "int"}}"#.to_owned(),
            "c.key",
            "Array(String)",
            "would lie in field c (map)",
        ),
        (r#"{"name": "c", "type": ["string", "int"]}"#.to_owned(), "c.int", "Int32", "would lie in field c (union)"),
        (
            r#"{"name": "c", "type": {"type": "array", "items": "int"}}"#.to_owned(),
            "c.a",
            "Array(Int32)",
            "would lie in field c (array)",
        ),
        (r#"{"name": "c", "type": "string"}"#.to_owned(), "c.a", "String", "would lie in field c (string)"),
    ];
    for (at, (field, name, type_text, expected)) in cases.iter().enumerate() {
        let plan = plan("AvroConfluent", vec![column("id", "Int32"), column(name, type_text)], &[]);
        let fields = format!(r#"{{"name": "id", "type": "int"}}, {field}"#);
        let error = plan.add_schema(at as u32, &schema(&fields)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_number_of_no_bytes_is_none() {
    let decimal =
        r#"{"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}"#;
    let of_null = decimal.replace(r#""type": {"#, r#""type": ["null", {"#).replace("2}}", "2}]}");
    for (type_text, fields, rows, read) in [
        ("Decimal(9, 2)", decimal, vec![text(b"")], false),
        ("Decimal(9, 2)", decimal, vec![text(b"\x00")], true),
        ("Nullable(Decimal(9, 2))", of_null.as_str(), vec![zigzag(0), [zigzag(1), text(b"\x07")].concat()], true),
        ("Nullable(Decimal(9, 2))", of_null.as_str(), vec![zigzag(0), [zigzag(1), text(b"")].concat()], false),
    ] {
        let columns = vec![column("price", type_text)];
        let plan = plan("Avro", columns.clone(), &[]);
        let payload = file(fields, &rows);
        let outcome = MessageReader::new(&plan, "t", 0).read(&message(1, &payload));
        assert_eq!(outcome.is_ok(), read, "{type_text}, {rows:?}");
        let http = ReadPlan::new(columns, settings());
        let inserted = (windrow_interchange::format("Avro").unwrap().read)(&payload, &http);
        assert_eq!(inserted.is_ok(), read, "{type_text}, {rows:?}");
    }
}

#[test]
fn what_cannot_be_read_leaves_nothing_behind() {
    let plan = registry_plan();
    let mut rng = Rng::with_seed(SEED);
    let (mut reader, mut all, mut bad) = (MessageReader::new(&plan, "t", 0), None::<Block>, 0);
    for offset in 0..5000 {
        let mut value = confluent(7, &row(offset, true));
        match rng.u8(..4) {
            0 => value.truncate(rng.usize(5..value.len())),
            1 => {
                let at = rng.usize(5..value.len());
                value[at] = rng.u8(..);
            }
            _ => {}
        }
        let mut alone = MessageReader::new(&plan, "t", 0);
        let outcome = alone.read(&message(offset, &value));
        assert_eq!(reader.read(&message(offset, &value)), outcome, "{offset}, seed {SEED}");
        for run in alone.finish() {
            match &mut all {
                Some(all) if all.columns() == run.block.columns() => all.append(&run.block),
                Some(_) => {
                    let runs = reader.finish();
                    assert_eq!((runs.len(), Some(&runs[0].block)), (2, all.as_ref()), "{offset}, seed {SEED}");
                    (reader, all) = (MessageReader::new(&plan, "t", 0), None);
                }
                None => all = Some(run.block),
            }
        }
        bad += usize::from(outcome.is_err());
    }
    assert!(bad > 1000, "{bad}");
    assert_eq!(reader.finish().first().map(|run| run.block.clone()), all);
}

#[test]
fn messages_may_be_cut_at_every_byte() {
    let plan = registry_plan();
    let mut reader = MessageReader::new(&plan, "t", 0);
    let whole = confluent(7, &row(1, true));
    for length in 1..whole.len() {
        assert!(reader.read(&message(1, &whole[..length])).is_err(), "{length}");
    }
    let file = file(FIELDS, &[row(1, true), row(2, true)]);
    let of_files = super::plan("Avro", table(), &[("second", "")]);
    let mut reader = MessageReader::new(&of_files, "t", 0);
    for length in 1..file.len() {
        if let Ok(rows) = reader.read(&message(1, &file[..length])) {
            assert_eq!(rows, 0, "{length}: a file without blocks");
        }
    }
    assert!(reader.finish().is_empty());
}

/// Makes an object container file of one block.
fn file(fields: &str, rows: &[Vec<u8>]) -> Vec<u8> {
    let body = rows.concat();
    let mark = [b'm'; 16];
    [
        b"Obj\x01".to_vec(),
        zigzag(1),
        text(b"avro.schema"),
        text(schema(fields).as_bytes()),
        zigzag(0),
        mark.to_vec(),
        zigzag(rows.len() as i64),
        text(&body),
        mark.to_vec(),
    ]
    .concat()
}

#[test]
fn files_are_read_with_their_own_schemas() {
    let plan = plan("Avro", table(), &[("second", "at"), ("at", "")]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    assert_eq!(reader.read(&message(1, &file(FIELDS, &[row(1, true), row(2, true)]))), Ok(2));
    assert_eq!(reader.read(&message(2, &file(FIELDS, &[row(3, true)]))), Ok(1));
    let Err(Unread::Refused(error)) = reader.read(&message(3, &file(FIELDS, &[row(1, true), row(1 << 40, true)])))
    else {
        panic!("the id is too large")
    };
    assert_eq!((error.row, error.column.as_deref()), (2, Some("id")));
    let Err(Unread::Refused(error)) = reader.read(&message(4, &file(FIELDS, &[row(1, true), row(2, false)]))) else {
        panic!("one row has a user and the other none")
    };
    assert!(error.text.contains("DEFAULT"), "{error}");
    let runs = reader.finish();
    let second = r#""second": "2023-11-14 22:13:20", "#;
    let with_second = |id| expected(id, true).replacen('{', &format!("{{{second}"), 1);
    let columns: Vec<ColumnSpec> =
        table().into_iter().filter(|column| !["inserted", "at"].contains(&column.name.as_str())).collect();
    let wanted: String =
        (1..=3).map(|id| with_second(id).replace(r#""at": "2023-11-14 22:13:20.123", "#, "")).collect();
    assert_eq!(runs[0].block, rows(&columns, &wanted));
}

#[test]
fn files_have_the_rows_of_inserts_over_http() {
    let fields = r#"{"name": "n", "type": "int"}, {"name": "s", "type": ["null", "string"]}, {"name": "z", "type": "double"},
        {"name": "a", "type": {"type": "array", "items": "long"}}, {"name": "m", "type": {"type": "map", "values": "string"}}"#;
    let columns = vec![
        column("n", "Int16"),
        column("s", "Nullable(String)"),
        column("z", "Float32"),
        column("a", "Array(Int64)"),
        column("m", "Map(String, String)"),
    ];
    let http = ReadPlan::new(columns.clone(), settings());
    let format = MessageFormat::new("Avro", SchemaSource::default()).unwrap();
    let plan = MessagePlan::new(format, columns.clone(), &mapping(&[]), settings()).unwrap();
    let mut reader = MessageReader::new(&plan, "t", 0);
    let mut all = Block::empty(columns.iter().map(|column| &column.data_type));
    let mut rng = Rng::with_seed(SEED);
    for offset in 0..300 {
        let rows: Vec<Vec<u8>> = (0..rng.usize(1..4))
            .map(|_| {
                let s = if rng.bool() {
                    zigzag(0)
                } else {
                    [zigzag(1), text("x".repeat(rng.usize(..200)).as_bytes())].concat()
                };
                let a = [zigzag(2), zigzag(rng.i64(..)), zigzag(-1), zigzag(0)].concat();
                let m = [zigzag(1), text(b"k"), text(b"v"), zigzag(0)].concat();
                [zigzag(rng.i64(-40_000..40_000)), s, rng.f64().to_le_bytes().to_vec(), a, m].concat()
            })
            .collect();
        let payload = file(fields, &rows);
        let read = reader.read(&message(offset, &payload));
        match (windrow_interchange::format("Avro").unwrap().read)(&payload, &http) {
            Ok(parsed) => {
                assert_eq!(read, Ok(parsed.block.rows() as u32), "{offset}, seed {SEED}");
                all.append(&parsed.block);
            }
            Err(_) => assert!(read.is_err(), "{offset}, seed {SEED}"),
        }
    }
    assert!(all.rows() > 100);
    assert_eq!(reader.finish()[0].block, all);
}
