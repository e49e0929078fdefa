//! Tokens of a statement: one kind of token, by the lexical rules of two databases.
//!
//! A backslash means nothing in DuckDB's `'x'`, comments begin with `--` and `/*` only there, and `$tag$` quotes in
//! either, each with its own rules of what a tag is.

mod clickhouse;
mod duckdb;

pub(crate) use clickhouse::Lexer;
pub use duckdb::next_duckdb_token;

use crate::literal;
use crate::quote::Dialect;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A bare identifier or keyword.
    Word,
    /// A quoted name: `"x"`, in ClickHouse also `` `x` `` and `“x”`.
    QuotedIdentifier,
    /// `` `x` `` where DuckDB's rules hold, which has no such names: ClickHouse's spelling.
    BackQuotedIdentifier,
    /// `'x'`; in ClickHouse also `x'2A'`, `b'01'` and `‘x’`, in DuckDB `E'x'` and `$$x$$`.
    String,
    /// ClickHouse's `$tag$x$tag$`.
    HereDoc,
    /// DuckDB's `U&"x"` and `U&'x'`: a name or a text whose characters may be written as numbers.
    UnicodeEscaped,
    Number,
    /// One of `( ) [ ] { } , ; . = :`, or another operator. ClickHouse's are named by their first byte (`==` is `=`),
    /// DuckDB's are tokens of one byte each.
    Symbol(u8),
    /// A byte that begins no token, or a quote or comment that never ends.
    Error,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub fn text<'t>(&self, text: &'t str) -> &'t str {
        &text[self.start..self.end]
    }

    pub fn bytes<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.start..self.end]
    }

    pub fn is_symbol(&self, symbol: u8) -> bool {
        self.kind == TokenKind::Symbol(symbol)
    }

    pub fn is_keyword(&self, text: impl AsRef<[u8]>, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.bytes(text.as_ref()).eq_ignore_ascii_case(keyword.as_bytes())
    }

    pub fn is_identifier(&self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::QuotedIdentifier)
    }

    /// Returns the name that the token stands for; `None` if the token is no name, empty, or not UTF-8.
    pub fn name(&self, dialect: Dialect, text: impl AsRef<[u8]>) -> Option<String> {
        let bytes = self.bytes(text.as_ref());
        let name = match (self.kind, dialect) {
            (TokenKind::Word, _) => bytes.to_vec(),
            (TokenKind::QuotedIdentifier, Dialect::DuckDb) => {
                return Some(std::str::from_utf8(&bytes[1..bytes.len() - 1]).ok()?.replace("\"\"", "\""))
            }
            (TokenKind::QuotedIdentifier, Dialect::ClickHouse) => literal::unquote(bytes)?,
            // Whatever stands there is a name, since what stayed as it is would be something else for DuckDB.
            (TokenKind::BackQuotedIdentifier, _) => {
                return Some(back_quoted(std::str::from_utf8(&bytes[1..bytes.len() - 1]).ok()?))
            }
            _ => return None,
        };
        String::from_utf8(name).ok().filter(|name| !name.is_empty())
    }

    /// Says whether bytes appended to the text could make this another token.
    pub(crate) fn may_grow(&self, text: &[u8]) -> bool {
        let left = text.len() - self.start;
        let touches_end = self.end == text.len();
        match self.kind {
            TokenKind::End => true,
            TokenKind::Symbol(b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b';') => false,
            // A dollar sign becomes a heredoc when its closing tag comes, however late.
            TokenKind::Word | TokenKind::Symbol(b'$') if text[self.start] == b'$' => true,
            // `x'` needs a third byte to become a string.
            TokenKind::Word => touches_end || (left == 2 && matches!(text[self.start], b'x' | b'X' | b'b' | b'B')),
            // The first bytes of a blank or a quote that takes three.
            TokenKind::Error => touches_end || left < 3,
            _ => touches_end,
        }
    }
}

/// Returns the tokens of a text, without blanks and comments.
pub fn tokens(dialect: Dialect, text: &str) -> Vec<Token> {
    match dialect {
        Dialect::ClickHouse => Lexer::new(text.as_bytes()).collect(),
        Dialect::DuckDb => {
            std::iter::successors(next_duckdb_token(text, 0), |token| next_duckdb_token(text, token.end)).collect()
        }
    }
}

/// Returns the length of the comment at the start; comments nest. `None` if it never ends.
fn block_comment_len(rest: &[u8]) -> Option<usize> {
    let (mut position, mut depth) = (2, 1u32);
    while let Some(pair) = rest.get(position..position + 2) {
        match pair {
            b"/*" => (position, depth) = (position + 2, depth + 1),
            b"*/" => (position, depth) = (position + 2, depth - 1),
            _ => position += 1,
        }
        if depth == 0 {
            return Some(position);
        }
    }
    None
}

/// Returns the name that a back-quoted token stands for.
fn back_quoted(inner: &str) -> String {
    let mut name = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        // The lexer lets a quote through only behind a backslash or another one.
        if matches!(character, '\\' | '`') {
            name.extend(characters.next());
        } else {
            name.push(character);
        }
    }
    name
}
