//! Tokens by DuckDB's lexical rules, and ClickHouse's back-quoted names, which DuckDB has nothing else for.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    /// `"x"`.
    QuotedName,
    /// `` `x` ``.
    BackQuotedName,
    /// `'x'`, `E'x'`, `$$x$$`.
    String,
    Number,
    /// One byte of anything else.
    Symbol(u8),
    /// A quote or a comment that never ends: up to the end of the text.
    Unclosed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token {
    pub(super) fn text<'t>(&self, text: &'t str) -> &'t str {
        &text[self.start..self.end]
    }

    pub(super) fn is_word(&self, text: &str, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text(text).eq_ignore_ascii_case(word)
    }

    pub(super) fn is(&self, symbol: u8) -> bool {
        self.kind == TokenKind::Symbol(symbol)
    }

    /// The name that the token stands for; DuckDB's names are the same in upper and lower case.
    pub(super) fn name(&self, text: &str) -> Option<String> {
        let inner = || &text[self.start + 1..self.end - 1];
        match self.kind {
            TokenKind::Word => Some(self.text(text).to_owned()),
            TokenKind::QuotedName => Some(inner().replace("\"\"", "\"")),
            TokenKind::BackQuotedName => Some(unescape(inner())),
            _ => None,
        }
    }
}

/// What stands in a back-quoted name, as ClickHouse reads it.
fn unescape(inner: &str) -> String {
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

/// The tokens of a text, without blanks and comments.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if let Some(length) = blank(&bytes[at..]) {
            at += length;
            continue;
        }
        let (kind, length) = token(&bytes[at..]);
        tokens.push(Token { kind, start: at, end: at + length });
        at += length;
    }
    tokens
}

/// Length of the blanks or the comment at the start.
fn blank(rest: &[u8]) -> Option<usize> {
    match rest {
        [b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, ..] => Some(1),
        // U+00A0 and the byte order mark.
        [0xC2, 0xA0, ..] => Some(2),
        [0xEF, 0xBB, 0xBF, ..] => Some(3),
        [b'-', b'-', ..] => Some(rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => block_comment(rest),
        _ => None,
    }
}

/// Comments nest. `None`: it never ends.
fn block_comment(rest: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (2, 1u32);
    while let Some(pair) = rest.get(at..at + 2) {
        match pair {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn token(rest: &[u8]) -> (TokenKind, usize) {
    let unclosed = (TokenKind::Unclosed, rest.len());
    let found = |kind, end: Option<usize>| end.map_or(unclosed, |end| (kind, end));
    match rest {
        [b'\'', ..] => found(TokenKind::String, quoted(rest, 0, b'\'', false)),
        [b'e' | b'E', b'\'', ..] => found(TokenKind::String, quoted(rest, 1, b'\'', true)),
        [b'"', ..] => found(TokenKind::QuotedName, quoted(rest, 0, b'"', false)),
        [b'`', ..] => found(TokenKind::BackQuotedName, quoted(rest, 0, b'`', true)),
        [b'$', ..] => match dollar_tag(rest) {
            Some(tag) => found(TokenKind::String, dollar_quoted(rest, tag)),
            None => (TokenKind::Symbol(b'$'), 1),
        },
        [b'/', b'*', ..] => unclosed,
        [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => (TokenKind::Number, number(rest)),
        [first, ..] if begins_word(*first) => {
            (TokenKind::Word, rest.iter().position(|&byte| !continues_word(byte)).unwrap_or(rest.len()))
        }
        [first, ..] => (TokenKind::Symbol(*first), 1),
        [] => unclosed,
    }
}

/// Where a quoted token ends whose opening quote is at `open`. A doubled quote stands for itself.
fn quoted(rest: &[u8], open: usize, quote: u8, backslashes: bool) -> Option<usize> {
    let mut at = open + 1;
    while let Some(&byte) = rest.get(at) {
        if byte == b'\\' && backslashes {
            at += 2;
        } else if byte != quote {
            at += 1;
        } else if rest.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return Some(at + 1);
        }
    }
    None
}

/// Length of `$tag$`.
fn dollar_tag(rest: &[u8]) -> Option<usize> {
    let end = 1 + rest[1..].iter().position(|&byte| !continues_word(byte) || byte == b'$')?;
    let is_tag = rest[end] == b'$' && !rest[1].is_ascii_digit();
    is_tag.then_some(end + 1)
}

fn dollar_quoted(rest: &[u8], tag: usize) -> Option<usize> {
    let body = &rest[tag..];
    let end = body.windows(tag).position(|window| window == &rest[..tag])?;
    Some(tag + end + tag)
}

/// Digits with whatever may belong to them; where exactly it ends is DuckDB's business.
fn number(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        let signed_exponent = matches!(byte, b'+' | b'-') && at > 0 && matches!(rest[at - 1], b'e' | b'E');
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || signed_exponent) {
            break;
        }
        at += 1;
    }
    at
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| token.text(text)).collect()
    }

    #[test]
    fn strings_and_comments_are_duckdbs() {
        assert_eq!(split(r"select '\' , 'a''b' -- 'x"), ["select", r"'\'", ",", "'a''b'"]);
        assert_eq!(split(r"E'a\'b' $$a'b$$ $t$ $$ $t$ $1"), [r"E'a\'b'", "$$a'b$$", "$t$ $$ $t$", "$", "1"]);
        assert_eq!(
            split("1.5e-3+a /* x /* y */ z */ \"a\"\"b\" `c\\`d`"),
            ["1.5e-3", "+", "a", "\"a\"\"b\"", "`c\\`d`"]
        );
    }

    #[test]
    fn what_never_ends_is_one_token() {
        for text in ["'abc", "\"x", "`x", "/* x", "$$ x", "E'\\'"] {
            let tokens = tokens(text);
            assert_eq!((tokens.len(), tokens[0].kind), (1, TokenKind::Unclosed), "{text}");
        }
    }

    #[test]
    fn names_are_unquoted() {
        let name = |text: &str| tokens(text)[0].name(text);
        assert_eq!(name("\"a\"\"b\"").as_deref(), Some("a\"b"));
        assert_eq!(name("`a\\`b``c`").as_deref(), Some("a`b`c"));
        assert_eq!(name("'a'"), None);
    }
}
