//! Tokens by DuckDB's lexical rules, and ClickHouse's back-quoted names: DuckDB has no other use for
//! back-quotes.

use super::{block_comment_len, Token, TokenKind};

/// Returns the first token at or behind the offset `at`.
pub fn next_duckdb_token(text: &str, mut at: usize) -> Option<Token> {
    let bytes = text.as_bytes();
    while let Some(length) = blank(&bytes[at..]) {
        at += length;
    }
    let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
    let (kind, length) = token(rest);
    Some(Token { kind, start: at, end: at + length })
}

/// Returns the length of the blank or the comment at the start.
fn blank(rest: &[u8]) -> Option<usize> {
    match rest {
        [b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, ..] => Some(1),
        [b'-', b'-', ..] => Some(rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len())),
        [b'/', b'*', ..] => block_comment_len(rest),
        _ => wide_space(rest),
    }
}

/// Returns the length of a space beyond ASCII. DuckDB knows U+00A0, U+2000 to U+200B, U+202F, U+205F, U+2060,
/// U+3000 and U+FEFF; others are parts of names.
fn wide_space(rest: &[u8]) -> Option<usize> {
    match rest {
        [0xC2, 0xA0, ..] => Some(2),
        [0xE2, 0x80, 0x80..=0x8B | 0xAF, ..]
        | [0xE2, 0x81, 0x9F | 0xA0, ..]
        | [0xE3, 0x80, 0x80, ..]
        | [0xEF, 0xBB, 0xBF, ..] => Some(3),
        _ => None,
    }
}

