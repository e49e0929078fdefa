//! What a statement does, by its words, and whether it is taken at all.
//!
//! Everyone who may write shares one DuckDB, in one process with the gateway. So it is a list of what is taken, not of what
//! isn't: statements that read, and those that change rows, tables, views, macros and the like. What would change the server
//! itself, reach files, or touch what Windrow keeps for itself in the same database is refused with a word on what to do instead.
//! DuckDB's lexical rules decide what a token is (`lexer.rs`); where they leave room to hide something (texts that go on in the next
//! line, back-quotes), the whole is refused.

use super::lexer::{next_token, tokens, Token, TokenKind};

/// What a statement does, as far as a gateway has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It answers with rows and changes nothing.
    Reads,
    /// It changes something, and answers with rows if `returns`.
    Writes {
        returns: bool,
    },
    NotTaken(NotTaken),
}

/// Why a statement is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// It would change the connection it runs on, which is gone with the request: SET, USE, BEGIN, PREPARE, a temporary table.
    OfTheConnection,
    /// It would change the server for everyone.
    OfTheServer,
    Files,
    /// It names what Windrow keeps for itself.
    Windrows,
    /// A function that acts on the server, or runs a text as a statement.
    Function,
    BackQuotes,
    /// `E'a'` and in the next line `'b'`.
    JoinedTexts,
    Unclosed,
    Unknown,
}

