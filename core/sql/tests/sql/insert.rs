//! Texts that are plain inserts, and the beginning of their data. Every line was tried on ClickHouse 26.7.

use windrow_sql::{classify, InsertForm, InsertStatement, Statement, TableName};

fn insert(text: &str) -> InsertStatement {
    match classify(text.as_bytes()) {
        Statement::Insert(insert) => insert,
        other => panic!("{text:?} is {other:?}"),
    }
}

fn form(text: &str) -> InsertForm {
    match classify(text.as_bytes()) {
        Statement::Other(other) => other.insert_form.unwrap_or_else(|| panic!("{text:?} is no INSERT: {other:?}")),
        other => panic!("{text:?} is {other:?}"),
    }
}

fn table(database: Option<&str>, table: &str) -> TableName {
    TableName { database: database.map(str::to_owned), table: table.to_owned() }
}

#[test]
fn data_behind_a_format_begins_after_blanks_and_one_line_end() {
    let cases = [
        ("FORMAT LineAsString abc", "abc"),
        ("FORMAT LineAsString   abc", "abc"),
        ("FORMAT LineAsString\nabc", "abc"),
        ("FORMAT LineAsString\n\nabc", "\nabc"),
        ("FORMAT LineAsString\r\nabc", "abc"),
        ("FORMAT LineAsString\rabc", "abc"),
        ("FORMAT LineAsString \t\x0C \n  abc", "  abc"),
        ("FORMAT LineAsString\x0Babc", "\x0Babc"),
        ("FORMAT LineAsString ;abc", ";abc"),
        ("FORMAT LineAsString\n;abc", ";abc"),
        ("FORMAT LineAsString/*x*/abc", "/*x*/abc"),
        ("FORMAT LineAsString -- c\nabc", "-- c\nabc"),
        ("FORMAT LineAsString", ""),
        ("FORMAT LineAsString ", ""),
        ("FORMAT `LineAsString`abc", "abc"),
        ("FORMAT \"LineAsString\"abc", "abc"),
        ("FORMAT LineAsString SETTINGS max_threads=1 abc", "SETTINGS max_threads=1 abc"),
        ("FORMAT LineAsString\nSETTINGS a=b", "SETTINGS a=b"),
        ("FORMAT LineAsString 'unclosed", "'unclosed"),
        ("FORMAT LineAsString\n/* unclosed", "/* unclosed"),
        ("FORMAT LineAsString.x", ".x"),
        ("FORMAT LineAsString,x", ",x"),
        ("FORMAT LineAsString-x", "-x"),
        ("/* c */ FORMAT -- d\n LineAsString\t\t\n  x", "  x"),
    ];
    for (tail, data) in cases {
        let text = format!("INSERT INTO l {tail}");
        let insert = insert(&text);
        assert_eq!(insert.format, "LineAsString", "{text:?}");
        assert_eq!(&text[insert.data_start..], data, "{text:?}");
        assert!(text[..insert.data_start].contains("LineAsString"));
    }
}

#[test]
fn data_behind_values_begins_at_the_next_token() {
    let cases = [
        ("VALUES ('a')", "('a')"),
        ("VALUES('a')", "('a')"),
        ("values /* ( */ ('a')", "('a')"),
        ("VALUES -- x\n ('a')", "('a')"),
        ("VALUES\u{3000}('a');", "('a');"),
        ("VALUES SETTINGS max_threads=1 ('a')", "SETTINGS max_threads=1 ('a')"),
        ("VALUES", ""),
        ("VALUES -- nothing", ""),
        ("VALUES 'unclosed", "'unclosed"),
    ];
    for (tail, data) in cases {
        let text = format!("INSERT INTO l {tail}");
        let insert = insert(&text);
        assert_eq!(insert.format, "Values", "{text:?}");
        assert_eq!(&text[insert.data_start..], data, "{text:?}");
    }
    let text = "INSERT INTO l FORMAT Values('v')";
    assert_eq!(&text[insert(text).data_start..], "('v')");
    assert_eq!(insert("INSERT INTO l FORMAT jsoneachROW[{\"a\":1}]").format, "jsoneachROW");
}

