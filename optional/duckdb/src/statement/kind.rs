//! The kind of a statement, found by its words, and whether the statement is allowed at all.
//!
//! Everyone who may write shares one DuckDB, in one process with the gateway. So this file lists what is
//! allowed, not what is forbidden: statements that read, and those that change rows, tables, views, macros
//! and the like. Statements that would change the server itself, reach files, or touch what Windrow keeps for
//! itself in the same database are refused with a word on what to do instead. DuckDB's lexical rules decide
//! what a token is (`windrow_sql`'s lexer); where they leave room to hide something (texts that go on in the next line,
//! back-quotes, Unicode escapes), the whole is refused.

use windrow_sql::{next_duckdb_token, tokens, Dialect, Token, TokenKind};

use super::not_taken::NotTaken;
use super::windrows::names_windrows;

/// The kind of a statement, as far as a gateway has to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The statement answers with rows and changes nothing.
    Reads,
    /// The statement changes something, and answers with rows if `returns`.
    Writes {
        returns: bool,
    },
    NotTaken(NotTaken),
}

const READING: [&str; 12] = [
    "SELECT",
    "FROM",
    "VALUES",
    "TABLE",
    "DESCRIBE",
    "DESC",
    "SHOW",
    "SUMMARIZE",
    "PIVOT",
    "UNPIVOT",
    "PIVOT_WIDER",
    "PIVOT_LONGER",
];
const WRITING: [&str; 9] =
    ["INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COMMENT", "VACUUM", "CHECKPOINT", "ANALYZE"];
/// The kinds of objects that may be created, altered and dropped.
const OBJECTS: [&str; 10] =
    ["TABLE", "VIEW", "SCHEMA", "INDEX", "UNIQUE", "SEQUENCE", "TYPE", "MACRO", "FUNCTION", "RECURSIVE"];
const OF_THE_CONNECTION: [&str; 14] = [
    "SET",
    "RESET",
    "USE",
    "PRAGMA",
    "CALL",
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
];
const OF_THE_SERVER: [&str; 7] = ["ATTACH", "DETACH", "INSTALL", "LOAD", "FORCE", "EXPORT", "IMPORT"];
/// Functions that no read-only transaction holds back.
const FUNCTIONS: [&str; 11] = [
    "checkpoint",
    "force_checkpoint",
    "enable_logging",
    "disable_logging",
    "truncate_duckdb_logs",
    "enable_profiling",
    "disable_profiling",
    "enable_peg_parser",
    "disable_peg_parser",
    "query",
    "json_execute_serialized_sql",
];

/// Returns the kind of a text that goes to DuckDB as it is. `None` where the text is no statement, or
/// several.
pub fn kind_of(sql: &str) -> Option<Kind> {
    let mut tokens = tokens(Dialect::DuckDb, sql);
    while tokens.last().is_some_and(|token| token.is_symbol(b';')) {
        tokens.pop();
    }
    if tokens.is_empty() || tokens.iter().any(|token| token.is_symbol(b';')) {
        return None;
    }
    match tokens.iter().any(|token| token.kind == TokenKind::BackQuotedIdentifier) {
        true => Some(Kind::NotTaken(NotTaken::BackQuotes)),
        false => Some(Kind::of(sql, &tokens)),
    }
}

/// Returns the first word of a statement, such as `SELECT`, behind opening parentheses.
pub fn first_word(sql: &str) -> &str {
    let mut at = 0;
    while let Some(token) = next_duckdb_token(sql, at) {
        if !token.is_symbol(b'(') {
            return token.text(sql);
        }
        at = token.end;
    }
    ""
}

impl Kind {
    pub(super) fn of(text: &str, tokens: &[Token]) -> Kind {
        if let Some(not_taken) = hidden(text, tokens) {
            return Kind::NotTaken(not_taken);
        }
        match (by_words(text, tokens), names_windrows(text, tokens)) {
            (Kind::Writes { .. }, true) => Kind::NotTaken(NotTaken::Windrows),
            (kind, _) => kind,
        }
    }
}

