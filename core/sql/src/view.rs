//! The table that a materialized view puts its rows into, found in the statement that made the view.

use crate::cursor::Cursor;
use crate::lexer::TokenKind;
use crate::names::TableName;

/// The table that keeps the rows of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewTarget {
    Table(TableName),
    /// A table of the view's own, which ClickHouse made with it.
    Inner,
}

/// Returns the target in a CREATE statement as `system.tables` shows it. `None` where the statement makes no
/// materialized view.
pub fn view_target(create: &str) -> Option<ViewTarget> {
    let mut cursor = Cursor::new(create.as_bytes(), false);
    if !cursor.eat_keywords("CREATE MATERIALIZED VIEW") && !cursor.eat_keywords("ATTACH MATERIALIZED VIEW") {
        return None;
    }
    cursor.eat_keywords("IF NOT EXISTS");
    cursor.table_name()?;
    loop {
        if cursor.eat_keyword("TO") {
            return match cursor.at_keyword("INNER") {
                // `TO INNER UUID '..'`; a table of that name would stand in backquotes, or with its database.
                true if cursor.eat_keywords("INNER UUID") => Some(ViewTarget::Inner),
                _ => cursor.table_name().map(ViewTarget::Table),
            };
        }
        // Before these stand a UUID, a cluster and when it is refreshed, and none of them has such a word.
        let is_behind = cursor.at_symbol(b'(') || ["ENGINE", "AS", "EMPTY"].iter().any(|word| cursor.at_keyword(word));
        if is_behind {
            return Some(ViewTarget::Inner);
        }
        if matches!(cursor.take().kind, TokenKind::End | TokenKind::Error) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_views_target_is_found() {
        let to = |database: Option<&str>, table: &str| {
            let name = TableName { database: database.map(str::to_owned), table: table.to_owned() };
            Some(ViewTarget::Table(name))
        };
        for (create, target) in [
            ("CREATE MATERIALIZED VIEW x.v TO x.dst (`a` UInt64) AS SELECT a FROM x.t", to(Some("x"), "dst")),
            ("CREATE MATERIALIZED VIEW x.v TO `y y`.`d.s\\`t` (`a` UInt64) AS SELECT 1", to(Some("y y"), "d.s`t")),
            ("CREATE MATERIALIZED VIEW v TO dst AS SELECT a FROM t", to(None, "dst")),
            ("CREATE MATERIALIZED VIEW x.`TO` TO x.`(` AS SELECT a FROM x.t", to(Some("x"), "(")),
            ("CREATE MATERIALIZED VIEW x.v UUID 'a' TO x.inner AS SELECT 1", to(Some("x"), "inner")),
            ("CREATE MATERIALIZED VIEW x.v REFRESH EVERY 1 HOUR APPEND TO x.dst AS SELECT 1", to(Some("x"), "dst")),
            (
                "CREATE MATERIALIZED VIEW x.v (`a` UInt64) ENGINE = MergeTree ORDER BY a AS SELECT a FROM x.t",
                Some(ViewTarget::Inner),
            ),
            ("CREATE MATERIALIZED VIEW x.v TO INNER UUID 'b' (`a` UInt64) AS SELECT 1", Some(ViewTarget::Inner)),
            ("CREATE MATERIALIZED VIEW x.v ENGINE = Null AS SELECT a AS `TO` FROM x.t", Some(ViewTarget::Inner)),
            ("CREATE VIEW x.v AS SELECT a FROM x.t", None),
            ("CREATE TABLE x.v (`a` UInt64) ENGINE = Null", None),
            ("CREATE MATERIALIZED VIEW x.v", None),
            ("CREATE MATERIALIZED VIEW x.v TO 'dst'", None),
            ("", None),
        ] {
            assert_eq!(view_target(create), target, "{create}");
        }
    }
}
