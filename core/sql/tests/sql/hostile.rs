//! Truncations, mutations and generated statements: nothing panics, and a prefix is never mistaken for something else.

use windrow_sql::{classify, classify_prefix, own_table_references, without_system_prefix, Statement};

const STATEMENTS: &[&str] = &[
    "INSERT INTO db.`t 1` (a, `b``c`, n.x,) SETTINGS a='it''s', b=-1.5, c=$x$y$x$ FORMAT JSONEachRow\r\n{\"a\":1}",
    "INSERT INTO t VALUES /* c /* d */ */ -- e\n (1, 'x'), (2, $$y$$)",
    "\u{FEFF}# c\nINSERT\u{3000}INTO\u{A0}“t” SETTINGS a=‘v’ VALUES\u{2003}('x')",
    "INSERT INTO t FORMAT CSV SETTINGS a=1\n1,2",
    "INSERT INTO t (x'41') VALUES (1)",
    "INSERT INTO x'41' VALUES (1)",
    "INSERT INTO t FORMAT x'41' y",
    "INSERT INTO b FORMAT b'01",
    "INSERT INTO $a$ VALUES (1) $a$",
    "INSERT INTO t SELECT * FROM system.asynchronous_inserts FORMAT CSV",
    "INSERT INTO 1e5 VALUES",
    "INSERT INTO t SETTINGS a=1e-5 VALUES (1)",
    "INSERT INTO t SETTINGS a=0x1p+3, b=b'01' VALUES (1)",
    "INSERT INTO t (* EXCEPT(a)) VALUES (1)",
    "SELECT 1.5e10, x.1.2, .5, 'a' FROM system.asynchronous_inserts.x WHERE a - -1",
    "SYSTEM FLUSH ASYNC INSERT QUEUE a, `b`.c;",
    "SYSTEM FLUSH ASYNC INSERT QUEUE ON CLUSTER c",
    "SYSTEM RELOAD CONFIG",
    "RENAME TABLE a TO b, c TO d",
    "CREATE OR REPLACE TEMPORARY TABLE x (a Int8) PARALLEL WITH DROP TABLE y",
    "ALTER TABLE IF EXISTS t ADD COLUMN x Int8 -- c",
    "((SELECT 1))",
];

const OWN: &[&str] = &["asynchronous_inserts"];

/// Classifies a text, and checks what holds for any text: the data begins within it, and taking prefixes away
/// takes nothing else.
fn exercise(text: &[u8]) -> Statement {
    let statement = classify(text);
    if let Statement::Insert(insert) = &statement {
        assert!(insert.data_start <= text.len(), "{}", text.escape_ascii());
    }
    let tables = own_table_references(text, "system", OWN);
    let removed: usize = tables.references.iter().map(|reference| reference.prefix.len()).sum();
    assert_eq!(without_system_prefix(text, &tables).len(), text.len() - removed, "{}", text.escape_ascii());
    statement
}

/// Checks that an answer about a prefix holds for everything that begins with the prefix.
fn check_prefixes(text: &[u8]) {
    let whole = exercise(text);
    for end in 0..=text.len() {
        exercise(&text[..end]);
        let answer = classify_prefix(&text[..end]);
        let holds = answer == Statement::Incomplete || answer == whole;
        assert!(
            holds,
            "{:?} of {:?}: {answer:?}, not {whole:?}",
            text[..end].escape_ascii().to_string(),
            text.escape_ascii().to_string()
        );
    }
}

#[test]
fn an_answer_for_a_prefix_holds_for_the_whole() {
    for text in STATEMENTS {
        check_prefixes(text.as_bytes());
    }
}

#[test]
fn a_prefix_is_answered_as_soon_as_the_data_is_reached() {
    for (prefix, rest) in [
        ("INSERT INTO t FORMAT CSV\n", "1"),
        ("INSERT INTO t FORMAT CSV 1", "2"),
        ("INSERT INTO t VALUES (", "1)"),
        ("INSERT INTO t SELECT ", "1"),
        ("SELECT ", "1"),
    ] {
        let whole = format!("{prefix}{rest}");
        assert_eq!(classify_prefix(prefix.as_bytes()), classify(whole.as_bytes()), "{prefix:?}");
    }
    for prefix in [
        "INSERT INTO t FORMAT CSV",
        "INSERT INTO t FORMAT CSV \r",
        "INSERT INTO t VALUES",
        "INSERT INTO t VALUES -",
        "SELECT",
        "DROP TABLE t ",
    ] {
        assert_eq!(classify_prefix(prefix.as_bytes()), Statement::Incomplete, "{prefix:?}");
    }
}

