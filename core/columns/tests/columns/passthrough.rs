use windrow_columns::{Joinable, NotJoinable, PassthroughFormat, PassthroughPlan, PassthroughSettings};

use crate::samples::mutate;

/// Columns of every kind that matters to the end of a field. CSV has no tuples: they may go over several
/// fields.
const COLUMNS: &[(&str, &str)] =
    &[("id", "UInt64"), ("tags", "Array(String)"), ("data", "JSON"), ("note", "Nullable(String)")];

fn plan_of(format: &str, columns: &[(&str, &str)]) -> Result<PassthroughPlan, NotJoinable> {
    let format = PassthroughFormat::named(format).expect("the format may be joined");
    PassthroughPlan::new(columns.iter().copied(), &PassthroughSettings::of(format))
}

fn plan(format: &str) -> PassthroughPlan {
    plan_of(format, COLUMNS).expect("the columns are known")
}

/// A payload of each format, with the number of its rows.
const SAMPLES: &[(&str, &str, usize)] = &[
    (
        "JSONEachRow",
        "{\"id\":1,\"tags\":[\"a\",\"]\"],\"data\":{\"x\":\"}\\\"{\"}}\n{\"id\":2},\n{\"id\":3,\"note\":null}",
        3,
    ),
    ("JSONStringsEachRow", " [ {\"id\":\"1\"} , {\"id\":\"2\",\"data\":\"{}\"} ] \n", 2),
    ("JSONAsObject", "{\"a\":{\"b\":[{},[]]}}{\"a\":\"}\"}", 2),
    ("JSONCompactEachRow", "[1,[\"a\"],{\"x\":\"]\"},null]\n[2,[],{},\"n\"],\n", 2),
    ("JSONCompactEachRowWithNames", "[\"data\",\"id\"]\n[{},1]\n[{\"x\":[1]},2]\n", 2),
    ("JSONCompactStringsEachRowWithNamesAndTypes", "[\"id\"],[\"UInt64\"],[\"1\"],[\"2\"]", 2),
    ("CSV", "1,\"['a']\",\"{\"\"x\"\":\"\"a\nb\"\"}\",x\r\n2 , [] ,{}, \"n,\"\"\"\t\n3,[],{},", 3),
    ("CSVWithNames", "data,\"id\"\n{},1\n\"{\"\"x\"\":1}\",2", 2),
    ("CSVWithNamesAndTypes", "id,note\nUInt64,Nullable(String)\n1,\\N\n2,\"a\nb\"\n", 2),
    ("TabSeparated", "1\t['a','b\\'\\n']\t{\"x\":\"\\\\n\"}\t\\N\n2\t[]\t{}\ta\\tb\n3\t[]\t{}\t", 3),
    ("TSVWithNames", "tags\tdata\n['x']\t{}\n[]\t{}\n", 2),
    ("TSVWithNamesAndTypes", "data\tid\nJSON\tUInt64\n{}\t1\n", 1),
    ("TSVRaw", "1\t['a\\']\t{\"x\":\"\\\\\"}\t\\\n2\t[]\t{}\tn\n", 2),
];

fn join(format: &str, payload: &[u8]) -> Result<Joinable, NotJoinable> {
    plan(format).join(payload)
}

#[test]
fn rows_are_counted_and_ended() {
    for (format, payload, rows) in SAMPLES {
        let joined = join(format, payload.as_bytes()).unwrap_or_else(|_| panic!("{format} is joined"));
        assert_eq!(joined.rows.count(), *rows, "{format}");
        assert!(joined.rows.text().ends_with(b"\n"), "{format}");
        assert_eq!(joined.header.is_empty(), !format.contains("With"), "{format}");
    }
}

#[test]
fn what_stands_around_the_rows_is_left_out() {
    let text = |format: &str, payload: &str| {
        let joined = join(format, payload.as_bytes()).expect("it is joined");
        let text = [joined.header.as_slice(), b"|", joined.rows.text()].concat();
        String::from_utf8(text).expect("it was text")
    };
    assert_eq!(text("JSONEachRow", " [ {\"id\":1} ,{} ]\n "), "|{\"id\":1} ,{}\n");
    assert_eq!(text("JSONEachRow", "\n{\"id\":1}\n{},\n"), "|{\"id\":1}\n{}\n");
    assert_eq!(text("JSONCompactEachRowWithNames", "[\"id\"],[1],[2],"), "[\"id\"]\n|[1],[2]\n");
    assert_eq!(text("CSVWithNames", "id\r\n1\r\n2"), "id\r\n|1\r\n2\n");
    assert_eq!(text("TSVWithNamesAndTypes", "id\nUInt64\n1"), "id\nUInt64\n|1\n");
}