impl NotTaken {
    /// ClickHouse's.
    pub fn code(self) -> i32 {
        match self {
            NotTaken::OfTheConnection => 48,
            NotTaken::OfTheServer | NotTaken::Files | NotTaken::Windrows | NotTaken::Function => 497,
            NotTaken::BackQuotes | NotTaken::JoinedTexts | NotTaken::Unclosed | NotTaken::Unknown => 62,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            NotTaken::OfTheConnection => {
                "Every request has a connection to DuckDB of its own, so what SET, USE, PRAGMA, CALL, BEGIN, PREPARE or a temporary table \
                 would change is gone when it ends. Use the parameter database= for another schema, SELECT * FROM pragma_x() for what a \
                 PRAGMA tells, and the section [duckdb] of Windrow's configuration for DuckDB's settings"
            }
            NotTaken::OfTheServer => {
                "This would change the server for everyone. What DuckDB runs with stands in the section [duckdb] of Windrow's configuration: \
                 duckdb.memory_limit_bytes, duckdb.threads, duckdb.max_temporary_bytes, duckdb.max_result_connections. Other databases, \
                 extensions and secrets are not reached"
            }
            NotTaken::Files => {
                "Statements do not reach the machine's files. Ask with FORMAT Parquet, CSV or another, and send rows with INSERT or an \
                 ordered append"
            }
            NotTaken::Windrows => {
                "What stands in the schemas windrow and windrow_functions is Windrow's own: it is read by SELECT, and changed by nobody else"
            }
            NotTaken::Function => {
                "checkpoint, force_checkpoint, the functions of logging, profiling and the parser act on the whole server, and query and \
                 json_execute_serialized_sql run texts that were not looked at: none of them is called here"
            }
            NotTaken::BackQuotes => "Names stand in double quotes in DuckDB",
            NotTaken::JoinedTexts => "A text that begins with E' ends on its line: join texts with ||",
            NotTaken::Unclosed => "A quote or a comment does not end",
            NotTaken::Unknown => {
                "No statement of DuckDB's that is taken begins like this: SELECT, FROM, WITH, VALUES, TABLE, SHOW, DESCRIBE, SUMMARIZE, PIVOT, \
                 UNPIVOT, EXPLAIN, INSERT, UPDATE, DELETE, MERGE, TRUNCATE, CREATE, ALTER, DROP (of tables, views, schemas, indexes, \
                 sequences, types and macros), COMMENT, ANALYZE, VACUUM and CHECKPOINT are"
            }
        }
    }
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
/// What may be made, altered and dropped.
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
/// No read-only transaction holds these back.
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
/// What Windrow keeps in a DuckDB for itself: tables, and functions that every statement finds.
pub const WINDROWS_SCHEMAS: [&str; 2] = ["windrow", "windrow_functions"];

/// The kind of a text that goes to DuckDB as it is, and is one statement. `None`: it is none, or several.
pub fn kind_of(sql: &str) -> Option<Kind> {
    let mut tokens = tokens(sql);
    while tokens.last().is_some_and(|token| token.is(b';')) {
        tokens.pop();
    }
    if tokens.is_empty() || tokens.iter().any(|token| token.is(b';')) {
        return None;
    }
    match tokens.iter().any(|token| token.kind == TokenKind::BackQuotedName) {
        true => Some(Kind::NotTaken(NotTaken::BackQuotes)),
        false => Some(Kind::of(sql, &tokens)),
    }
}

/// Whether all parentheses end, so that a statement can stand between two of its own.
pub fn is_closed(sql: &str) -> bool {
    let tokens = tokens(sql);
    let last = depths(&tokens).try_fold(0, |_, (depth, _)| (depth >= 0).then_some(depth));
    last == Some(0) && tokens.last().is_none_or(|token| token.kind != TokenKind::Unclosed)
}

/// What a statement begins with, such as `SELECT`, behind brackets.
pub fn first_word(sql: &str) -> &str {
    let mut at = 0;
    while let Some(token) = next_token(sql, at) {
        if !token.is(b'(') {
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

/// What no kind of statement may have in it.
fn hidden(text: &str, tokens: &[Token]) -> Option<NotTaken> {
    if tokens.last().is_some_and(|token| token.kind == TokenKind::Unclosed) {
        return Some(NotTaken::Unclosed);
    }
    for (at, pair) in tokens.windows(2).enumerate() {
        let [first, second] = pair else { continue };
        if second.is(b'(') && first.name(text).is_some_and(|name| is_one_of(&name, &FUNCTIONS)) {
            // A table may have such a name.
            let before = at.checked_sub(1).map_or("", |before| tokens[before].text(text));
            if !is_one_of(before, &["INTO", "TABLE", "EXISTS", "ON"]) {
                return Some(NotTaken::Function);
            }
        }
        // DuckDB goes on with the first one's backslashes in the second.
        let both = first.kind == TokenKind::String && second.kind == TokenKind::String;
        if both && first.text(text).starts_with(['e', 'E']) {
            return Some(NotTaken::JoinedTexts);
        }
    }
    None
}

fn is_one_of(name: &str, words: &[&str]) -> bool {
    words.iter().any(|word| name.eq_ignore_ascii_case(word))
}

fn by_words(text: &str, tokens: &[Token]) -> Kind {
    let brackets = tokens.iter().take_while(|token| token.is(b'(')).count();
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
    let extensions = is(0, &["UPDATE"]) && is(1, &["EXTENSIONS"]) && tokens.get(2).is_none_or(|token| token.is(b'('));
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
    Kind::Writes { returns: depths(tokens).any(|(depth, token)| depth == 0 && token.is_word(text, "RETURNING")) }
}

/// With ANALYZE, what is explained is run. `EXPLAIN EXPLAIN` is not DuckDB's.
fn explained(text: &str, mut tokens: &[Token]) -> Kind {
    let analyzes = |token: &Token| token.is_word(text, "ANALYZE") || token.is_word(text, "ANALYSE");
    let mut runs = false;
    loop {
        match tokens.first() {
            Some(first) if analyzes(first) => (runs, tokens) = (true, &tokens[1..]),
            // Its options, or the statement itself.
            Some(first) if first.is(b'(') && by_words(text, tokens) != Kind::Reads => {
                let length = depths(tokens).position(|(depth, _)| depth == 0).map_or(tokens.len(), |at| at + 1);
                runs |= tokens[..length].iter().any(analyzes);
                tokens = &tokens[length..];
            }
            Some(first) if first.is_word(text, "EXPLAIN") => return Kind::NotTaken(NotTaken::Unknown),
            _ => break,
        }
    }
    match by_words(text, tokens) {
        Kind::Writes { .. } if runs => Kind::Writes { returns: true },
        Kind::Writes { .. } => Kind::Reads,
        other => other,
    }
}

/// Whether something is named in Windrow's own schemas, or one of them itself. Its views of ClickHouse's system tables may be
/// read from on the way; DuckDB changes nothing in a view.
fn names_windrows(text: &str, tokens: &[Token]) -> bool {
    let is_schema = |token: &Token| token.name(text).is_some_and(|name| is_one_of(&name, &WINDROWS_SCHEMAS));
    let of_a_schema = tokens.iter().any(|token| token.is_word(text, "SCHEMA"));
    let reads_views = ["INSERT", "UPDATE", "MERGE", "CREATE", "WITH", "EXPLAIN"];
    let reads_views = tokens.first().is_some_and(|token| is_one_of(token.text(text), &reads_views));
    let is_dot = |at: usize| tokens.get(at).is_some_and(|token| token.is(b'.'));
    let is_read_view = |at: usize| {
        // Before it may stand the database's own name.
        let begin = if at > 1 && is_dot(at - 1) { at - 2 } else { at };
        let before = begin.checked_sub(1).map(|before| &tokens[before]);
        let is_read = before.is_some_and(|token| is_one_of(token.text(text), &["FROM", "JOIN", ","]));
        let view = tokens.get(at + 2).and_then(|token| token.name(text));
        reads_views && is_read && view.is_some_and(|name| name.starts_with("system_"))
    };
    let named = |(at, token): (usize, &Token)| {
        // Of three names the first is the database's, which may be called windrow too.
        let is_qualifier = is_dot(at + 1) && (!is_dot(at + 3) || at > 1 && is_dot(at - 1));
        is_schema(token) && (of_a_schema || is_qualifier && !is_read_view(at))
    };
    tokens.iter().enumerate().any(named)
}

/// Whether a word of writing stands outside of all parentheses.
fn writes_somewhere(text: &str, tokens: &[Token]) -> bool {
    let words = ["INSERT", "UPDATE", "DELETE", "MERGE", "COPY"];
    depths(tokens).any(|(depth, token)| depth == 0 && words.iter().any(|word| token.is_word(text, word)))
}

/// Each token with the number of parentheses around it.
fn depths<'t>(tokens: &'t [Token]) -> impl Iterator<Item = (i32, &'t Token)> {
    tokens.iter().scan(0, |depth, token| {
        *depth += i32::from(token.is(b'(')) - i32::from(token.is(b')'));
        Some((*depth, token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        Kind::of(text, &tokens(text))
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
        let pairs: [(NotTaken, &[&str]); 5] = [
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
            (NotTaken::Files, &["copy t to 'x'", "copy (select 1) to 'x'", "explain analyze copy t from 'x'"]),
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
    fn what_is_windrows_is_only_read() {
        for text in [
            "insert into windrow.batches values (1)",
            "INSERT INTO \"WINDROW\" . \"batches\" VALUES (1)",
            "insert into db.windrow /**/ . -- x\rappends values (1)",
            "delete from windrow.batches",
            "delete from windrow.windrow.batches",
            "delete from db.windrow.batches",
            "drop view db.windrow.system_one",
            "delete from windrow\u{3000}.batches",
            "update Windrow\u{a0}.batches set id = 1",
            "truncate windrow.batches",
            "merge into windrow.batches using t on true when matched then delete",
            "with a as (select 1) delete from windrow.appends",
            "explain analyze delete from windrow.batches",
            "drop schema windrow cascade",
            "drop schema if exists a, \"windrow\" cascade",
            "create or replace schema windrow",
            "alter table t set schema windrow",
            "alter table windrow.batches rename to x",
            "drop view windrow.system_one",
            "create or replace view windrow.system_one as select 1",
            "create table t (a uuid references windrow.batches (id))",
            "create or replace macro windrow_functions.version() as 1",
            "create table mine as select * from windrow.batches",
        ] {
            assert_eq!(kind(text), Kind::NotTaken(NotTaken::Windrows), "{text}");
        }
        for text in [
            "insert into t select 'windrow.batches'",
            "create table t as select * from windrow.system_tables",
            "insert into t select 1 from a, windrow.system_one",
            "insert into t select 1 from \"windrow\".windrow.\"system_one\"",
            "insert into windrow.main.t values (1)",
            "create table windrow (windrow int)",
            "insert into query (a) select query from query",
            "create table if not exists checkpoint (a int)",
        ] {
            assert!(matches!(kind(text), Kind::Writes { .. }), "{text}");
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
    fn what_could_end_parentheses_around_it_is_told() {
        assert!(is_closed("select (1), ')' -- )"));
        for open in ["select 1) to 'x' (format csv", "select (1", "select 'x", "select 1 /* x"] {
            assert!(!is_closed(open), "{open}");
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
