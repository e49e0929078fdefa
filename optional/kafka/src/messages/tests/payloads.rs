//! Messages one after another against the same payloads read alone, as inserts over HTTP are.

use fastrand::Rng;
use windrow_columns::{Block, ColumnSpec, Format, NotParsedReason, Present, ReadPlan};

use super::{column, defaulted, message, plan, rows, settings};
use crate::messages::{Mapping, MessageFormat, MessagePlan, MessageReader, Run, SchemaSource, Unread};

const SEED: u64 = 20_261_122;

const FORMATS: &[&str] = &[
    "JSONEachRow",
    "JSONStringsEachRow",
    "JSONCompactEachRow",
    "CSV",
    "CSVWithNames",
    "TabSeparated",
    "TabSeparatedWithNames",
    "TabSeparatedRaw",
    "TSKV",
    "RowBinary",
    "RowBinaryWithDefaults",
    "MsgPack",
    "LineAsString",
    "JSONAsString",
    "RawBLOB",
    "Values",
];

fn table(format: &str) -> Vec<ColumnSpec> {
    match format {
        "LineAsString" | "JSONAsString" | "RawBLOB" => vec![column("s", "String")],
        "MsgPack" | "RowBinary" | "RowBinaryWithDefaults" => vec![
            column("n", "UInt32"),
            column("s", "String"),
            column("a", "Array(Array(String))"),
            column("f", "Nullable(String)"),
            column("m", "Map(String, UInt8)"),
        ],
        _ => vec![
            column("n", "UInt32"),
            column("s", "String"),
            column("a", "Array(Array(String))"),
            column("f", "Nullable(String)"),
            column("m", "Map(String, UInt8)"),
            column("d", "DateTime64(3, 'UTC')"),
            column("t", "Tuple(x Int8, y Nullable(String))"),
            column("e", "Enum8('x' = 1, 'y' = 2)"),
        ],
    }
}

/// Makes random rows in a format.
fn payload(format: &str, rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        "CSVWithNames" => out.extend_from_slice(b"n,s,a,f,m,d,x,y,e\n"),
        "TabSeparatedWithNames" => out.extend_from_slice(b"n\ts\ta\tf\tm\td\tt\te\n"),
        _ => {}
    }
    let count = if format == "RawBLOB" { 1 } else { rng.usize(0..4) };
    for _ in 0..count {
        row(format, rng, &mut out);
    }
    out
}