/// Returns the refusal of a text with tokens that no kind of statement may have.
fn hidden(text: &str, tokens: &[Token]) -> Option<NotTaken> {
    if tokens.last().is_some_and(|token| token.kind == TokenKind::Error) {
        return Some(NotTaken::Unclosed);
    }
    if tokens.iter().any(|token| token.kind == TokenKind::UnicodeEscaped) {
        return Some(NotTaken::UnicodeEscapes);
    }
    for (at, pair) in tokens.windows(2).enumerate() {
        let [first, second] = pair else { continue };
        let called = first
            .name(Dialect::DuckDb, text)
            .filter(|_| second.is_symbol(b'('))
            .and_then(|name| refused_function(&name));
        // A table may have such a name.
        if called.is_some()
            && !is_one_of(word_before(text, tokens, at), &["INTO", "TABLE", "EXISTS", "ON", "REFERENCES"])
        {
            return called;
        }
        // DuckDB goes on with the first one's backslashes in the second.
        let both = first.kind == TokenKind::String && second.kind == TokenKind::String;
        if both && first.text(text).starts_with(['e', 'E']) {
            return Some(NotTaken::JoinedTexts);
        }
    }
    None
}

/// Returns the reason why a function is not called, if it is not. Functions of files are refused by the
/// beginning or the end of their names, so that functions of another version or an extension are refused too.
fn refused_function(name: &str) -> Option<NotTaken> {
    let name = name.to_ascii_lowercase();
    let has_to_do_with_files = is_one_of(&name, &["glob", "sniff_csv"])
        || ["read_", "parquet_", "scan_"].iter().any(|start| name.starts_with(start))
        || name.ends_with("_scan");
    match () {
        () if is_one_of(&name, &FUNCTIONS) => Some(NotTaken::Function),
        () if has_to_do_with_files => Some(NotTaken::Files),
        () => None,
    }
}

/// Returns the word before the name that ends at token `at`. The name may have its schema and database before
/// it.
fn word_before<'t>(text: &'t str, tokens: &[Token], mut at: usize) -> &'t str {
    while at >= 2 && tokens[at - 1].is_symbol(b'.') {
        at -= 2;
    }
    at.checked_sub(1).map_or("", |before| tokens[before].text(text))
}

pub(super) fn is_one_of(name: &str, words: &[&str]) -> bool {
    words.iter().any(|word| name.eq_ignore_ascii_case(word))
}

fn by_words(text: &str, tokens: &[Token]) -> Kind {
    let brackets = tokens.iter().take_while(|token| token.is_symbol(b'(')).count();
    let tokens = &tokens[brackets..];
    let word = |at: usize| tokens.get(at).filter(|token| token.kind == TokenKind::Word).map_or("", |it| it.text(text));
    let is = |at: usize, words: &[&str]| is_one_of(word(at), words);
    if is(0, &READING) {
        return Kind::Reads;
    }
    if is(0, &["WITH"]) {
        return if writes_somewhere(text, tokens) { writes(text, tokens) } else { Kind::Reads };
    }
    if brackets > 0 {
        return Kind::NotTaken(NotTaken::Unknown);
    }
    let extensions =
        is(0, &["UPDATE"]) && is(1, &["EXTENSIONS"]) && tokens.get(2).is_none_or(|token| token.is_symbol(b'('));
    let globally = is(0, &["SET", "RESET"]) && is(1, &["GLOBAL"]);
    if extensions || globally || is(0, &OF_THE_SERVER) {
        return Kind::NotTaken(NotTaken::OfTheServer);
    }
    if is(0, &["COPY"]) {
        return Kind::NotTaken(NotTaken::Files);
    }
    if is(0, &OF_THE_CONNECTION) {
        return Kind::NotTaken(NotTaken::OfTheConnection);
    }
    if is(0, &["EXPLAIN"]) {
        return explained(text, &tokens[1..]);
    }
    if is(0, &WRITING) || is(0, &["ANALYSE"]) {
        return writes(text, tokens);
    }
    if is(0, &["CREATE", "ALTER", "DROP"]) {
        let at = if is(1, &["OR"]) && is(2, &["REPLACE"]) { 3 } else { 1 };
        return match () {
            () if is(at, &OBJECTS) => writes(text, tokens),
            () if is(at, &["SECRET", "PERSISTENT", "DATABASE"]) || is(at + 1, &["SECRET"]) => {
                Kind::NotTaken(NotTaken::OfTheServer)
            }
            () if is(at, &["TEMP", "TEMPORARY", "LOCAL", "GLOBAL"]) => Kind::NotTaken(NotTaken::OfTheConnection),
            () => Kind::NotTaken(NotTaken::Unknown),
        };
    }
    Kind::NotTaken(NotTaken::Unknown)
}

