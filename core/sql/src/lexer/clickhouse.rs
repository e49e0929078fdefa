//! Tokens by ClickHouse's lexical rules.
//!
//! The lexer is lazy: it never looks further than the token asked for, because the text behind an INSERT's
//! `FORMAT x` is data of any kind. Whitespace (Unicode's too) and comments (`--`, `//`, `# `, `#!`, nested
//! `/* */`) are skipped. The one rule that looks far ahead is the heredoc `$tag$ .. $tag$`: a `$` without its
//! closing tag is an ordinary word character. Failed look-aheads are counted, so that a text full of `$`
//! costs linear time; past the limit the lexer gives up with an error token, and the statement is forwarded.

use super::{block_comment_len, Token, TokenKind};

/// The limit of lone dollar signs: far more than a real statement has.
const MAX_FAILED_HEREDOCS: u32 = 100;

#[derive(Debug, Clone)]
pub(crate) struct Lexer<'t> {
    text: &'t [u8],
    position: usize,
    previous: TokenKind,
    failed_heredocs: u32,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t [u8]) -> Self {
        Self { text, position: 0, previous: TokenKind::End, failed_heredocs: 0 }
    }

    pub fn text(&self) -> &'t [u8] {
        self.text
    }

    /// Returns the next token that is no blank and no comment.
    pub fn next_token(&mut self) -> Token {
        if let Err(unclosed_comment) = self.skip_blanks() {
            self.position = self.text.len();
            return self.finish(TokenKind::Error, unclosed_comment);
        }
        let start = self.position;
        let Some(&first) = self.text.get(start) else { return self.finish(TokenKind::End, start) };
        let kind = match first {
            b'0'..=b'9' => self.number(),
            b'\'' => self.quoted(b'\'', TokenKind::String),
            b'"' | b'`' => self.quoted(first, TokenKind::QuotedIdentifier),
            b'.' => self.dot_or_number(),
            b'$' => self.dollar(),
            b'x' | b'X' | b'b' | b'B' if self.at(1) == Some(b'\'') && self.at(2).is_some() => self.hex_or_bin_string(),
            _ if is_word_byte(first) => self.word(),
            0xE2 => self.unicode(),
            _ => self.operator(first),
        };
        self.finish(kind, start)
    }

    fn finish(&mut self, kind: TokenKind, start: usize) -> Token {
        self.previous = kind;
        Token { kind, start, end: self.position }
    }

    fn at(&self, offset: usize) -> Option<u8> {
        self.text.get(self.position + offset).copied()
    }

    fn rest(&self) -> &'t [u8] {
        &self.text[self.position..]
    }

    /// Skips blanks and comments. Fails with the offset of a comment that never ends.
    fn skip_blanks(&mut self) -> Result<(), usize> {
        loop {
            let rest = self.rest();
            let blank = blank_len(rest);
            if blank > 0 {
                self.position += blank;
            } else if is_line_comment(rest) {
                self.position += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                self.position += block_comment_len(rest).ok_or(self.position)?;
            } else {
                return Ok(());
            }
        }
    }

    fn skip_while(&mut self, accept: impl Fn(u8) -> bool) {
        self.position += self.rest().iter().position(|&b| !accept(b)).unwrap_or(self.text.len() - self.position);
    }

    fn word(&mut self) -> TokenKind {
        self.skip_while(|b| is_word_byte(b) || b == b'$');
        TokenKind::Word
    }

    /// Reads a number, or an identifier that begins with a digit (`1st`). After a dot only digits count, so
    /// that `x.1.2` is two tuple accesses.
    fn number(&mut self) -> TokenKind {
        let start = self.position;
        let hex = self.at(0) == Some(b'0')
            && matches!(self.at(1), Some(b'x' | b'X'))
            && self.at(2).is_some_and(|b| b.is_ascii_hexdigit());
        let binary = self.at(0) == Some(b'0')
            && matches!(self.at(1), Some(b'b' | b'B'))
            && matches!(self.at(2), Some(b'0' | b'1'));
        if self.previous == TokenKind::Symbol(b'.') {
            self.digits(false, false);
        } else {
            self.position += if hex || binary { 2 } else { 0 };
            self.digits(hex, hex || binary);
            if self.at(0) == Some(b'.') {
                self.position += 1;
                self.digits(hex, true);
            }
            self.exponent(hex);
        }
        if !self.at(0).is_some_and(is_word_byte) {
            return TokenKind::Number;
        }
        self.skip_while(is_word_byte);
        let is_identifier = self.text[start..self.position].iter().all(|&b| is_word_byte(b));
        if is_identifier {
            TokenKind::Word
        } else {
            TokenKind::Error
        }
    }

    fn exponent(&mut self, hex: bool) {
        let marker =
            if hex { matches!(self.at(0), Some(b'p' | b'P')) } else { matches!(self.at(0), Some(b'e' | b'E')) };
        if !marker || self.at(1).is_none() {
            return;
        }
        self.position += 1;
        if matches!(self.at(0), Some(b'+' | b'-')) && self.at(1).is_some() {
            self.position += 1;
        }
        self.digits(false, true);
    }

    /// Skips digits, with single underscores between them.
    fn digits(&mut self, hex: bool, mut first: bool) {
        let is_digit = |b: u8| if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() };
        while let Some(byte) = self.at(0) {
            let separator = byte == b'_' && !first && self.at(1).is_some_and(is_digit);
            if !is_digit(byte) && !separator {
                return;
            }
            self.position += 1;
            first = false;
        }
    }

    fn dot_or_number(&mut self) -> TokenKind {
        let after_operand = matches!(
            self.previous,
            TokenKind::Symbol(b')' | b']') | TokenKind::Word | TokenKind::QuotedIdentifier | TokenKind::Number
        );
        let digit_follows = self.at(1).is_some_and(|b| b.is_ascii_digit());
        let is_dot = self.position > 0 && (after_operand || !digit_follows);
        self.position += 1;
        if is_dot {
            return TokenKind::Symbol(b'.');
        }
        self.digits(false, true);
        self.exponent(false);
        TokenKind::Number
    }

    /// Reads a quoted token. Both `''` and `\'` are a quote inside of it.
    fn quoted(&mut self, quote: u8, kind: TokenKind) -> TokenKind {
        self.position += 1;
        loop {
            self.skip_while(|b| b != quote && b != b'\\');
            match (self.at(0), self.at(1)) {
                (Some(b'\\'), Some(_)) => self.position += 2,
                (Some(byte), Some(next)) if byte == quote && next == quote => self.position += 2,
                (Some(byte), _) if byte == quote => {
                    self.position += 1;
                    return kind;
                }
                _ => return self.unclosed(),
            }
        }
    }

    fn hex_or_bin_string(&mut self) -> TokenKind {
        let hex = matches!(self.at(0), Some(b'x' | b'X'));
        self.position += 2;
        self.skip_while(|b| if hex { b.is_ascii_hexdigit() } else { b == b'0' || b == b'1' });
        if self.at(0) != Some(b'\'') {
            return self.unclosed();
        }
        self.position += 1;
        TokenKind::String
    }

    fn unclosed(&mut self) -> TokenKind {
        self.position = self.text.len();
        TokenKind::Error
    }

    fn dollar(&mut self) -> TokenKind {
        if self.failed_heredocs >= MAX_FAILED_HEREDOCS {
            return self.unclosed();
        }
        if let Some(length) = heredoc_len(self.rest()) {
            self.position += length;
            return TokenKind::HereDoc;
        }
        self.failed_heredocs += 1;
        if self.at(1).is_some_and(is_word_byte) {
            return self.word();
        }
        self.position += 1;
        TokenKind::Symbol(b'$')
    }

    /// Reads U+2212 MINUS SIGN, and the quotes that word processors make of plain ones.
    fn unicode(&mut self) -> TokenKind {
        let rest = self.rest();
        if rest.starts_with("\u{2212}".as_bytes()) {
            self.position += 3;
            return TokenKind::Symbol(b'-');
        }
        let (closing, kind) = if rest.starts_with("‘".as_bytes()) {
            ("’", TokenKind::String)
        } else if rest.starts_with("“".as_bytes()) {
            ("”", TokenKind::QuotedIdentifier)
        } else {
            self.position += 1;
            return TokenKind::Error;
        };
        match find(&rest[3..], closing.as_bytes()) {
            Some(length) => {
                self.position += 3 + length + closing.len();
                kind
            }
            None => self.unclosed(),
        }
    }

    fn operator(&mut self, first: u8) -> TokenKind {
        let doubled = matches!(
            (first, self.at(1)),
            (b'=' | b'!' | b'<' | b'>', Some(b'='))
                | (b'<', Some(b'>'))
                | (b'-', Some(b'>'))
                | (b':', Some(b':'))
                | (b'|', Some(b'|'))
        );
        self.position += if doubled { 2 } else { 1 };
        match first {
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b';' | b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'<'
            | b'>' | b'?' | b'|' | b'@' | b'^' | b'~' => TokenKind::Symbol(first),
            // `::` is a cast, `:` belongs to placeholders.
            b':' => TokenKind::Symbol(if doubled { b'c' } else { b':' }),
            b'!' if doubled => TokenKind::Symbol(b'!'),
            _ => TokenKind::Error,
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        Some(self.next_token()).filter(|token| token.kind != TokenKind::End)
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_line_comment(rest: &[u8]) -> bool {
    [&b"--"[..], b"//", b"# ", b"#!"].iter().any(|opening| rest.starts_with(opening))
}

/// Returns the length of the one blank that the text begins with, 0 if it begins with something else.
fn blank_len(rest: &[u8]) -> usize {
    match rest {
        [b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, ..] => 1,
        [0xC2, 0x85 | 0xA0, ..] => 2,
        [0xE1, 0xA0, 0x8E, ..] | [0xE3, 0x80, 0x80, ..] | [0xEF, 0xBB, 0xBF, ..] => 3,
        [0xE2, 0x80, 0x80..=0x8D | 0xA8 | 0xA9 | 0xAF, ..] | [0xE2, 0x81, 0x9F | 0xA0, ..] => 3,
        _ => 0,
    }
}

fn heredoc_len(rest: &[u8]) -> Option<usize> {
    let name_len = rest[1..].iter().position(|&b| !is_word_byte(b))?;
    if rest[1 + name_len] != b'$' {
        return None;
    }
    let tag_len = name_len + 2;
    let body_len = find(&rest[tag_len..], &rest[..tag_len])?;
    Some(tag_len + body_len + tag_len)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let (&first, _) = needle.split_first()?;
    let mut from = 0;
    loop {
        from += haystack.get(from..)?.iter().position(|&b| b == first)?;
        if haystack[from..].starts_with(needle) {
            return Some(from);
        }
        from += 1;
    }
}
