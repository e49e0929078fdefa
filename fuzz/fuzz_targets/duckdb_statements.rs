#![no_main]
//! Checks DuckDB's statements of any text: no text panics, and none that is accepted hides a second statement
//! or one on Windrow's tables.

use libfuzzer_sys::fuzz_target;
use windrow_duckdb::statement::{ask, first_word, kind_of, Kind, NotTaken, Parameter};

fn is_taken(sql: &str) -> bool {
    matches!(kind_of(sql), Some(Kind::Reads | Kind::Writes { .. }))
}

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    first_word(text);
    let value = |name: &str, _: &str| match name {
        "a" => Parameter::Literal("'a'".to_owned()),
        "b" => Parameter::Missing,
        _ => Parameter::NotOne,
    };
    let system = |table: &str| (table == "one").then(|| "\"db\".windrow.\"system_one\"".to_owned());
    if let Ok(asked) = ask(text, "main", &system, &value) {
        let _ = kind_of(&asked.sql);
    }
    if !is_taken(text) {
        return;
    }
    // It has ended where it ends: what comes behind it is seen.
    let several = kind_of(&format!("{text}\n; DROP TABLE t"));
    assert!(several.is_none() || matches!(several, Some(Kind::NotTaken(_))));
    let behind = kind_of(&format!("WITH a AS (SELECT 1) DELETE FROM t WHERE x IN ({text}\n) AND windrow.batches"));
    let is_seen = |kind: Kind| matches!(kind, Kind::NotTaken(NotTaken::Windrows | NotTaken::JoinedTexts));
    assert!(behind.is_none_or(is_seen));
    let escaped = kind_of(&format!("{text}\n, U&\"x\" UESCAPE '!'"));
    assert!(escaped.is_none_or(|kind| matches!(kind, Kind::NotTaken(_))));
});
