//! Finds statements that do nothing but read, so that running one twice is the same as running it once.

use crate::cursor::Cursor;
use crate::lexer::TokenKind;
use crate::other::{leading, Leading};

/// Says whether a whole statement certainly does nothing but read.
pub fn only_reads(text: &[u8]) -> bool {
    let mut cursor = Cursor::new(text, false);
    match leading(&mut cursor) {
        Leading::Select | Leading::From | Leading::Show | Leading::Describe | Leading::Explain | Leading::Exists => {
            true
        }
        // An INSERT may stand behind it.
        Leading::With => !has_insert(&mut cursor),
        _ => false,
    }
}

fn has_insert(cursor: &mut Cursor) -> bool {
    loop {
        if cursor.at_keyword("INSERT") {
            return true;
        }
        match cursor.take().kind {
            TokenKind::End => return false,
            TokenKind::Error => return true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_read() {
        for text in [
            "SELECT 1",
            "(select 1) UNION ALL (SELECT 2)",
            "/* INSERT */ WITH x AS (SELECT 1) SELECT * FROM x",
            "FROM t SELECT a",
            "SHOW TABLES",
            "DESC t",
            "EXPLAIN SELECT 1",
            "EXISTS TABLE t",
        ] {
            assert!(only_reads(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn nothing_else_does() {
        for text in [
            "",
            "INSERT INTO t SELECT 1",
            "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
            "WITH 'SELECT",
            "SYSTEM FLUSH LOGS",
            "CREATE TABLE t AS SELECT 1",
            "SET a = 1",
            "KILL QUERY WHERE 1",
            "CHECK TABLE t",
            "WATCH t",
            "EXECUTE AS ann SELECT 1",
            "something",
        ] {
            assert!(!only_reads(text.as_bytes()), "{text}");
        }
    }
}