#[test]
fn what_is_not_certain_is_not_joined() {
    let cases = [
        (
            "JSONEachRow",
            &["", " ", "[]", "{\"id\":1", "{\"id\":1};", ";{}", "{}}", "{}[{}]", "[{}]{}", "[{},]", "[{};]", "[{}"][..],
        ),
        (
            "JSONEachRow",
            &["{'id':1}", "{\"id\":01}", "{\"id\":nan}", "{\"id\":\"\\x\"}", "1", "\u{feff}{}", "{}\u{0}{}", ",{}"],
        ),
        ("JSONCompactEachRow", &["[[1],[2]", "{}", "[1];[2]", "[1,]", "[1][2}"]),
        (
            "JSONCompactEachRowWithNames",
            &["[\"id\"]", "[\"ID\"]\n[1]", "[\"id\",\"id\"]\n[1,1]", "[\"i\\u0064\"]\n[1]", "[1]\n[1]"],
        ),
        (
            "CSV",
            &[
                "1,[],{}\n",
                "1,[],{},x,\n",
                "1,[],{},\"x\n",
                "1,[],{},\"x\"y\n",
                "1,[],{},x\"y\n",
                "1,[],{},'x\n",
                "1,[],{},x\n\n",
            ],
        ),
        (
            "CSV",
            &[
                "1,[],{},x\ry\n",
                "1,[],{},x\n\r2,[],{},x\n",
                "1,[],{},x\r",
                "id,tags,data,note\n",
                "note,\"id\",x,tags,data\n",
            ],
        ),
        (
            "CSVWithNames",
            &["id\n", "id,ID\n1,2\n", "id,id\n1,2\n", "id,unknown\n1,2\n", "id,note\n1\n", "id\n1,2\n", "id\n\n"],
        ),
        (
            "TSV",
            &[
                "1\t[]\t{}\n",
                "1\t[]\t{}\tx\\\n",
                "1\t[]\t{}\tx\\",
                "1\t[]\t{}\tx\r\n",
                "1\t['\t{}\tx\n",
                "1\t[1,\t{}\tx\n",
                "id\ttags\tdata\tnote\n",
            ],
        ),
        ("TSV", &["1\t\t{}\tx\n", "1\t[]]\t{}\tx\n", "1\t[\"]\"]\t{}\tx\n", "1\t[]\t{}\tx\n\n"]),
        ("TSVWithNames", &["id\\x20\n1\n", "tags\n['a\n']\n"]),
    ];
    for (format, payloads) in cases {
        for payload in payloads {
            assert_eq!(join(format, payload.as_bytes()), Err(NotJoinable), "{format}: {payload:?}");
        }
    }
}

#[test]
fn a_first_row_that_may_be_names_is_not_joined() {
    let joins = |format: &str, columns: &[&str], payload: &str| {
        let columns: Vec<(&str, &str)> = columns.iter().map(|name| (*name, "String")).collect();
        plan_of(format, &columns).unwrap().join(payload.as_bytes()).is_ok()
    };
    for (format, payload) in
        [("CSV", "b, \"A\" \n"), ("CSV", "a,b\n"), ("TSV", "b\ta\n"), ("TSV", "\\x61\tb\n"), ("TSVRaw", "a\tb\n")]
    {
        assert!(!joins(format, &["a", "b"], payload), "{format}: {payload}");
    }
    for (format, payload) in [("CSV", "a,x\n"), ("CSV", "1,2\na,b\n"), ("TSV", "a\tx\\t\n"), ("TSV", "{\\n\tb\n")] {
        assert!(joins(format, &["a", "b"], payload), "{format}: {payload}");
    }
    assert!(!joins("CSV", &["say \"hi\"", "b"], "\"say \"\"hi\"\"\",b\n"));
    assert!(!joins("TSV", &["ä", "b"], "Ä\tb\n"));
}

#[test]
fn columns_that_are_read_over_line_breaks_are_known() {
    let is_joined = |format: &str, type_name: &str| plan_of(format, &[("a", type_name)]).is_ok();
    assert!(!is_joined("CSV", "Tuple(UInt8, UInt8)"));
    assert!(is_joined("CSV", "Array(Tuple(UInt8, UInt8))"));
    assert!(is_joined("TSV", "Tuple(UInt8, UInt8)"));
    assert!(!is_joined("TSV", "Array(Date)"));
    for format in ["CSV", "TSV", "TSVRaw"] {
        assert!(!is_joined(format, "InventedTomorrow"), "{format}");
    }
    assert!(is_joined("JSONEachRow", "InventedTomorrow"));
}