fn row(format: &str, rng: &mut Rng, out: &mut Vec<u8>) {
    let (n, s, e) = (rng.u32(..), "word ".repeat(rng.usize(0..4)), ["x", "y"][rng.usize(..2)]);
    let a = ["[]", "[['a'],[]]", "[[],['b','c']]"][rng.usize(..3)];
    let json_a = a.replace('\'', "\"");
    let m = rng.u8(..);
    let d = format!("2026-01-02 03:04:{:02}.{:03}", rng.u8(..60), rng.u16(..1000));
    let x = rng.i8(..);
    let text = match format {
        "JSONEachRow" | "JSONAsString" => format!(
            r#"{{"n":{n},"s":"{s}\n","a":{json_a},"f":null,"m":{{"k":{m}}},"d":"{d}","t":{{"x":{x},"y":"{s}"}},"e":"{e}","z":[1]}} "#
        ),
        "JSONStringsEachRow" => {
            let t = format!("({x},'{s}')");
            format!(r#"{{"n":"{n}","s":"{s}","a":"{a}","f":"{s}","m":"{{'k':{m}}}","d":"{d}","t":"{t}","e":"{e}"}}"#)
        }
        "JSONCompactEachRow" => {
            format!(r#"[{n},"{s}",{json_a},"{e}",{{"k":{m}}},"{d}",{{"x":{x},"y":null}},"{e}"]"#)
        }
        "CSV" | "CSVWithNames" => format!("{n},\"{s}\",\"{a}\",\\N,\"{{'k':{m}}}\",{d},{x},{s}y,{e}\n"),
        "TabSeparated" | "TabSeparatedWithNames" | "TabSeparatedRaw" => {
            format!("{n}\t{s}\t{a}\t\\N\t{{'k':{m}}}\t{d}\t({x},'{s}')\t{e}\n")
        }
        "TSKV" => format!("n={n}\ts={s}\ta={a}\tm={{'k':{m}}}\td={d}\tt=({x},NULL)\te={e}\tz=1\n"),
        "Values" => format!("({n}, '{s}', {a}, NULL, {{'k':{m}}}, '{d}', ({x}, '{s}'), '{e}'), "),
        "LineAsString" | "RawBLOB" => format!("{s}{n}\n"),
        binary => return binary_row(binary, rng, out),
    };
    out.extend_from_slice(text.as_bytes());
}

fn binary_row(format: &str, rng: &mut Rng, out: &mut Vec<u8>) {
    let given: &[u8] = if format == "RowBinaryWithDefaults" { &[0] } else { &[] };
    let word = b"word".repeat(rng.usize(0..3));
    let short = |text: &[u8], out: &mut Vec<u8>| {
        out.push(text.len() as u8 | if format == "MsgPack" { 0xA0 } else { 0 });
        out.extend_from_slice(text);
    };
    let inner = rng.usize(0..3);
    match format {
        "MsgPack" => {
            out.push(0xCE);
            out.extend_from_slice(&rng.u32(..).to_be_bytes());
            short(&word, out);
            out.extend_from_slice(&[0x91, 0x90 | inner as u8]);
            (0..inner).for_each(|_| short(b"e", out));
            match rng.bool() {
                true => out.push(0xC0),
                false => short(&word, out),
            }
            out.push(0x81);
            short(b"k", out);
            out.push(rng.u8(..128));
        }
        _ => {
            out.extend_from_slice(given);
            out.extend_from_slice(&rng.u32(..).to_le_bytes());
            out.extend_from_slice(given);
            short(&word, out);
            out.extend_from_slice(given);
            out.extend_from_slice(&[1, inner as u8]);
            (0..inner).for_each(|_| short(b"e", out));
            out.extend_from_slice(given);
            match rng.bool() {
                true => out.push(1),
                false => {
                    out.push(0);
                    short(&word, out);
                }
            }
            out.extend_from_slice(given);
            out.push(1);
            short(b"k", out);
            out.push(rng.u8(..));
        }
    }
}

fn damaged(mut payload: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..4) {
        0 => payload.truncate(rng.usize(0..=payload.len())),
        1 if !payload.is_empty() => {
            let at = rng.usize(0..payload.len());
            payload[at] = rng.u8(..);
        }
        _ => {}
    }
    payload
}

/// The runs that a reader for each single payload makes, joined where the columns are the same.
#[derive(Default)]
struct Expected {
    runs: Vec<(Present, Block)>,
}

impl Expected {
    fn add(&mut self, present: Present, block: Block) {
        match self.runs.last_mut() {
            _ if block.rows() == 0 => {}
            Some((known, all)) if *known == present => all.append(&block),
            _ => self.runs.push((present, block)),
        }
    }
}

fn check(runs: Vec<Run>, expected: Expected, case: &str) {
    let found: Vec<(Present, Block)> = runs.into_iter().map(|run| (run.present, run.block)).collect();
    assert!(found == expected.runs, "{case}");
}

#[test]
fn every_message_is_read_as_if_it_were_alone() {
    for format in FORMATS {
        let mut rng = Rng::with_seed(SEED);
        let columns = table(format);
        let (plan, alone) = (plan(format, columns.clone(), &[]), ReadPlan::new(columns, settings()));
        let format = Format::named(format).unwrap();
        let (mut reader, mut expected, mut bad) = (MessageReader::new(&plan, "t", 0), Expected::default(), 0);
        for offset in 0..600 {
            let payload = damaged(payload(format.name, &mut rng), &mut rng);
            let read = reader.read(&message(offset, &payload));
            match (format.read)(&payload, &alone) {
                _ if payload.is_empty() => assert_eq!(read, Ok(0)),
                Ok(parsed) => {
                    assert_eq!(read, Ok(parsed.block.rows() as u32), "{} {offset}, seed {SEED}", format.name);
                    expected.add(parsed.present, parsed.block);
                }
                Err(not_parsed) => {
                    bad += 1;
                    let Err(Unread::Refused(error)) = read else { panic!("{} {offset}: {read:?}", format.name) };
                    if !matches!(not_parsed.reason, NotParsedReason::MixedDefaults) {
                        assert!(error.text.contains("(at row "), "{error}");
                    }
                }
            }
        }
        assert!(bad > 10 || matches!(format.name, "RawBLOB" | "LineAsString"), "{}: {bad}", format.name);
        check(reader.finish(), expected, format.name);
    }
}

#[test]
fn every_message_may_be_cut_at_every_byte() {
    for format in FORMATS {
        let mut rng = Rng::with_seed(SEED);
        let columns = table(format);
        let (plan, alone) = (plan(format, columns.clone(), &[]), ReadPlan::new(columns, settings()));
        let format = Format::named(format).unwrap();
        let (mut reader, mut expected) = (MessageReader::new(&plan, "t", 0), Expected::default());
        for offset in 0..10 {
            let whole = payload(format.name, &mut rng);
            for length in 1..=whole.len() {
                let read = reader.read(&message(offset, &whole[..length]));
                match (format.read)(&whole[..length], &alone) {
                    Ok(parsed) => {
                        assert_eq!(read, Ok(parsed.block.rows() as u32), "{} {offset} {length}", format.name);
                        expected.add(parsed.present, parsed.block);
                    }
                    Err(_) => assert!(read.is_err(), "{} {offset} {length}", format.name),
                }
            }
        }
        check(reader.finish(), expected, format.name);
    }
}

#[test]
fn what_a_message_of_json_may_be() {
    let columns = vec![column("n", "UInt8"), column("s", "String")];
    let plan = plan("JSONEachRow", columns.clone(), &[]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let cases: [(&str, u32); 8] = [
        (r#"{"n":1,"s":"a"}"#, 1),
        ("{\"s\":\"b\",\"n\":2}\n{\"n\":3}", 2),
        (r#"{"n":4}{"n":5,"other":[{"x":null}]},{"n":6}"#, 3),
        (r#"[{"n":7},{"n":8,"s":"c"}]"#, 2),
        (" \n\t ", 0),
        ("[]", 0),
        ("{}", 1),
        (r#"{"s":9,"n":"9"}"#, 1),
    ];
    for (offset, (value, count)) in cases.into_iter().enumerate() {
        assert_eq!(reader.read(&message(offset as i64, value.as_bytes())), Ok(count), "{value}");
    }
    let runs = reader.finish();
    let expected =
        r#"{"n":1,"s":"a"}{"n":2,"s":"b"}{"n":3}{"n":4}{"n":5}{"n":6}{"n":7}{"n":8,"s":"c"}{}{"n":9,"s":"9"}"#;
    assert_eq!(runs[0].block, rows(&columns, expected));
    assert_eq!((runs.len(), runs[0].messages, runs[0].first_offset, runs[0].last_offset), (1, 6, 0, 7));
}

#[test]
fn columns_with_a_default_that_are_left_out_part_the_runs() {
    let columns = vec![column("n", "UInt8"), defaulted("d", "String")];
    let plan = plan("JSONEachRow", columns, &[]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let values =
        [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3,"d":"x"}"#, r#"{"n":4,"d":"y"}{"n":5,"d":"z"}"#, r#"{"n":6,"d":null}"#];
    for (offset, value) in values.iter().enumerate() {
        assert!(reader.read(&message(offset as i64, value.as_bytes())).is_ok(), "{value}");
    }
    let Err(Unread::Refused(error)) = reader.read(&message(9, br#"{"n":7}{"n":8,"d":"x"}"#)) else { panic!("mixed") };
    assert!(!error.certain && error.text.contains("DEFAULT"), "{error}");
    let runs = reader.finish();
    let spans: Vec<_> =
        runs.iter().map(|run| (run.first_offset, run.last_offset, run.rows, run.present.count())).collect();
    assert_eq!(spans, [(0, 1, 2, 1), (2, 3, 3, 2), (4, 4, 1, 1)]);
}

#[test]
fn where_null_asks_for_the_default_all_messages_are_rows_of_the_same_columns() {
    let columns = || {
        vec![
            column("n", "UInt8"),
            defaulted("d", "LowCardinality(String)"),
            defaulted("e", "Enum8('a' = 1)"),
            defaulted("l", "Array(UInt8)"),
            defaulted("x", "Nullable(UInt8)"),
            column("_offset", "UInt64"),
        ]
    };
    let mapping = Mapping { columns: Vec::new(), null_asks_for_default: true };
    let written = vec![
        column("n", "UInt8"),
        column("d", "Nullable(String)"),
        column("e", "Nullable(Enum8('a' = 1))"),
        column("l", "Array(UInt8)"),
        column("x", "Nullable(UInt8)"),
        column("_offset", "UInt64"),
    ];
    let cases: [(&str, &[&str]); 2] = [
        (
            "JSONEachRow",
            &[r#"{"n":1,"l":[1],"x":1}"#, r#"{"n":2,"d":"x","l":[],"x":null,"e":"a"}{"n":3,"d":null,"l":[2],"x":2}"#],
        ),
        ("CSV", &["1,,,[1],1\n", "2,x,a,[],\\N\n3,\\N,,[2],2\n"]),
    ];
    for (name, values) in cases {
        let format = MessageFormat::new(name, SchemaSource::default()).unwrap();
        let plan = MessagePlan::new(format, columns(), &mapping, settings()).unwrap();
        let types =
            |columns: &[ColumnSpec]| columns.iter().map(|column| column.data_type.to_string()).collect::<Vec<_>>();
        assert_eq!(types(plan.written()), types(&written));
        assert_eq!(plan.columns(), columns());
        let mut reader = MessageReader::new(&plan, "t", 0);
        for (offset, value) in values.iter().enumerate() {
            assert!(reader.read(&message(offset as i64, value.as_bytes())).is_ok(), "{value}");
        }
        let runs = reader.finish();
        let expected = r#"{"n":1,"d":null,"e":null,"l":[1],"x":1,"_offset":0}
            {"n":2,"d":"x","e":"a","l":[],"x":null,"_offset":1}{"n":3,"d":null,"e":null,"l":[2],"x":2,"_offset":1}"#;
        assert_eq!(runs.len(), 1, "{name}");
        assert_eq!(runs[0].block, rows(&written, expected), "{name}");
    }
    // How a value is written depends on the column's type here, and every row has one.
    let format = MessageFormat::new("RowBinary", SchemaSource::default()).unwrap();
    let plan = MessagePlan::new(format, columns(), &mapping, settings()).unwrap();
    assert_eq!(plan.written(), plan.columns());
    // NULL is the DEFAULT expression only where the setting says so.
    let mut strict = settings();
    strict.set("input_format_null_as_default", "0");
    let format = MessageFormat::new("JSONEachRow", SchemaSource::default()).unwrap();
    let plan = MessagePlan::new(format, columns(), &mapping, strict).unwrap();
    assert_eq!(plan.written(), plan.columns());
}

#[test]
fn an_answer_of_clickhouse_is_a_run_of_its_own() {
    let columns = vec![column("_offset", "UInt64"), column("n", "UInt8"), defaulted("d", "String")];
    let plan = plan("JSONEachRow", columns.clone(), &[]);
    let question = plan.question().unwrap();
    let asked: Vec<String> =
        question.columns.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect();
    assert_eq!((question.format, asked.join(", ").as_str()), ("JSONEachRow", "n UInt8, d Nullable(String)"));
    let mut reader = MessageReader::new(&plan, "t", 0);
    let answer = |json: &str| rows(&question.columns, json);
    assert_eq!(reader.read(&message(1, br#"{"n":1,"d":"a"}"#)), Ok(1));
    assert_eq!(reader.take_block(answer(r#"{"n":2,"d":"b"}{"n":3,"d":"c"}"#), &message(2, b"?")), Ok(2));
    assert_eq!(reader.take_block(answer(r#"{"n":4}"#), &message(3, b"?")), Ok(1));
    assert!(reader.take_block(answer(r#"{"n":5}{"n":6,"d":"x"}"#), &message(4, b"?")).is_err());
    assert!(reader.take_block(Block::default(), &message(5, b"?")).is_err());
    let runs = reader.finish();
    assert_eq!(runs[0].block, rows(&columns, r#"{"_offset":1,"n":1,"d":"a"}"#));
    assert_eq!(runs[1].block, rows(&columns, r#"{"_offset":2,"n":2,"d":"b"}{"_offset":2,"n":3,"d":"c"}"#));
    assert_eq!(runs[2].block, rows(&columns[..2], r#"{"_offset":3,"n":4}"#));
    assert_eq!(runs[2].present.iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn fields_within_fields_are_found_by_their_path() {
    let columns = vec![
        column("ts", "DateTime64(3, 'UTC')"),
        column("event", "String"),
        column("event.kind", "LowCardinality(String)"),
        column("depth", "UInt8"),
        column("plain", "String"),
        column("left", "String"),
        column("tags", "Array(String)"),
    ];
    let mapped =
        [("ts", "event.time"), ("depth", "event.a.b"), ("plain", "name"), ("left", ""), ("tags", "event.a.tags")];
    let plan = plan("JSONEachRow", columns.clone(), &mapped);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let values = [
        r#"{"event":{"time":1700000000123,"kind":"x","a":{"b":7,"tags":["p","q"]}},"name":"one"}"#,
        r#"{"name":"two","event": {"a" : {"c":{}, "b":8}, "other":[1], "kind":"y"} }"#,
        r#"{"name":"three","event":{"kind":null,"a":null}}"#,
        r#"{"name":"four","event.kind":"flat"}"#,
        r#"{"name":"five","event":{"time":1700000000123,"kind":"x","a":{"b":7,"tags":["p","q"]}}}"#,
    ];
    for (offset, value) in values.iter().enumerate() {
        assert_eq!(reader.read(&message(offset as i64, value.as_bytes())), Ok(1), "{value}");
    }
    for (value, column) in [
        (r#"{"event":{"a":{"b":"no"}}}"#, Some("depth")),
        (r#"{"event":{"a":5}}"#, None),
        (r#"{"event":{"kind":"x"},"event.kind":"y"}"#, Some("event.kind")),
    ] {
        let Err(Unread::Refused(error)) = reader.read(&message(9, value.as_bytes())) else { panic!("{value}") };
        assert_eq!(error.column.as_deref(), column, "{error}");
    }
    let runs = reader.finish();
    let object = |text: &str| text.replace('"', "\\\"");
    let full = object(r#"{"time":1700000000123,"kind":"x","a":{"b":7,"tags":["p","q"]}}"#);
    let second = object(r#"{"a" : {"c":{}, "b":8}, "other":[1], "kind":"y"}"#);
    let third = object(r#"{"kind":null,"a":null}"#);
    let expected = format!(
        r#"{{"ts":1700000000123,"event":"{full}","event.kind":"x","depth":7,"plain":"one","tags":["p","q"]}}
           {{"event":"{second}","event.kind":"y","depth":8,"plain":"two"}}
           {{"event":"{third}","plain":"three"}}
           {{"event.kind":"flat","plain":"four"}}
           {{"ts":1700000000123,"event":"{full}","event.kind":"x","depth":7,"plain":"five","tags":["p","q"]}}"#
    );
    let shown: Vec<ColumnSpec> = columns.iter().filter(|column| column.name != "left").cloned().collect();
    assert_eq!(runs[0].block, rows(&shown, &expected));
    assert_eq!(runs[0].present.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 6]);
}

#[test]
fn rubbish_is_certain_and_doubt_is_not() {
    let columns = vec![column("n", "UInt32"), column("d", "DateTime('UTC')"), column("z", "Decimal(9, 2)")];
    let plan = plan("JSONEachRow", columns, &[]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let mut refused = |value: &str| match reader.read(&message(0, value.as_bytes())) {
        Err(Unread::Refused(error)) => error,
        other => panic!("{value}: {other:?}"),
    };
    for value in [
        "hello",
        "\0\u{1}",
        r#"{"n":1"#,
        r#"{"n":"#,
        r#"{"n":"abc"}"#,
        r#"{"n":1}{"n":xyz}"#,
        "<xml/>",
        "12",
        r#"{"d":"2024-01-02 03"#,
        r#"{"n":1 "d":2}"#,
        r#"{"n" 1}"#,
        r#"{"n":1}#"#,
    ] {
        assert!(refused(value).certain, "{value}");
    }
    for value in [
        r#"{"n":-1}"#,
        r#"{"n":1e2}"#,
        r#"{"n":1,}"#,
        r#"{"x":+1}"#,
        r#"[{"n":1}] x"#,
        r#"{"d":"02.03.2024"}"#,
        "{'n':1}",
        r#"{"N":1}"#,
        "\u{feff}{}",
    ] {
        assert!(!refused(value).certain, "{value}");
    }
    let error = refused(r#"{"n":1}{"n":"abc"}"#);
    assert_eq!((error.row, error.column.as_deref()), (2, Some("n")));
    let expected =
        "Cannot parse input: the value is not one of the column's type, near '{\\\"n\\\":1}{\\\"n\\\":\\\"abc\\\"}': \
                    (while reading the value of column `n` of type UInt32): (at row 2)";
    assert_eq!(error.text, expected);
}