fn writes(text: &str, tokens: &[Token]) -> Kind {
    Kind::Writes { returns: depths(tokens).any(|(depth, token)| depth == 0 && token.is_keyword(text, "RETURNING")) }
}

/// Returns the kind of an EXPLAIN. With ANALYZE, the explained statement is run. `EXPLAIN EXPLAIN` is not
/// DuckDB's.
fn explained(text: &str, mut tokens: &[Token]) -> Kind {
    let analyzes = |token: &Token| token.is_keyword(text, "ANALYZE") || token.is_keyword(text, "ANALYSE");
    let mut runs = false;
    loop {
        match tokens.first() {
            Some(first) if analyzes(first) => (runs, tokens) = (true, &tokens[1..]),
            // Its options, or the statement itself.
            Some(first) if first.is_symbol(b'(') && by_words(text, tokens) != Kind::Reads => {
                let length = depths(tokens).position(|(depth, _)| depth == 0).map_or(tokens.len(), |at| at + 1);
                runs |= tokens[..length].iter().any(analyzes);
                tokens = &tokens[length..];
            }
            Some(first) if first.is_keyword(text, "EXPLAIN") => return Kind::NotTaken(NotTaken::Unknown),
            _ => break,
        }
    }
    match by_words(text, tokens) {
        Kind::Writes { .. } if runs => Kind::Writes { returns: true },
        Kind::Writes { .. } => Kind::Reads,
        other => other,
    }
}

/// Says whether a word of writing stands outside of all parentheses.
fn writes_somewhere(text: &str, tokens: &[Token]) -> bool {
    let words = ["INSERT", "UPDATE", "DELETE", "MERGE", "COPY"];
    depths(tokens).any(|(depth, token)| depth == 0 && words.iter().any(|word| token.is_keyword(text, word)))
}