#[test]
fn tables_and_columns_in_every_spelling() {
    let cases = [
        ("INSERT INTO t VALUES", table(None, "t")),
        ("insert into TABLE t VALUES", table(None, "t")),
        ("INSERT/**/INTO\u{A0}t VALUES", table(None, "t")),
        ("\u{FEFF}INSERT INTO t VALUES", table(None, "t")),
        ("/* /* c */ */ INSERT INTO t VALUES", table(None, "t")),
        ("# c\n#! d\n// e\n-- f\nINSERT INTO t VALUES", table(None, "t")),
        ("INSERT INTO db . t VALUES", table(Some("db"), "t")),
        ("INSERT INTO \"db\".`t` VALUES", table(Some("db"), "t")),
        ("INSERT INTO “d”.“t” VALUES", table(Some("d"), "t")),
        ("INSERT INTO `a``b\\`c\\x41\\q` VALUES", table(None, "a`b`cA\\q")),
        ("INSERT INTO 1t VALUES", table(None, "1t")),
        ("INSERT INTO db.1t VALUES", table(Some("db"), "1t")),
        ("INSERT INTO t$x VALUES", table(None, "t$x")),
        ("INSERT INTO values VALUES", table(None, "values")),
    ];
    for (text, name) in cases {
        assert_eq!(insert(text).table.resolve(|_| None), Some(name), "{text:?}");
    }
    let columns = |text: &str| insert(text).columns;
    let names = |list: &[&str]| Some(list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    assert_eq!(columns("INSERT INTO t VALUES"), None);
    assert_eq!(columns("INSERT INTO t(a)VALUES"), names(&["a"]));
    assert_eq!(
        columns("INSERT INTO t (a, `b c`, \"d\", n.x, n.`y.z`,) VALUES"),
        names(&["a", "b c", "d", "n.x", "n.y.z"])
    );
    for (text, except) in [
        ("INSERT INTO t VALUES", &[][..]),
        ("INSERT INTO t (*) VALUES", &[]),
        ("INSERT INTO t (* EXCEPT a) VALUES", &["a"]),
        ("INSERT INTO t ( * except(a, `b c`) ) VALUES", &["a", "b c"]),
    ] {
        assert_eq!((columns(text), insert(text).except), (None, names(except).unwrap_or_default()), "{text}");
    }
}

#[test]
fn settings_are_literals() {
    let settings = |clause: &str| insert(&format!("INSERT INTO t SETTINGS {clause} FORMAT TSV x")).settings;
    let pairs = |list: &[(&str, &str)]| list.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect::<Vec<_>>();
    assert_eq!(settings("a=1, b = 'x', `c`==0.5"), pairs(&[("a", "1"), ("b", "x"), ("c", "0.5")]));
    assert_eq!(settings("a=-1,a=2"), pairs(&[("a", "-1"), ("a", "2")]));
    assert_eq!(settings("a=true,b=FALSE"), pairs(&[("a", "1"), ("b", "0")]));
    assert_eq!(settings("a='it''s \\'n\\t\\x41\\N\\%'"), pairs(&[("a", "it's 'n\tA\\%")]));
    assert_eq!(settings("a=$x$it's$x$, b=‘q’"), pairs(&[("a", "it's"), ("b", "q")]));
    for unclear in [
        "a",
        "a=1e3",
        "a=0x10",
        "a=010",
        "a=1_000",
        "a=1000000000000000000",
        "a=DEFAULT",
        "a=[1]",
        "a=x'41'",
        "a=disk(x=1)",
        "a=+1",
        "a=1,",
    ] {
        assert_eq!(form(&format!("INSERT INTO t SETTINGS {unclear} VALUES (1)")), InsertForm::Unusual, "{unclear}");
    }
}

#[test]
fn anything_more_than_a_plain_insert_is_left_to_the_backend() {
    let cases = [
        ("INSERT INTO t SELECT 1", InsertForm::Select),
        ("INSERT INTO t (a) (SELECT 1)", InsertForm::Select),
        ("INSERT INTO t WITH 1 AS x SELECT x", InsertForm::Select),
        ("INSERT INTO t SETTINGS a=1 SELECT 1", InsertForm::Select),
        ("INSERT INTO t SELECT * FROM input('a Int8') FORMAT CSV 1", InsertForm::Select),
        ("INSERT INTO FUNCTION null('a UInt8') VALUES (1)", InsertForm::Function),
        ("INSERT INTO TABLE FUNCTION file('x') PARTITION BY a VALUES (1)", InsertForm::Function),
        ("INSERT INTO t FROM INFILE 'x' FORMAT CSV", InsertForm::FromInfile),
        ("INSERT INTO t (a) FROM INFILE 'x' FORMAT CSV", InsertForm::FromInfile),
        ("INSERT INTO t (*, a) VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO t (* EXCEPT) VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO t (* EXCEPT a, b) VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO t (* EXCEPT STRICT a) VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO t (* EXCEPT (n.a)) VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO t (* EXCEPT 'a.*') VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO t (* APPLY f) VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO t (t.*) VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO t (COLUMNS('a')) VALUES (1)", InsertForm::ColumnMatcher),
        ("INSERT INTO {t:String} VALUES (1)", InsertForm::Unusual),
        ("INSERT INTO d.{t} VALUES (1)", InsertForm::Unusual),
        ("INSERT INTO t ({c:Identifier}) VALUES (1)", InsertForm::QueryParameter),
        ("INSERT INTO t SETTINGS a={v:String} VALUES (1)", InsertForm::QueryParameter),
        ("INSERT INTO t SETTINGS param_x=1 VALUES (1)", InsertForm::QueryParameter),
        ("INSERT INTO t FORMAT {f:Identifier} x", InsertForm::QueryParameter),
        ("INSERT INTO t VALUES;", InsertForm::Semicolon),
        ("INSERT INTO t VALUES ; (1)", InsertForm::Semicolon),
        ("INSERT INTO t FORMAT CSV; 1", InsertForm::Semicolon),
        ("INSERT t VALUES (1)", InsertForm::Unusual),
        ("INSERT INTO `` VALUES (1)", InsertForm::Unusual),
        ("INSERT INTO a.b.c VALUES (1)", InsertForm::Unusual),
        ("INSERT INTO t () VALUES (1)", InsertForm::Unusual),
        ("INSERT INTO t (SELECT 1)", InsertForm::Unusual),
        ("INSERT INTO t RETURNING (SELECT 1) VALUES (1)", InsertForm::Unusual),
        ("INSERT INTO t FORMAT 'CSV' x", InsertForm::Unusual),
        ("INSERT INTO t; INSERT INTO t VALUES (1)", InsertForm::Unusual),
    ];
    for (text, expected) in cases {
        assert_eq!(form(text), expected, "{text:?}");
    }
}

#[test]
fn names_that_are_not_utf8_are_left_to_the_backend() {
    for text in [
        &b"INSERT INTO `\xFF` VALUES (1)"[..],
        b"INSERT INTO t (`\xC3`) VALUES (1)",
        b"INSERT INTO t SETTINGS a='\\xFF' VALUES (1)",
    ] {
        assert!(matches!(classify(text), Statement::Other(other) if other.insert_form == Some(InsertForm::Unusual)));
    }
}

#[test]
fn a_table_may_be_named_by_query_parameters() {
    let value_of = |parameter: &str| (parameter != "missing").then(|| format!("{parameter}'s value"));
    let cases = [
        ("INSERT INTO {t:Identifier} VALUES (1)", table(None, "t's value")),
        ("INSERT INTO { d : Identifier } . `t` FORMAT CSV 1", table(Some("d's value"), "t")),
        ("INSERT INTO TABLE {d:Identifier}.{t:Identifier} (a) VALUES (1)", table(Some("d's value"), "t's value")),
    ];
    for (text, name) in cases {
        assert_eq!(insert(text).table.resolve(value_of), Some(name), "{text:?}");
    }
    for text in ["INSERT INTO {missing:Identifier} VALUES (1)", "INSERT INTO {missing:Identifier}.t VALUES (1)"] {
        assert_eq!(insert(text).table.resolve(value_of), None, "{text:?}");
    }
}