#[test]
fn mutations_never_panic_and_their_prefixes_agree() {
    let seed = 0x5EED_0001;
    let mut random = fastrand::Rng::with_seed(seed);
    let spice: &[&[u8]] = &[
        b"'",
        b"`",
        b"\"",
        b"$",
        b"$a$",
        b"/*",
        b"*/",
        b"--",
        b"\n",
        b"\\",
        b"(",
        b")",
        b";",
        b"\xE2\x80\x98",
        b"\xE3\x80",
        b"0x",
        b"x'",
        b"FORMAT ",
        b"VALUES",
        b"system.",
        b"\xFF",
        b"\0",
    ];
    for round in 0..4_000 {
        let mut text = random.choice(STATEMENTS).expect("there are statements").as_bytes().to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..=text.len());
            match random.u8(0..3) {
                0 => drop(text.splice(at..at, random.choice(spice).expect("there is spice").iter().copied())),
                1 => drop(text.drain(at..text.len().min(at + random.usize(0..4)))),
                _ if at < text.len() => text[at] = random.u8(..),
                _ => {}
            }
        }
        let result = std::panic::catch_unwind(|| check_prefixes(&text));
        assert!(result.is_ok(), "seed {seed:#x}, round {round}: {}", text.escape_ascii());
    }
}

#[test]
fn generated_inserts_are_taken_apart_into_what_they_were_made_of() {
    let seed = 0x5EED_0002;
    let mut random = fastrand::Rng::with_seed(seed);
    let blanks = [" ", "\n", "\t", "/* c */", " -- c\n", "\u{A0}", "\r\n", " # x\n"];
    let datas: &[&[u8]] =
        &[b"", b"(1)", b"{\"a\":1}", b"SETTINGS", b"'", b"/*", b"\xFF\x00", b"$a$", b"FORMAT x", b"\n\n", b";"];
    for round in 0..5_000 {
        let mut blank = || *random.choice(&blanks).expect("there are blanks");
        let (b1, b2, b3, b4) = (blank(), blank(), blank(), blank());
        let table =
            windrow_sql::backquote(&String::from_iter((0..random.usize(1..5)).map(|_| random.char('\0'..'\u{300}'))));
        let columns = ["", "(a)", "(a,b.c , `d`)"][random.usize(0..3)];
        let settings = ["", "SETTINGS a=1", "SETTINGS a='x', b=2"][random.usize(0..3)];
        let mut text =
            format!("{b1}InSeRt{b2}INTO{b3}{table}{b4}{columns}{b1}{settings}{b2}FORMAT{b3}CSV").into_bytes();
        let gap = [" \n", "\n", "  \r\n", "\t\r"][random.usize(0..4)];
        text.extend_from_slice(gap.as_bytes());
        let data_start = text.len();
        // A line end right behind a lone `\r` would belong to the gap.
        let data = random
            .choice(datas)
            .filter(|data| gap != "\t\r" || data.first() != Some(&b'\n'))
            .copied()
            .unwrap_or_default();
        text.extend_from_slice(data);
        let Statement::Insert(insert) = classify(&text) else {
            panic!("seed {seed:#x}, round {round}: {}", text.escape_ascii())
        };
        let insert_table = insert.table.resolve(|_| None).map(|name| name.table).unwrap_or_default();
        let found =
            (insert.data_start, insert.columns.map_or(0, |c| c.len()), insert.settings.len(), insert.format.as_str());
        let expected =
            (data_start, columns.split(',').filter(|c| !c.is_empty()).count(), settings.matches('=').count(), "CSV");
        assert_eq!(found, expected, "seed {seed:#x}, round {round}: {}", text.escape_ascii());
        assert_eq!(windrow_sql::backquote(&insert_table), table);
    }
}

#[test]
fn a_text_full_of_openings_takes_linear_time() {
    for unit in ["$a$ ", "$a ", "/* ", "( ", "'' ", "INSERT ", "DROP TABLE a, ", "PARALLEL "] {
        let text = unit.repeat(262_144 / unit.len());
        exercise(text.as_bytes());
        exercise(format!("DROP TABLE {text}").as_bytes());
    }
    let distinct: String = (0..40_000).map(|number| format!("${number}$ ")).collect();
    exercise(distinct.as_bytes());
    exercise(format!("DROP TABLE t {distinct}").as_bytes());
}
