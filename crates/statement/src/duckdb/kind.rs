//! What a statement does, by its words.

use super::lexer::Token;

/// What a statement does, as far as a gateway has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It answers with rows and changes nothing.
    Reads,
    /// It changes something, and answers with rows if `returns`.
    Writes { returns: bool },
    /// It would change the connection it runs on, which the next request may share with somebody else: SET, USE, BEGIN, PREPARE, a temporary table.
    ChangesConnection,
}

const READING: [&str; 10] =
    ["SELECT", "FROM", "VALUES", "TABLE", "DESCRIBE", "DESC", "SHOW", "SUMMARIZE", "PIVOT", "UNPIVOT"];
const OF_THE_CONNECTION: [&str; 14] = [
    "SET",
    "RESET",
    "USE",
    "PRAGMA",
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "LOAD",
];
const WRITING: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "COPY"];

impl Kind {
    pub(super) fn of(text: &str, tokens: &[Token]) -> Kind {
        let tokens = &tokens[tokens.iter().take_while(|token| token.is(b'(')).count()..];
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(text, word));
        let is_one_of = |words: &[&str]| words.iter().any(|word| is(0, word));
        if is_one_of(&READING) {
            return Kind::Reads;
        }
        if is_one_of(&OF_THE_CONNECTION) {
            return Kind::ChangesConnection;
        }
        if is(0, "EXPLAIN") {
            // EXPLAIN ANALYZE runs what it explains.
            let analyzes = tokens.iter().take(6).any(|token| token.is_word(text, "ANALYZE"));
            return if analyzes && writes_somewhere(text, tokens) {
                Kind::Writes { returns: true }
            } else {
                Kind::Reads
            };
        }
        if is(0, "WITH") && !writes_somewhere(text, tokens) {
            return Kind::Reads;
        }
        if is(0, "CREATE") && tokens.iter().take(5).any(|token| is_temporary(text, token)) {
            return Kind::ChangesConnection;
        }
        let returning = depths(tokens).any(|(depth, token)| depth == 0 && token.is_word(text, "RETURNING"));
        Kind::Writes { returns: returning || is(0, "CALL") }
    }
}

fn is_temporary(text: &str, token: &Token) -> bool {
    token.is_word(text, "TEMP") || token.is_word(text, "TEMPORARY")
}

/// Whether a word of writing stands outside of all parentheses.
fn writes_somewhere(text: &str, tokens: &[Token]) -> bool {
    depths(tokens).any(|(depth, token)| depth == 0 && WRITING.iter().any(|word| token.is_word(text, word)))
}

/// Each token with the number of parentheses around it.
fn depths(tokens: &[Token]) -> impl Iterator<Item = (i32, &Token)> {
    tokens.iter().scan(0, |depth, token| {
        *depth += i32::from(token.is(b'(')) - i32::from(token.is(b')'));
        Some((*depth, token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duckdb::lexer::tokens;

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
            "describe t",
            "summarize t",
            "with a as (select 'insert') select * from a",
        ] {
            assert_eq!(kind(reading), Kind::Reads, "{reading}");
        }
        for writing in [
            "insert into t select 1",
            "create table t (a int)",
            "with a as (select 1) insert into t select * from a",
            "update t set a = 1",
            "drop table t",
            "attach 'x.db'",
            "copy t to 'x'",
            "checkpoint",
            "nonsense",
            "",
        ] {
            assert_eq!(kind(writing), Kind::Writes { returns: false }, "{writing}");
        }
        for returning in ["insert into t values (1) returning a", "call f()", "explain analyze delete from t"] {
            assert_eq!(kind(returning), Kind::Writes { returns: true }, "{returning}");
        }
        for own in ["set x = 1", "use s", "begin", "create temp table t (a int)", "create or replace temporary view v"]
        {
            assert_eq!(kind(own), Kind::ChangesConnection, "{own}");
        }
    }
}
