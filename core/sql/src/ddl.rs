//! The tables that a DDL statement names, where that is easy to tell.

use crate::cursor::Cursor;
use crate::names::TableName;
use crate::other::{DdlScope, Effects, Leading};

/// The largest number of tables that are listed: nobody names more in one statement.
const MAX_TABLES: usize = 1_000;

/// Parses the statement behind its leading word.
pub(crate) fn effects(leading: Leading, cursor: &mut Cursor) -> Effects {
    match leading {
        Leading::Create | Leading::Replace | Leading::Attach => definition(cursor),
        Leading::Alter => alter(cursor),
        Leading::Drop | Leading::Detach | Leading::Undrop => removal(cursor),
        Leading::Truncate => truncate(cursor),
        Leading::Rename => pairs(cursor, &["TABLE", "DICTIONARY"], "TO"),
        Leading::Exchange => pairs(cursor, &["TABLES", "DICTIONARIES"], "AND"),
        _ => Effects::EVERYTHING,
    }
}

fn tables(names: Option<Vec<TableName>>) -> Effects {
    Effects { ddl: names.map_or(DdlScope::Anything, DdlScope::Tables), ..Effects::NONE }
}

fn definition(cursor: &mut Cursor) -> Effects {
    cursor.eat_keywords("OR REPLACE");
    if is_access_entity(cursor) {
        return Effects::ACCESS;
    }
    let temporary = cursor.eat_keyword("TEMPORARY");
    let kind_of_view = ["MATERIALIZED", "LIVE", "WINDOW"].iter().any(|word| cursor.eat_keyword(word));
    let names_table = cursor.eat_keyword("VIEW") || (!kind_of_view && eat_any(cursor, &["TABLE", "DICTIONARY"]));
    let effects = if names_table {
        cursor.eat_keywords("IF NOT EXISTS");
        tables(cursor.table_name().map(|name| vec![name]))
    } else {
        Effects::ANY_TABLE
    };
    // Other views read a table when they are read.
    Effects { session: temporary, hangs_on: kind_of_view, ..effects }
}

fn alter(cursor: &mut Cursor) -> Effects {
    if is_access_entity(cursor) {
        return Effects::ACCESS;
    }
    let temporary = cursor.eat_keyword("TEMPORARY");
    if !cursor.eat_keyword("TABLE") {
        return Effects { session: temporary, ..Effects::ANY_TABLE };
    }
    cursor.eat_keywords("IF EXISTS");
    Effects { session: temporary, ..tables(cursor.table_name().map(|name| vec![name])) }
}

fn removal(cursor: &mut Cursor) -> Effects {
    if is_access_entity(cursor) {
        return Effects::ACCESS;
    }
    if cursor.eat_keyword("DATABASE") {
        return database(cursor);
    }
    let temporary = cursor.eat_keyword("TEMPORARY");
    if !eat_any(cursor, &["TABLE", "VIEW", "DICTIONARY"]) {
        return Effects { session: temporary, ..Effects::ANY_TABLE };
    }
    cursor.eat_keywords("IF EXISTS");
    cursor.eat_keywords("IF EMPTY");
    Effects { session: temporary, ..tables(name_list(cursor)) }
}

fn truncate(cursor: &mut Cursor) -> Effects {
    let temporary = cursor.eat_keyword("TEMPORARY");
    if !temporary {
        if cursor.eat_keyword("DATABASE")
            || cursor.eat_keywords("ALL TABLES FROM")
            || cursor.eat_keywords("TABLES FROM")
        {
            return database(cursor);
        }
        if cursor.at_keyword("ALL") || cursor.at_keyword("TABLES") {
            return Effects::ANY_TABLE;
        }
    }
    cursor.eat_keyword("TABLE");
    cursor.eat_keywords("IF EXISTS");
    Effects { session: temporary, ..tables(name_list(cursor)) }
}

/// Returns the effects of a statement that concerns all tables of one database.
fn database(cursor: &mut Cursor) -> Effects {
    cursor.eat_keywords("IF EXISTS");
    cursor.eat_keywords("IF EMPTY");
    let ddl = cursor.identifier().map_or(DdlScope::Anything, DdlScope::Database);
    Effects { ddl, ..Effects::NONE }
}

fn name_list(cursor: &mut Cursor) -> Option<Vec<TableName>> {
    let mut names = vec![cursor.table_name()?];
    while cursor.eat_symbol(b',') {
        names.push(cursor.table_name().filter(|_| names.len() < MAX_TABLES)?);
    }
    Some(names)
}

/// Parses `RENAME TABLE a TO b, c TO d`; both sides of a pair change their meaning.
fn pairs(cursor: &mut Cursor, objects: &[&str], between: &str) -> Effects {
    if is_access_entity(cursor) {
        return Effects::ACCESS;
    }
    if !eat_any(cursor, objects) {
        return Effects::ANY_TABLE;
    }
    cursor.eat_keywords("IF EXISTS");
    tables(pair_list(cursor, between))
}

fn pair_list(cursor: &mut Cursor, between: &str) -> Option<Vec<TableName>> {
    let mut names = Vec::new();
    loop {
        names.push(cursor.table_name().filter(|_| names.len() < MAX_TABLES)?);
        if !cursor.eat_keyword(between) {
            return None;
        }
        names.push(cursor.table_name()?);
        if !cursor.eat_symbol(b',') {
            return Some(names);
        }
    }
}

fn eat_any(cursor: &mut Cursor, keywords: &[&str]) -> bool {
    keywords.iter().any(|keyword| cursor.eat_keyword(keyword))
}

fn is_access_entity(cursor: &mut Cursor) -> bool {
    let entities = ["USER", "ROLE", "ROW POLICY", "POLICY", "QUOTA", "SETTINGS PROFILE", "PROFILE", "MASKING POLICY"];
    entities.iter().any(|entity| cursor.eat_keywords(entity))
}
