//! Finds statements that take rows away such that they may be inserted again: rows of a table, of a
//! partition, or by putting another table under its name. ClickHouse forgets then which inserts it has seen.
//! (Mutations are not among them: they make ClickHouse forget nothing.)

use crate::cursor::Cursor;
use crate::lexer::TokenKind;

/// The first words of statements that put whole tables under other names.
const WHOLE: [&str; 3] = ["RENAME", "EXCHANGE", "REPLACE"];

/// Says whether a statement other than an INSERT takes rows away.
pub fn removes_rows(text: &[u8]) -> bool {
    let mut cursor = Cursor::new(text, false);
    // Nobody inserts into temporary tables through here.
    if cursor.eat_keyword("TRUNCATE") || cursor.eat_keywords("CREATE OR REPLACE") {
        return !cursor.at_keyword("TEMPORARY");
    }
    if cursor.eat_keyword("DROP") {
        return ["TABLE", "VIEW", "DATABASE", "SCHEMA"].iter().any(|word| cursor.at_keyword(word));
    }
    if WHOLE.iter().any(|word| cursor.at_keyword(word)) {
        return true;
    }
    cursor.eat_keyword("ALTER") && drops_partition(&mut cursor)
}

fn drops_partition(cursor: &mut Cursor) -> bool {
    loop {
        let drops = cursor.eat_keyword("DROP") || cursor.eat_keyword("DETACH") || cursor.eat_keyword("MOVE");
        if drops && (cursor.at_keyword("PARTITION") || cursor.at_keyword("PART")) {
            return true;
        }
        if !drops && matches!(cursor.take().kind, TokenKind::End | TokenKind::Error) {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_with_tables_and_partitions() {
        for text in [
            "TRUNCATE TABLE t",
            "drop table if exists t",
            "DROP DATABASE IF EXISTS d",
            "TRUNCATE ALL TABLES FROM d",
            "RENAME TABLE a TO b",
            "EXCHANGE TABLES a AND b",
            "CREATE OR REPLACE TABLE t (a UInt8) ENGINE = Null",
            "ALTER TABLE t DROP PARTITION 1",
            "ALTER TABLE t ADD COLUMN b UInt8, DETACH PART 'all_1_1_0'",
            "ALTER TABLE t MOVE PARTITION 1 TO TABLE u",
        ] {
            assert!(removes_rows(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn other_statements_leave_them() {
        for text in [
            "CREATE TABLE IF NOT EXISTS t (a UInt8) ENGINE = Null",
            "ALTER TABLE t DROP COLUMN partition",
            "ALTER TABLE t DELETE WHERE 1",
            "ALTER TABLE t DROP INDEX i, ADD COLUMN a UInt8",
            "SELECT 'DROP PARTITION'",
            "OPTIMIZE TABLE t",
            "DROP TEMPORARY TABLE IF EXISTS t",
            "TRUNCATE TEMPORARY TABLE t",
            "DROP FUNCTION IF EXISTS f",
            "DROP INDEX i ON t",
            "DROP USER u",
            "ALTER TABLE t DROP",
            "",
        ] {
            assert!(!removes_rows(text.as_bytes()), "{text}");
        }
    }
}
