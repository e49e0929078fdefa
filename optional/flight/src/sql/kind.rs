//! The kind of a statement, which decides how its columns are found when it is prepared.

use windrow_sql::{tokens, Dialect, TokenKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A query. Its columns are those of an empty selection from it, which is this statement.
    Selection(String),
    /// A statement that reads little and changes nothing: its columns are found by running it.
    Listing,
    /// A statement that writes, or is not known. It is not run before the client asks for it.
    Other,
}

pub(crate) fn kind(dialect: Dialect, text: &str) -> Kind {
    let tokens = tokens(dialect, text);
    let first = tokens.iter().find(|token| !token.is_symbol(b'('));
    let Some(first) = first.filter(|token| token.kind == TokenKind::Word) else { return Kind::Other };
    match first.text(text).to_ascii_uppercase().as_str() {
        // A WITH may lead to an INSERT, which can't be selected from: then this selection is refused.
        "SELECT" | "WITH" | "VALUES" | "FROM" | "TABLE" => {
            let end = tokens.iter().rev().find(|token| !token.is_symbol(b';')).map_or(0, |token| token.end);
            Kind::Selection(format!("SELECT * FROM ({}\n) LIMIT 0", &text[..end]))
        }
        "SHOW" | "DESCRIBE" | "DESC" | "EXISTS" | "SUMMARIZE" => Kind::Listing,
        "EXPLAIN" if !tokens.iter().any(|token| token.is_keyword(text, "ANALYZE")) => Kind::Listing,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_nothing_is_asked_before() {
        let of = |text| kind(Dialect::DuckDb, text);
        assert_eq!(of(" (select 1) ; -- x"), Kind::Selection("SELECT * FROM ( (select 1)\n) LIMIT 0".into()));
        assert_eq!(of("describe t"), Kind::Listing);
        assert_eq!(of("EXPLAIN SELECT 1"), Kind::Listing);
        for text in ["", ";", "INSERT INTO t VALUES (?)", "explain analyze delete from t", "DROP TABLE t", "'x'", "1"] {
            assert_eq!(of(text), Kind::Other, "{text}");
        }
    }
}
