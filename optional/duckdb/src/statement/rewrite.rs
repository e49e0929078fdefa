//! Rewrites the spellings of ClickHouse that DuckDB would not read: `` `names` ``, `{parameters:Type}`, the
//! databases `default` and `system`.

use windrow_sql::{Dialect, Token, TokenKind};

use super::asked::{Parameter, RequestError};

/// Returns the text from the first to the last token, rewritten.
pub(super) fn rewrite(
    text: &str,
    tokens: &[Token],
    default_schema: &str,
    system_table: &dyn Fn(&str) -> Option<String>,
    parameter: &dyn Fn(&str, &str) -> Parameter,
) -> Result<String, RequestError> {
    let Some(first) = tokens.first() else { return Ok(String::new()) };
    let (mut out, mut copied, mut at) = (String::with_capacity(text.len()), first.start, 0);
    while at < tokens.len() {
        let replaced = match tokens[at].kind {
            TokenKind::Symbol(b'{') => substitution(text, tokens, at, parameter)?,
            TokenKind::Word | TokenKind::QuotedIdentifier | TokenKind::BackQuotedIdentifier => {
                database(text, tokens, at, default_schema, system_table).or_else(|| back_quoted(text, tokens, at))
            }
            _ => None,
        };
        match replaced {
            Some(Replaced { by, tokens: count }) => {
                out.push_str(&text[copied..tokens[at].start]);
                out.push_str(&by);
                at += count;
                copied = tokens[at - 1].end;
            }
            None => at += 1,
        }
    }
    out.push_str(&text[copied..tokens[tokens.len() - 1].end]);
    Ok(out)
}

struct Replaced {
    by: String,
    /// The number of tokens that `by` replaces.
    tokens: usize,
}

fn back_quoted(text: &str, tokens: &[Token], at: usize) -> Option<Replaced> {
    let name = tokens[at].name(Dialect::DuckDb, text).filter(|_| tokens[at].kind == TokenKind::BackQuotedIdentifier)?;
    Some(Replaced { by: Dialect::DuckDb.name(&name), tokens: 1 })
}

/// Says whether the name stands before a dot, and behind none.
fn is_qualifier(tokens: &[Token], at: usize) -> bool {
    let behind_dot = at > 0 && tokens[at - 1].is_symbol(b'.');
    let before_name = tokens.get(at + 2).is_some_and(|token| {
        matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier | TokenKind::BackQuotedIdentifier)
    });
    !behind_dot && tokens.get(at + 1).is_some_and(|token| token.is_symbol(b'.')) && before_name
}

/// Replaces the databases of ClickHouse: `default.t` becomes `main.t`, or `t` where `default_schema` is
/// empty; the gateway names the replacement of `system.x`.
fn database(
    text: &str,
    tokens: &[Token],
    at: usize,
    default_schema: &str,
    system_table: &dyn Fn(&str) -> Option<String>,
) -> Option<Replaced> {
    if !is_qualifier(tokens, at) {
        return None;
    }
    let name = tokens[at].name(Dialect::DuckDb, text)?;
    if name.eq_ignore_ascii_case("default") {
        let tokens = if default_schema.is_empty() { 2 } else { 1 };
        return Some(Replaced { by: default_schema.to_owned(), tokens });
    }
    let is_dot = |at: usize| tokens.get(at).is_some_and(|token| token.is_symbol(b'.'));
    // `system.one.dummy` is a column; `system.main.x.y` is DuckDB's own.
    let is_table = !is_dot(at + 3) || !is_dot(at + 5);
    let by = system_table(&tokens[at + 2].name(Dialect::DuckDb, text)?)
        .filter(|_| name.eq_ignore_ascii_case("system") && is_table)?;
    Some(Replaced { by, tokens: 3 })
}

/// Replaces a parameter `{name:Type}`. Where the type is none of ClickHouse's, the text may be a STRUCT of
/// DuckDB's, and stays.
fn substitution(
    text: &str,
    tokens: &[Token],
    at: usize,
    parameter: &dyn Fn(&str, &str) -> Parameter,
) -> Result<Option<Replaced>, RequestError> {
    let [open, name, colon, rest @ ..] = &tokens[at..] else { return Ok(None) };
    let is_one = open.is_symbol(b'{') && name.kind == TokenKind::Word && colon.is_symbol(b':');
    let Some(length) = rest.iter().position(|token| token.is_symbol(b'}')).filter(|length| is_one && *length > 0)
    else {
        return Ok(None);
    };
    let (name, data_type) = (name.text(text), &text[rest[0].start..rest[length - 1].end]);
    match parameter(name, data_type) {
        Parameter::Literal(by) => Ok(Some(Replaced { by, tokens: length + 4 })),
        Parameter::Missing => Err(RequestError::NotSet(name.to_owned())),
        Parameter::Wrong(cause) => Err(RequestError::Wrong { name: name.to_owned(), cause }),
        Parameter::NotOne => Ok(None),
    }
}
