//! `SYSTEM FLUSH ASYNC INSERT QUEUE [[db.]table, ..]`: the one SYSTEM statement that the gateway answers itself.

use crate::cursor::Cursor;
use crate::lexer::TokenKind;
use crate::names::TableName;

/// Returns the tables named, or `None` if the text is another statement (also with ON CLUSTER: the other
/// servers' queues are theirs). The cursor moves only if the text is this statement.
pub(crate) fn flush_async_insert_queue(cursor: &mut Cursor) -> Option<Vec<TableName>> {
    let before = cursor.clone();
    if cursor.eat_keywords("SYSTEM FLUSH ASYNC INSERT QUEUE") {
        if let Some(tables) = tables(cursor) {
            return Some(tables);
        }
    }
    let starved = cursor.is_starved();
    *cursor = before;
    if starved {
        cursor.starve();
    }
    None
}

fn tables(cursor: &mut Cursor) -> Option<Vec<TableName>> {
    let mut tables = Vec::new();
    if !is_end(cursor) {
        if cursor.at_keyword("ON") {
            return None;
        }
        tables.push(cursor.table_name()?);
        while cursor.eat_symbol(b',') {
            tables.push(cursor.table_name()?);
        }
    }
    while cursor.eat_symbol(b';') {}
    is_end(cursor).then_some(tables)
}

fn is_end(cursor: &mut Cursor) -> bool {
    matches!(cursor.peek().kind, TokenKind::End) || cursor.at_symbol(b';')
}