/// Tests `2020`, a line break, and `1,5`, which are one date to ClickHouse.
#[test]
fn values_read_by_counting_bytes_are_whole() {
    let joins = |format: &str, type_name: &str, value: &str, is_last: bool| {
        let (columns, delimiter) = ([("s", "Dynamic"), ("d", type_name)], if format == "CSV" { "," } else { "\t" });
        match is_last {
            true => plan_of(format, &columns).unwrap().join(format!("x{delimiter}{value}\n").as_bytes()).is_ok(),
            false => {
                let columns = [columns[1], columns[0]];
                plan_of(format, &columns).unwrap().join(format!("{value}{delimiter}x\n").as_bytes()).is_ok()
            }
        }
    };
    for is_last in [true, false] {
        for format in ["CSV", "TSV"] {
            for (type_name, value) in [
                ("Date", "2020-01-05"),
                ("Nullable(Date32)", "2020-01-05"),
                ("Nullable(Date)", "\\N"),
                ("DateTime('UTC')", "2020-01-05 11:22:33"),
                ("DateTime64(3)", "2020-01-05 11:22:33.123"),
                ("LowCardinality(UUID)", "61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
            ] {
                assert!(joins(format, type_name, value, is_last), "{format}, {type_name}: {value:?}");
            }
            for (type_name, value) in [
                ("Date", "2020"),
                ("Nullable(Date)", "2020-01"),
                ("LowCardinality(Date32)", "2020-1-5"),
                ("DateTime", "2020"),
                ("DateTime64(3)", "160000000"),
                ("SimpleAggregateFunction(max, DateTime)", "2020-01-05 11:22"),
                ("UUID", "61f0c404-5cb3"),
            ] {
                assert!(!joins(format, type_name, value, is_last), "{format}, {type_name}: {value:?}");
                assert!(joins("TSVRaw", type_name, value, is_last), "{type_name}: {value:?}");
            }
        }
        assert!(joins("CSV", "Date", "\"2020-01-05\"", is_last) && joins("CSV", "Date", "", is_last));
        assert!(!joins("CSV", "Date", "\"2020\"", is_last) && !joins("TSV", "Date", "", is_last));
    }
}

#[test]
fn a_payload_cut_off_is_joined_only_as_whole_rows() {
    for (format, payload, rows) in SAMPLES {
        let whole = join(format, payload.as_bytes()).unwrap();
        for length in 0..payload.len() {
            let Ok(cut) = join(format, &payload.as_bytes()[..length]) else { continue };
            assert!(cut.rows.count() <= *rows, "{format}, cut at {length}");
            let text = cut.rows.text().strip_suffix(b"\n").unwrap();
            assert!(whole.rows.text().starts_with(text), "{format}, cut at {length}");
            if format.starts_with("JSON") {
                assert!(text.ends_with(b"}") || text.ends_with(b"]"), "{format}, cut at {length}, within a row");
                let rest = &whole.rows.text()[text.len()..];
                assert!(b"\n ,{[".contains(&rest[0]), "{format}, cut at {length}, within a row");
            }
        }
    }
}

/// Tests that payloads which are joined neither change their neighbours nor are changed by them.
#[test]
fn mutated_payloads_do_no_harm_to_their_neighbours() {
    for (format, payload, rows) in SAMPLES {
        let plan = plan(format);
        let good = plan.join(payload.as_bytes()).unwrap();
        let mut joined = 0;
        for seed in 0..3_000 {
            let mutated = mutate(payload.as_bytes(), &mut fastrand::Rng::with_seed(seed));
            let Ok(between) = plan.join(&mutated) else { continue };
            if between.header != good.header {
                continue;
            }
            joined += 1;
            let text = [good.rows.text(), between.rows.text(), good.rows.text()].concat();
            let all = plan.join(&[good.header.as_slice(), &text].concat());
            let all = all.unwrap_or_else(|_| panic!("{format}, seed {seed}: {:?}", String::from_utf8_lossy(&mutated)));
            assert_eq!(all.rows.text(), text, "{format}, seed {seed}");
            assert_eq!(all.rows.count(), 2 * rows + between.rows.count(), "{format}, seed {seed}");
        }
        assert!(joined >= 30, "{format}: {joined} mutations were joined");
    }
}

#[test]
fn random_and_deep_bytes_do_no_harm() {
    for (format, ..) in SAMPLES {
        let plan = plan(format);
        for seed in 0..1_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let bytes: Vec<u8> = (0..random.usize(..40))
                .map(|_| random.choice(b"{}[]\"',;\\\t\n\r a1:\xff\0".iter().copied()).unwrap())
                .collect();
            assert!(std::panic::catch_unwind(|| plan.join(&bytes).is_ok()).is_ok(), "{format}, seed {seed}: {bytes:?}");
        }
        for deep in ["[", "{\"a\":", "(", "\""] {
            let payload = deep.repeat(100_000);
            assert!(plan.join(payload.as_bytes()).is_err(), "{format}: {deep}");
        }
    }
}
