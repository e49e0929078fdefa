//! The table that an INSERT of any form writes to, and the settings that the INSERT names anywhere: also in
//! the SELECT behind it.

use crate::cursor::Cursor;
use crate::insert::{self, InsertTable};
use crate::lexer::TokenKind;
use crate::literal;
use crate::names::TableName;
use crate::quote::Dialect;

/// An INSERT, as far as is known without understanding all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InsertOutline {
    /// The table; `None` for a table function, or for something that is not understood.
    pub table: Option<InsertTable>,
    /// The column list as it stands behind the table, with its parentheses; empty if there is none.
    pub columns: String,
    /// Settings in the order written; strings without quotes, true and false as 1 and 0.
    pub settings: Vec<(String, String)>,
}

/// The number of tokens that are read: beyond it, settings and column lists are not looked for.
const MAX_TOKENS: usize = 100_000;
const MAX_SETTINGS: usize = 1_000;

impl InsertOutline {
    /// Reads the outline of an INSERT, with those of its settings that `is_wanted`. `None` where the text
    /// does not begin an INSERT.
    pub fn of(text: &[u8], is_wanted: impl Fn(&str) -> bool) -> Option<InsertOutline> {
        let mut cursor = Cursor::new(text, false);
        skip_with(&mut cursor);
        if !cursor.eat_keyword("INSERT") {
            return None;
        }
        let table = insert::table_behind_insert(&mut cursor).ok();
        let columns = columns(&mut cursor);
        Some(InsertOutline { table, columns, settings: settings(&mut cursor, is_wanted) })
    }

    /// Returns the table's name, with the values of query parameters.
    pub fn table_name(&self, value_of: impl Fn(&str) -> Option<String>) -> Option<TableName> {
        self.table.as_ref()?.resolve(value_of)
    }
}

/// Skips the WITH clause of `WITH x AS (SELECT 1) INSERT INTO t SELECT ..`.
fn skip_with(cursor: &mut Cursor) {
    if !cursor.at_keyword("WITH") {
        return;
    }
    let mut depth = 0u32;
    for _ in 0..MAX_TOKENS {
        if depth == 0 && (cursor.at_keyword("INSERT") || cursor.at_keyword("SELECT")) {
            return;
        }
        match cursor.take().kind {
            TokenKind::Symbol(b'(') => depth += 1,
            TokenKind::Symbol(b')') => depth = depth.saturating_sub(1),
            TokenKind::End | TokenKind::Error => return,
            _ => {}
        }
    }
}

fn columns(cursor: &mut Cursor) -> String {
    if !matches!(cursor.peek().kind, TokenKind::Symbol(b'(')) {
        return String::new();
    }
    let (start, mut depth) = (cursor.peek().start, 0u32);
    for _ in 0..MAX_TOKENS {
        let token = cursor.take();
        match token.kind {
            TokenKind::Symbol(b'(') => depth += 1,
            TokenKind::Symbol(b')') => depth -= 1,
            TokenKind::End | TokenKind::Error => break,
            _ => {}
        }
        if depth == 0 {
            return String::from_utf8_lossy(&cursor.text()[start..token.end]).into_owned();
        }
    }
    String::new()
}

/// Returns the settings that stand anywhere as `name = literal`, up to where data may begin.
fn settings(cursor: &mut Cursor, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut is_query = false;
    for _ in 0..MAX_TOKENS {
        is_query |= cursor.at_keyword("SELECT") || cursor.at_keyword("WITH");
        let ends = cursor.at_keyword("FORMAT") || (!is_query && cursor.at_keyword("VALUES"));
        if ends || found.len() == MAX_SETTINGS {
            break;
        }
        let text = cursor.text();
        let token = cursor.take();
        if matches!(token.kind, TokenKind::End | TokenKind::Error) {
            break;
        }
        let Some(name) = token.name(Dialect::ClickHouse, text).filter(|name| is_wanted(name)) else { continue };
        if cursor.eat_symbol(b'=') {
            found.extend(value(cursor).map(|value| (name, value)));
        }
    }
    found
}

fn value(cursor: &mut Cursor) -> Option<String> {
    let text = cursor.text();
    let token = cursor.peek();
    match token.kind {
        TokenKind::Number => std::str::from_utf8(token.bytes(text)).ok().map(str::to_owned),
        TokenKind::String | TokenKind::HereDoc => literal::string(&token, text),
        TokenKind::Word if token.is_keyword(text, "true") => Some("1".to_owned()),
        TokenKind::Word if token.is_keyword(text, "false") => Some("0".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str) -> Option<(String, String)> {
        let outline = InsertOutline::of(text.as_bytes(), |name| name.contains("dedup"))?;
        let name = outline.table_name(|_| Some("p".to_owned()));
        let name = name.map(|name| format!("{}.{}", name.database.unwrap_or_default(), name.table));
        let settings: Vec<_> = outline.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some((name.unwrap_or_default(), settings.join(",")))
    }

    fn is(text: &str, name: &str, settings: &str) {
        assert_eq!(outline(text), Some((name.to_owned(), settings.to_owned())), "{text}");
    }

    #[test]
    fn every_form_of_insert_has_a_table() {
        is("INSERT INTO t VALUES (1)", ".t", "");
        is("insert into TABLE d.`t u` (a) SELECT 1", "d.t u", "");
        is("INSERT INTO {x:Identifier} (* EXCEPT a) SELECT 1", ".p", "");
        is("INSERT INTO FUNCTION remote('h', d.t) SELECT 1", "", "");
        is("WITH x AS (SELECT 1 INSERT), 2 AS y INSERT INTO t SELECT * FROM x", ".t", "");
        assert_eq!(outline("SELECT 1"), None);
        assert_eq!(outline("WITH 1 AS x SELECT x"), None);
    }

    #[test]
    fn the_list_of_columns_is_as_it_stands() {
        let columns = |text: &str| InsertOutline::of(text.as_bytes(), |_| false).unwrap().columns;
        assert_eq!(columns("INSERT INTO t (a, `b)`) VALUES (1, 2)"), "(a, `b)`)");
        assert_eq!(columns("INSERT INTO d.t(* EXCEPT (a)) SELECT 1"), "(* EXCEPT (a))");
        assert_eq!(columns("INSERT INTO t VALUES (1)"), "");
        assert_eq!(columns("INSERT INTO t (a"), "", "it doesn't end");
    }

    #[test]
    fn settings_are_found_in_either_place() {
        is("INSERT INTO t SETTINGS async_insert=1, dedup_a=0 VALUES (1)", ".t", "dedup_a=0");
        is("INSERT INTO t SELECT 1 SETTINGS dedup_token = 'x', dedup_b = true", ".t", "dedup_token=x,dedup_b=1");
        is("INSERT INTO t (dedup_a) SELECT dedup_a FROM values('a', 1) SETTINGS dedup_b=2", ".t", "dedup_b=2");
    }

    #[test]
    fn data_is_not_looked_at() {
        is("INSERT INTO t VALUES ('x', dedup_a = 1)", ".t", "");
        is("INSERT INTO t FORMAT CSV\ndedup_a=1", ".t", "");
    }

    #[test]
    fn every_beginning_has_an_outline_or_none() {
        let text = "INSERT INTO d.t (a) SELECT 'x' SETTINGS dedup_token = 'x'";
        for length in 0..=text.len() {
            InsertOutline::of(&text.as_bytes()[..length], |_| true);
        }
    }
}
