//! Recognises `INSERT INTO t (a, b) VALUES (?, ?)`: an insert of bound rows and nothing else, which needs no
//! SQL for each row.

use windrow_sql::{tokens, Dialect, TableName, Token, TokenKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundInsert {
    pub(crate) target: TableName,
    /// The columns that are named. `None`: all columns of the table, in its order.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) parameters: usize,
}

pub(crate) fn bound_insert(dialect: Dialect, text: &str) -> Option<BoundInsert> {
    let mut tokens = tokens(dialect, text);
    tokens.retain(|token| !token.is_symbol(b';'));
    let mut at = Cursor { dialect, text, tokens: &tokens };
    at.word("INSERT").filter(|()| at.word("INTO").is_some())?;
    if dialect == Dialect::ClickHouse {
        at.word("TABLE");
    }
    let first = at.name()?;
    let target = match at.symbol(b'.') {
        Some(()) => TableName { database: Some(first), table: at.name()? },
        None => TableName { database: None, table: first },
    };
    let columns = match at.symbol(b'(') {
        Some(()) => Some(at.list(Cursor::name)?),
        None => None,
    };
    at.word("VALUES")?;
    at.symbol(b'(')?;
    let parameters = at.list(|at| at.symbol(b'?'))?.len();
    let fits = columns.as_ref().is_none_or(|columns| columns.len() == parameters);
    (at.tokens.is_empty() && fits).then_some(BoundInsert { target, columns, parameters })
}

struct Cursor<'t> {
    dialect: Dialect,
    text: &'t str,
    tokens: &'t [Token],
}

impl Cursor<'_> {
    fn take<T>(&mut self, read: impl FnOnce(&Self, &Token) -> Option<T>) -> Option<T> {
        let (first, rest) = self.tokens.split_first()?;
        let taken = read(self, first)?;
        self.tokens = rest;
        Some(taken)
    }

    fn word(&mut self, wanted: &str) -> Option<()> {
        self.take(|at, token| token.is_keyword(at.text, wanted).then_some(()))
    }

    fn symbol(&mut self, wanted: u8) -> Option<()> {
        self.take(|_, token| token.is_symbol(wanted).then_some(()))
    }

    /// Reads a name. A back-quoted name is not accepted, since DuckDB itself refuses it.
    fn name(&mut self) -> Option<String> {
        let is_name = |token: &&Token| token.kind != TokenKind::BackQuotedIdentifier;
        self.take(|at, token| Some(token).filter(is_name)?.name(at.dialect, at.text))
    }

    /// Reads a list up to the closing parenthesis.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.symbol(b',').is_some() {
            items.push(item(self)?);
        }
        self.symbol(b')').map(|()| items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_of_nothing_but_parameters_is_known() {
        let of = |text| bound_insert(Dialect::ClickHouse, text);
        let known = of("insert into d.`t 1` (a, \"b\") values (?, ?);").unwrap();
        assert_eq!((known.target.database.as_deref(), known.target.table.as_str()), (Some("d"), "t 1"));
        assert_eq!((known.columns, known.parameters), (Some(vec!["a".to_owned(), "b".to_owned()]), 2));
        assert_eq!(of("INSERT INTO TABLE t VALUES (?)").unwrap().columns, None);
        assert_eq!(of("INSERT INTO `t\\`` VALUES (?)").unwrap().target.table, "t`");
        assert_eq!(bound_insert(Dialect::DuckDb, "INSERT INTO \"t\"\"\" VALUES (?)").unwrap().target.table, "t\"");
        assert_eq!(bound_insert(Dialect::DuckDb, "INSERT INTO `t` VALUES (?)"), None);
    }

    #[test]
    fn every_other_insert_is_left_alone() {
        for text in [
            "INSERT INTO t (a) VALUES (?, ?)",
            "INSERT INTO t VALUES (?, 1)",
            "INSERT INTO t VALUES (?), (?)",
            "INSERT INTO t VALUES (?) RETURNING a",
            "INSERT INTO t SELECT ?",
            "INSERT OR REPLACE INTO t VALUES (?)",
            "INSERT INTO t (a",
            "SELECT ?",
        ] {
            assert_eq!(bound_insert(Dialect::ClickHouse, text), None, "{text}");
        }
    }
}
