//! A position in the text of a type, and the tokens that are taken from there.

use super::{Purpose, TypeError};

/// Characters of a refused type that an error has; an Enum may have thousands of names.
const MAX_TOLD_CHARACTERS: usize = 200;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) purpose: Purpose,
}

impl<'a> Parser<'a> {
    pub(super) fn word(&mut self) -> Result<&'a str, TypeError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        if length == 0 {
            return Err(self.malformed());
        }
        self.at += length;
        Ok(&rest[..length])
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, TypeError> {
        let word = self.word()?;
        word.parse().map_err(|_| self.malformed())
    }

    pub(super) fn quoted(&mut self, quote: char) -> Result<String, TypeError> {
        self.expect(quote)?;
        let mut text = String::new();
        loop {
            let next = self.next().ok_or_else(|| self.malformed())?;
            match next {
                '\\' => {
                    let escaped = self.next().ok_or_else(|| self.malformed())?;
                    text.push(self.unescape(escaped)?);
                }
                // A doubled quote stands for itself.
                next if next == quote && self.peek() == Some(quote) => {
                    self.next();
                    text.push(quote);
                }
                next if next == quote => return Ok(text),
                next => text.push(next),
            }
        }
    }

    fn unescape(&self, escaped: char) -> Result<char, TypeError> {
        Ok(match escaped {
            '\\' | '\'' | '`' | '"' => escaped,
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            'b' => '\u{8}',
            'f' => '\u{c}',
            // The pattern of a JSON's `SKIP REGEXP` may have any.
            other if self.purpose != Purpose::Insert => other,
            _ => return Err(self.malformed()),
        })
    }

    pub(super) fn skip_space(&mut self) {
        while self.peek().is_some_and(|next| next == ' ' || next == '\n' || next == '\t') {
            self.at += 1;
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn eat(&mut self, wanted: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    pub(super) fn expect(&mut self, wanted: char) -> Result<(), TypeError> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }

    pub(super) fn malformed(&self) -> TypeError {
        TypeError::Malformed { offset: self.at }
    }

    /// Goes to behind the bracket that closes the one just taken; returns the text between the two.
    pub(super) fn rest_of_arguments(&mut self) -> Result<&'a str, TypeError> {
        let start = self.at;
        let mut open = 1;
        loop {
            match self.peek().ok_or_else(|| self.malformed())? {
                quote @ ('\'' | '`' | '"') => {
                    self.quoted(quote)?;
                    continue;
                }
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            self.next();
            if open == 0 {
                return Ok(&self.text[start..self.at - 1]);
            }
        }
    }

    pub(super) fn refused(&self, name: &str) -> TypeError {
        let name = name.chars().take(MAX_TOLD_CHARACTERS).collect();
        match self.purpose {
            Purpose::Insert => TypeError::Unsupported(name),
            Purpose::Result | Purpose::Passing => TypeError::Unreadable(name),
        }
    }
}
