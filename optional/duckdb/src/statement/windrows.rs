//! Finds statements that name the schemas which Windrow keeps for itself in the same database.

use windrow_sql::{Dialect, Token};

use super::kind::is_one_of;

/// The schemas that Windrow keeps in a DuckDB for itself: tables, and functions that every statement finds.
pub const WINDROWS_SCHEMAS: [&str; 2] = ["windrow", "windrow_functions"];

/// Says whether the statement names one of Windrow's own schemas, or something in one. Its views of
/// ClickHouse's system tables may be read from within another statement; DuckDB changes nothing in a view.
pub(super) fn names_windrows(text: &str, tokens: &[Token]) -> bool {
    let is_schema =
        |token: &Token| token.name(Dialect::DuckDb, text).is_some_and(|name| is_one_of(&name, &WINDROWS_SCHEMAS));
    let of_a_schema = tokens.iter().any(|token| token.is_keyword(text, "SCHEMA"));
    let reads_views = ["INSERT", "UPDATE", "MERGE", "CREATE", "WITH", "EXPLAIN"];
    let reads_views = tokens.first().is_some_and(|token| is_one_of(token.text(text), &reads_views));
    let is_dot = |at: usize| tokens.get(at).is_some_and(|token| token.is_symbol(b'.'));
    let is_read_view = |at: usize| {
        // Before it may stand the database's own name.
        let begin = if at > 1 && is_dot(at - 1) { at - 2 } else { at };
        let before = begin.checked_sub(1).map(|before| &tokens[before]);
        let is_read = before.is_some_and(|token| is_one_of(token.text(text), &["FROM", "JOIN", ","]));
        let view = tokens.get(at + 2).and_then(|token| token.name(Dialect::DuckDb, text));
        reads_views && is_read && view.is_some_and(|name| name.starts_with("system_"))
    };
    let named = |(at, token): (usize, &Token)| {
        // Of three names the first is the database's, which may be called windrow too.
        let is_qualifier = is_dot(at + 1) && (!is_dot(at + 3) || at > 1 && is_dot(at - 1));
        is_schema(token) && (of_a_schema || is_qualifier && !is_read_view(at))
    };
    tokens.iter().enumerate().any(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_sql::tokens;

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
            assert!(names_windrows(text, &tokens(Dialect::DuckDb, text)), "{text}");
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
            assert!(!names_windrows(text, &tokens(Dialect::DuckDb, text)), "{text}");
        }
    }
}
