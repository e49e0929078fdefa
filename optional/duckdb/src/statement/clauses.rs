//! ClickHouse's clauses at the end of a statement: `FORMAT x` and `SETTINGS a = 1, b = 'x'`, in either order.

use windrow_sql::{Dialect, Token, TokenKind};

#[derive(Debug, Default)]
pub(super) struct Clauses {
    pub(super) format: Option<String>,
    pub(super) settings: Vec<(String, String)>,
}

/// Takes the clauses off the end of `tokens`.
pub(super) fn take(text: &str, tokens: &mut Vec<Token>) -> Clauses {
    let mut clauses = Clauses::default();
    loop {
        if clauses.format.is_none() {
            if let Some(name) = format_at_end(text, tokens) {
                clauses.format = Some(name);
                tokens.truncate(tokens.len() - 2);
                continue;
            }
        }
        if clauses.settings.is_empty() {
            if let Some(found) = settings_at_end(text, tokens) {
                clauses.settings = found.settings;
                tokens.truncate(found.start);
                continue;
            }
        }
        return clauses;
    }
}

fn format_at_end(text: &str, tokens: &[Token]) -> Option<String> {
    let [before @ .., keyword, name] = tokens else { return None };
    // DuckDB's own COPY ends like this too.
    let is_copy = before.first().is_some_and(|token| token.is_keyword(text, "COPY"));
    let is_clause =
        keyword.is_keyword(text, "FORMAT") && name.kind == TokenKind::Word && !before.is_empty() && !is_copy;
    is_clause.then(|| name.text(text).to_owned())
}

struct Found {
    settings: Vec<(String, String)>,
    /// The index of the token that the clause begins with.
    start: usize,
}

fn settings_at_end(text: &str, tokens: &[Token]) -> Option<Found> {
    let start = tokens.iter().rposition(|token| token.is_keyword(text, "SETTINGS")).filter(|start| *start > 0)?;
    let mut settings = Vec::new();
    let mut rest = &tokens[start + 1..];
    loop {
        let (name, behind) = match rest {
            [name, equals, behind @ ..] if equals.is_symbol(b'=') => (name.name(Dialect::DuckDb, text)?, behind),
            _ => return None,
        };
        let (value, behind) = value(text, behind)?;
        settings.push((name, value));
        match behind {
            [] => return Some(Found { settings, start }),
            [comma, behind @ ..] if comma.is_symbol(b',') => rest = behind,
            _ => return None,
        }
    }
}

fn value<'t>(text: &str, tokens: &'t [Token]) -> Option<(String, &'t [Token])> {
    let (first, behind) = tokens.split_first()?;
    match first.kind {
        TokenKind::Number | TokenKind::Word => Some((first.text(text).to_owned(), behind)),
        TokenKind::Symbol(b'-') => {
            let (number, behind) = behind.split_first().filter(|(token, _)| token.kind == TokenKind::Number)?;
            Some((format!("-{}", number.text(text)), behind))
        }
        TokenKind::String => {
            let inner = first.text(text).strip_prefix('\'')?.strip_suffix('\'')?;
            Some((inner.replace("''", "'"), behind))
        }
        _ => None,
    }
}
