//! `INSERT INTO t (a, b) VALUES (?, ?)`: an insert of bound rows and nothing else, which needs no SQL for each row.

use super::scan::{Piece, Scanner, Token};
use super::Dialect;
use crate::store::Target;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundInsert {
    pub(crate) target: Target,
    /// `None`: all columns of the table, in its order.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) parameters: usize,
}

pub(crate) fn bound_insert(dialect: Dialect, text: &str) -> Option<BoundInsert> {
    let tokens: Vec<_> = Scanner::new(dialect, text).filter(|token| token.piece != Piece::Symbol(';')).collect();
    let mut at = Cursor { tokens: &tokens, dialect };
    at.word("INSERT").filter(|()| at.word("INTO").is_some())?;
    if dialect == Dialect::ClickHouse {
        at.word("TABLE");
    }
    let first = at.name()?;
    let target = match at.symbol('.') {
        Some(()) => Target { database: Some(first), table: at.name()? },
        None => Target { database: None, table: first },
    };
    let columns = match at.symbol('(') {
        Some(()) => Some(at.list(Cursor::name)?),
        None => None,
    };
    at.word("VALUES")?;
    at.symbol('(')?;
    let parameters = at.list(|at| at.symbol('?'))?.len();
    let fits = columns.as_ref().is_none_or(|columns| columns.len() == parameters);
    (at.tokens.is_empty() && fits).then_some(BoundInsert { target, columns, parameters })
}

struct Cursor<'t> {
    tokens: &'t [Token<'t>],
    dialect: Dialect,
}

impl Cursor<'_> {
    fn take<T>(&mut self, read: impl FnOnce(Piece) -> Option<T>) -> Option<T> {
        let (first, rest) = self.tokens.split_first()?;
        let taken = read(first.piece)?;
        self.tokens = rest;
        Some(taken)
    }

    fn word(&mut self, wanted: &str) -> Option<()> {
        self.take(|piece| matches!(piece, Piece::Word(word) if word.eq_ignore_ascii_case(wanted)).then_some(()))
    }

    fn symbol(&mut self, wanted: char) -> Option<()> {
        self.take(|piece| (piece == Piece::Symbol(wanted)).then_some(()))
    }

    /// Names with escapes in them are left to the database.
    fn name(&mut self) -> Option<String> {
        let dialect = self.dialect;
        self.take(|piece| match piece {
            Piece::Word(word) if !word.starts_with(|c: char| c.is_ascii_digit()) => Some(word.to_owned()),
            Piece::Quoted(quoted) if quoted.len() > 2 => {
                let inner = &quoted[1..quoted.len() - 1];
                let has_escapes =
                    inner.contains(['"', '`']) || (dialect == Dialect::ClickHouse && inner.contains('\\'));
                (!has_escapes).then(|| inner.to_owned())
            }
            _ => None,
        })
    }

    /// Up to the closing parenthesis.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.symbol(',').is_some() {
            items.push(item(self)?);
        }
        self.symbol(')').map(|()| items)
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
    }

    #[test]
    fn every_other_insert_is_left_alone() {
        for text in [
            "INSERT INTO t (a) VALUES (?, ?)",
            "INSERT INTO t VALUES (?, 1)",
            "INSERT INTO t VALUES (?), (?)",
            "INSERT INTO t VALUES (?) RETURNING a",
            "INSERT INTO t SELECT ?",
            "INSERT INTO `t\\`` VALUES (?)",
            "INSERT OR REPLACE INTO t VALUES (?)",
            "INSERT INTO t (a",
            "SELECT ?",
        ] {
            assert_eq!(bound_insert(Dialect::ClickHouse, text), None, "{text}");
        }
    }
}