/// Returns each token with the number of parentheses around it.
fn depths(tokens: &[Token]) -> impl Iterator<Item = (i32, &Token)> {
    tokens.iter().scan(0, |depth, token| {
        *depth += i32::from(token.is_symbol(b'(')) - i32::from(token.is_symbol(b')'));
        Some((*depth, token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        Kind::of(text, &tokens(Dialect::DuckDb, text))
    }

    #[test]
    fn what_reads_is_told_from_what_writes() {
        for reading in [
            "select 1",
            "(select 1) union (select 2)",
            "FROM t",
            "with a as (select 1) select * from a",
            "VALUES (1)",
            "explain insert into t values (1)",
            "explain analyze select 1",
            "EXPLAIN (ANALYZE, FORMAT json) SELECT 1",
            "EXPLAIN (SELECT 1) UNION (SELECT 2)",
            "describe t",
            "summarize t",
            "with a as (select 'insert') select * from a",
            "select * from windrow.batches",
        ] {
            assert_eq!(kind(reading), Kind::Reads, "{reading}");
        }
        for writing in [
            "insert into t select 1",
            "create table t (a int)",
            "with a as (select 1) insert into t select * from a",
            "update t set a = 1",
            "update extensions set a = 1",
            "drop table t",
            "create or replace view v as select 1",
            "create unique index i on t (a)",
            "truncate t",
            "comment on table t is 'x'",
            "checkpoint",
            "vacuum analyze",
            "create table if not exists main.read_csv (a int)",
            "insert into memory.main.glob (a) select glob from read_parquet",
        ] {
            assert_eq!(kind(writing), Kind::Writes { returns: false }, "{writing}");
        }
        for returning in
            ["insert into t values (1) returning a", "explain analyze delete from t", "EXPLAIN (ANALYSE) DELETE FROM t"]
        {
            assert_eq!(kind(returning), Kind::Writes { returns: true }, "{returning}");
        }
    }

    #[test]
    fn what_is_not_on_the_list_is_not_taken() {
        let pairs: [(NotTaken, &[&str]); 6] = [
            (
                NotTaken::OfTheConnection,
                &[
                    "set x = 1",
                    "use s",
                    "begin",
                    "commit",
                    "pragma x",
                    "call f()",
                    "prepare p as select 1",
                    "create temp table t (a int)",
                    "create or replace temporary view v",
                    "explain analyze set threads = 1",
                ],
            ),
            (
                NotTaken::OfTheServer,
                &[
                    "SET GLOBAL memory_limit = '1MB'",
                    "reset global threads",
                    "EXPLAIN ANALYZE SET GLOBAL threads = 1",
                    "/**/ explain (analyze, format json) /**/ SET GLOBAL threads = 1",
                    "attach ':memory:' as x",
                    "detach x",
                    "load json",
                    "install httpfs",
                    "force install httpfs",
                    "force checkpoint",
                    "export database 'x'",
                    "import database 'x'",
                    "update extensions",
                    "UPDATE EXTENSIONS (httpfs)",
                    "create secret s (type http)",
                    "create persistent secret s (type http)",
                    "drop secret s",
                    "drop persistent secret s",
                    "alter database x set alias to y",
                ],
            ),
            (
                NotTaken::Files,
                &[
                    "copy t to 'x'",
                    "copy (select 1) to 'x'",
                    "explain analyze copy t from 'x'",
                    "select * from glob('*')",
                    "from READ_TEXT /**/ ('x')",
                    "from \"Read_Blob\" ('x')",
                    "from system.\"main\".read_csv('x')",
                    "from parquet_schema('x')",
                    "from sniff_csv('x')",
                    "from read_xlsx('x')",
                    "from parquet_scan('x')",
                    "pivot read_csv('x') on a",
                    "create view v as from read_json('x')",
                    "create macro m(x) as table from read_text(x)",
                    "insert into t select * from read_ndjson_objects('x')",
                    "create table t as with a as (from read_text('x')) from a",
                ],
            ),
            (
                NotTaken::Function,
                &[
                    "select * from force_checkpoint()",
                    "from \"Enable_Logging\" ('QueryLog')",
                    "create macro m(x) as table from query(x)",
                    "insert into t from main.query /**/ ('select 1')",
                ],
            ),
            (
                NotTaken::UnicodeEscapes,
                &[
                    "from U&\"read_blob\" UESCAPE '!' ('x')",
                    "from u&\"!0072ead_blob\"/**/uescape '!' ('x')",
                    "delete from U&\"windrow\" UESCAPE '!' .batches",
                    "drop schema u&\"windrow\" cascade",
                    "select 1u&\"a\"",
                    "select U&'a' UESCAPE '!'",
                    "select U&'\\'; commit --'",
                    "describe U&\"t\"",
                ],
            ),
            (
                NotTaken::Unknown,
                &[
                    "nonsense",
                    "",
                    "1",
                    "'x'",
                    "(delete from t)",
                    "explain",
                    "explain explain select 1",
                    "create user x",
                    "grant x to y",
                ],
            ),
        ];
        for (wanted, texts) in pairs {
            for text in texts {
                assert_eq!(kind(text), Kind::NotTaken(wanted), "{text}");
            }
        }
    }

    #[test]
    fn nothing_hides_in_a_text() {
        let not_taken = |text: &str| kind_of(text).filter(|kind| !matches!(kind, Kind::NotTaken(_)));
        for text in [
            "SELECT E'a'\n'\\''; DROP TABLE t --'",
            "SELECT E'a' -- x\n'\\', a.b'",
            "SELECT 1e$$; DROP TABLE t; --$$",
            "SELECT `; DROP TABLE t; --`",
            "SELECT 1 -- x\r; COMMIT",
            "SELECT $\u{a0}$; COMMIT; $\u{a0}$",
            "SELECT 1; SELECT 2",
            "SELECT 'a\\'; COMMIT --'",
            "SELECT /* /* */ 1 */; COMMIT",
            "SELECT name'x\\'; COMMIT; --'",
            "SELECT 'x",
            "",
            " ; ",
        ] {
            assert_eq!(not_taken(text), None, "{text}");
        }
        for text in [
            "SELECT ';', \";\", 'it''s;', E'\\';', $$;$$, $a$;$$;$a$ -- ;",
            "/* a; /* b; */ c; */ SELECT 1;;",
            "SELECT $1, a$b, 'a'\n'b', E'a', 'b'",
            "SELECT date'2020-01-01;'",
        ] {
            assert_eq!(not_taken(text), Some(Kind::Reads), "{text}");
        }
    }

    #[test]
    fn what_is_windrows_is_read_and_not_written() {
        for text in
            ["delete from windrow.batches", "drop schema windrow", "explain analyze delete from windrow.batches"]
        {
            assert_eq!(kind(text), Kind::NotTaken(NotTaken::Windrows), "{text}");
        }
        for text in ["select * from windrow.batches", "explain delete from windrow.batches"] {
            assert_eq!(kind(text), Kind::Reads, "{text}");
        }
    }

    #[test]
    fn whatever_is_taken_ends_where_it_ends() {
        let whole =
            "/* a */ with x as (select E'\\'a', 'it''s', $t$ $$ $t$, 1.5e-3) -- b\n insert into \"a\"\"b\".c from x;";
        let check = |text: &str| {
            if matches!(kind_of(text), Some(Kind::Reads | Kind::Writes { .. })) {
                let several = kind_of(&format!("{text}\n; DROP TABLE t"));
                assert!(several.is_none_or(|kind| matches!(kind, Kind::NotTaken(_))), "{text:?}");
            }
        };
        (0..=whole.len()).for_each(|end| check(&whole[..end]));
        let mut random = fastrand::Rng::with_seed(11);
        let odd = [
            '\'', '"', '`', '$', 'e', 'E', 'u', 'U', '&', ';', '\\', '/', '*', '-', '\n', '\r', '(', ')', '1', 'a',
            '\u{a0}', '\u{3000}',
        ];
        for _ in 0..50_000 {
            let mut characters: Vec<char> = whole.chars().collect();
            for _ in 0..random.usize(1..8) {
                let at = random.usize(..characters.len());
                characters[at] = odd[random.usize(..odd.len())];
            }
            check(&characters.into_iter().collect::<String>());
        }
    }

    #[test]
    fn no_depth_is_too_much() {
        for part in ["(/**/", "; ", "EXPLAIN ", "()", "/* */", "EXPLAIN (", "EXPLAIN ANALYZE ("] {
            let sql = format!("SELECT 1;{0}", part.repeat(20_000));
            let _ = kind_of(&sql);
            let _ = kind_of(&sql["SELECT 1;".len()..]);
        }
    }
}
