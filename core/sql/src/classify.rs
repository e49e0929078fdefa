//! The question that the gateway asks first: what kind of statement is this text?

use crate::cursor::Cursor;
use crate::insert::{self, InsertForm, InsertStatement};
use crate::lexer::TokenKind;
use crate::names::TableName;
use crate::other::{self, OtherStatement};
use crate::system;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// An INSERT whose data stands in the text, or follows it: it may be gathered.
    Insert(InsertStatement),
    /// `SYSTEM FLUSH ASYNC INSERT QUEUE [tables]`; no tables means all.
    SystemFlushAsyncInsertQueue { tables: Vec<TableName> },
    /// Any other statement; the backend answers it.
    Other(OtherStatement),
    /// A text that ends before its kind can be told: nothing but blanks, an open comment, an INSERT that has
    /// not come to its data.
    Incomplete,
}

/// Classifies a whole text: a statement, after an INSERT also its data. The data is not looked at.
pub fn classify(text: &[u8]) -> Statement {
    classify_with(Cursor::new(text, false))
}

/// Classifies the beginning of a text. An answer other than `Incomplete` is final: no continuation of the text can
/// change it. DDL is always `Incomplete` here, since the tables it names may stand at its end.
pub fn classify_prefix(text: &[u8]) -> Statement {
    classify_with(Cursor::new(text, true))
}

fn classify_with(mut cursor: Cursor) -> Statement {
    let first = cursor.peek();
    let nothing_there = first.kind == TokenKind::End
        || (first.kind == TokenKind::Error && cursor.text()[first.start..].starts_with(b"/*"));
    if nothing_there {
        return Statement::Incomplete;
    }
    let statement = if cursor.eat_keyword("INSERT") {
        classify_insert(&mut cursor)
    } else if let Some(tables) = system::flush_async_insert_queue(&mut cursor) {
        Statement::SystemFlushAsyncInsertQueue { tables }
    } else {
        Statement::Other(other::parse(&mut cursor))
    };
    if cursor.is_starved() {
        return Statement::Incomplete;
    }
    statement
}

fn classify_insert(cursor: &mut Cursor) -> Statement {
    match insert::parse(cursor) {
        Ok(insert) => Statement::Insert(insert),
        Err(InsertForm::Unusual) if cursor.has_ended() => Statement::Incomplete,
        Err(form) => Statement::Other(OtherStatement::insert(form)),
    }
}