fn token(rest: &[u8]) -> (TokenKind, usize) {
    let unclosed = (TokenKind::Error, rest.len());
    let found = |kind, end: Option<usize>| end.map_or(unclosed, |end| (kind, end));
    match rest {
        [b'\'', ..] => found(TokenKind::String, quoted(rest, 0, b'\'', false)),
        [b'e' | b'E', b'\'', ..] => found(TokenKind::String, quoted(rest, 1, b'\'', true)),
        [b'"', ..] => found(TokenKind::QuotedIdentifier, quoted(rest, 0, b'"', false)),
        [b'u' | b'U', b'&', quote @ (b'"' | b'\''), ..] => {
            found(TokenKind::UnicodeEscaped, quoted(rest, 2, *quote, false))
        }
        [b'`', ..] => found(TokenKind::BackQuotedIdentifier, quoted(rest, 0, b'`', true)),
        [b'$', ..] => match dollar_tag(rest) {
            Some(tag) => found(TokenKind::String, dollar_quoted(rest, tag)),
            None => (TokenKind::Symbol(b'$'), 1),
        },
        [b'/', b'*', ..] => unclosed,
        [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => (TokenKind::Number, number(rest)),
        [first, ..] if begins_word(*first) => (TokenKind::Word, word(rest)),
        [first, ..] => (TokenKind::Symbol(*first), 1),
        [] => unclosed,
    }
}

/// Returns the length of a word. A wide space ends the word.
fn word(rest: &[u8]) -> usize {
    let ends = |at: &usize| !continues_word(rest[*at]) || wide_space(&rest[*at..]).is_some();
    (0..rest.len()).find(ends).unwrap_or(rest.len())
}

/// Returns the end of a quoted token whose opening quote is at `open`. A doubled quote stands for itself.
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

/// Returns the length of `$tag$`.
fn dollar_tag(rest: &[u8]) -> Option<usize> {
    let end = 1 + rest[1..].iter().position(|&byte| !continues_word(byte) || byte == b'$')?;
    let has_space = (1..end).any(|at| wide_space(&rest[at..]).is_some());
    let is_tag = rest[end] == b'$' && !rest[1].is_ascii_digit() && !has_space;
    is_tag.then_some(end + 1)
}

fn dollar_quoted(rest: &[u8], tag: usize) -> Option<usize> {
    let body = &rest[tag..];
    let end = body.windows(tag).position(|window| window == &rest[..tag])?;
    Some(tag + end + tag)
}

/// Returns the length of a number. A number ends where it can't go on: in `1e$$` it is `1`, and the rest is a
/// name.
fn number(rest: &[u8]) -> usize {
    if let [b'0', b'x' | b'X', digit, ..] = rest {
        if digit.is_ascii_hexdigit() {
            return 2 + digits(&rest[2..], u8::is_ascii_hexdigit);
        }
    }
    let mut at = digits(rest, u8::is_ascii_digit);
    if rest.get(at) == Some(&b'.') {
        at += 1 + digits(&rest[at + 1..], u8::is_ascii_digit);
    }
    let exponent = match &rest[at..] {
        [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] => 2,
        [b'e' | b'E', b'0'..=b'9', ..] => 1,
        _ => return at,
    };
    at + exponent + digits(&rest[at + exponent..], u8::is_ascii_digit)
}

/// Returns the length of digits with single underscores between them.
fn digits(rest: &[u8], is_digit: impl Fn(&u8) -> bool) -> usize {
    let belongs = |at: &usize| {
        let between = || *at > 0 && rest[*at] == b'_' && rest.get(at + 1).is_some_and(&is_digit);
        is_digit(&rest[*at]) || between()
    };
    (0..rest.len()).find(|at| !belongs(at)).unwrap_or(rest.len())
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::super::tokens as tokens_of;
    use super::*;
    use crate::quote::Dialect;

    fn tokens(text: &str) -> Vec<Token> {
        tokens_of(Dialect::DuckDb, text)
    }

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
            assert_eq!((tokens.len(), tokens[0].kind), (1, TokenKind::Error), "{text}");
        }
    }

    #[test]
    fn unicode_escapes_are_one_token() {
        let kinds = |text: &str| tokens(text).iter().map(|token| token.kind).collect::<Vec<_>>();
        for text in ["u&\"a\"\"b\"", "U&'a''b;'", "U&'\\'"] {
            assert_eq!(kinds(text), [TokenKind::UnicodeEscaped], "{text}");
        }
        assert_eq!(split("1u&\"a\""), ["1", "u&\"a\""]);
        assert_eq!(kinds("U&\"a"), [TokenKind::Error]);
        for text in ["u & \"a\"", "u& \"a\"", "uu&\"a\"", "\"u\"&'a'"] {
            assert!(!kinds(text).contains(&TokenKind::UnicodeEscaped), "{text}");
        }
    }

    #[test]
    fn tokens_end_where_duckdbs_end() {
        assert_eq!(split("1 -- x\r, 2 -- y\n, 3"), ["1", ",", "2", ",", "3"]);
        assert_eq!(
            split("a\u{a0}b\u{2003}c\u{200b}d\u{202f}e\u{205f}f\u{2060}g\u{3000}h\u{feff}"),
            ["a", "b", "c", "d", "e", "f", "g", "h"]
        );
        assert_eq!(split("a\u{2028}b\u{200c}c\u{85}d"), ["a\u{2028}b\u{200c}c\u{85}d"]);
        assert_eq!(
            split("1e$$; 2$$; $$ 1_000.5e+10x 0xFFg 1_a 12.windrow"),
            ["1", "e$$", ";", "2", "$$; $$", "1_000.5e+10", "x", "0xFF", "g", "1", "_a", "12.", "windrow"]
        );
        assert_eq!(split("$\u{a0}$")[0], "$");
    }

    #[test]
    fn names_are_unquoted() {
        let name = |text: &str| tokens(text)[0].name(Dialect::DuckDb, text);
        assert_eq!(name("\"a\"\"b\"").as_deref(), Some("a\"b"));
        assert_eq!(name("`a\\`b``c`").as_deref(), Some("a`b`c"));
        assert_eq!(name("'a'"), None);
    }
}
