//! The places of parameters in a statement: `?`, and in DuckDB also `$1`.

use windrow_sql::{tokens, Dialect, Token, TokenKind};

/// The most parameters. No database accepts more.
const MAX_MARKS: usize = 65_535;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The places in the order of the text.
    pub(crate) places: Vec<Mark>,
    /// Count of parameters: `$1` may stand in several places.
    pub(crate) parameters: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Number of the parameter, from 0 on.
    pub(crate) parameter: usize,
}

pub(crate) fn marks(dialect: Dialect, text: &str) -> Marks {
    let mut tokens = tokens(dialect, text).into_iter().peekable();
    let mut found = Marks { places: Vec::new(), parameters: 0 };
    while let Some(token) = tokens.next() {
        let numbered = |next: Option<&Token>| {
            let next = next.filter(|next| next.start == token.end && next.kind == TokenKind::Number)?;
            let number = next.text(text).parse().ok().filter(|number| (1..=MAX_MARKS).contains(number));
            number.filter(|_| dialect == Dialect::DuckDb)
        };
        let number = match token.kind {
            TokenKind::Symbol(b'$') => numbered(tokens.peek()),
            TokenKind::Symbol(b'?') => numbered(tokens.peek()).or(Some(found.places.len() + 1)),
            _ => None,
        };
        let Some(number) = number.filter(|_| found.places.len() < MAX_MARKS) else { continue };
        let end = match numbered(tokens.peek()) {
            Some(_) => tokens.next().map_or(token.end, |next| next.end),
            None => token.end,
        };
        found.places.push(Mark { start: token.start, end, parameter: number - 1 });
        found.parameters = found.parameters.max(number);
    }
    found
}

impl Marks {
    /// Returns the statement with every parameter replaced by the text that `written` gives.
    pub(crate) fn replaced(&self, text: &str, mut written: impl FnMut(usize) -> String) -> String {
        let mut replaced = String::with_capacity(text.len() + 8 * self.places.len());
        let mut from = 0;
        for mark in &self.places {
            replaced.push_str(&text[from..mark.start]);
            replaced.push_str(&written(mark.parameter));
            from = mark.end;
        }
        replaced.push_str(&text[from..]);
        replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_and_replaced() {
        let text = "SELECT ?, '?', ? -- ?";
        let found = marks(Dialect::ClickHouse, text);
        assert_eq!(found.parameters, 2);
        assert_eq!(found.replaced(text, |parameter| format!("<{parameter}>")), "SELECT <0>, '?', <1> -- ?");
        let text = "SELECT $2, $1, ?2, $tag$ ? $tag$";
        let found = marks(Dialect::DuckDb, text);
        assert_eq!(found.parameters, 2);
        assert_eq!(found.replaced(text, |parameter| format!("<{parameter}>")), "SELECT <1>, <0>, <1>, $tag$ ? $tag$");
    }
}
