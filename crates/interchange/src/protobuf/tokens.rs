//! The words of a schema's text.

pub(super) struct Tokens<'t> {
    tokens: std::vec::IntoIter<&'t str>,
    last: &'t str,
}

const MAX_TOKENS: usize = 100_000;

impl<'t> Tokens<'t> {
    /// Nothing if the text has a character that no word begins with.
    pub(super) fn new(text: &'t str) -> Option<Self> {
        let (mut tokens, mut rest) = (Vec::new(), text);
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let Some(first) = rest.bytes().next() else { break };
            let length = match first {
                b'/' => {
                    rest = behind_comment(rest)?;
                    continue;
                }
                b'"' | b'\'' => quoted_length(rest.as_bytes(), first)?,
                b'{' | b'}' | b';' | b'=' | b'<' | b'>' | b',' | b'[' | b']' | b'(' | b')' | b':' | b'+' => 1,
                byte if is_word(byte) => rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len()),
                _ => return None,
            };
            let (token, behind) = rest.split_at(length);
            tokens.push(token);
            rest = behind;
            if tokens.len() > MAX_TOKENS {
                return None;
            }
        }
        Some(Tokens { tokens: tokens.into_iter(), last: "" })
    }

    pub(super) fn next(&mut self) -> Option<&'t str> {
        self.last = self.tokens.next()?;
        Some(self.last)
    }

    /// What was read last, for a message about what is wrong.
    pub(super) fn last(&self) -> &'t str {
        self.last
    }

    pub(super) fn eat(&mut self, wanted: &str) -> bool {
        let found = self.tokens.as_slice().first() == Some(&wanted);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect(&mut self, wanted: &str) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    pub(super) fn name(&mut self) -> Option<&'t str> {
        self.next().filter(|token| is_name(token))
    }

    /// Skips a statement, up to its semicolon or its closing brace.
    pub(super) fn skip_statement(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.next()? {
                ";" if depth == 0 => return Some(()),
                "{" => depth += 1,
                "}" => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(());
                    }
                }
                _ => {}
            }
        }
    }

    /// Skips `[...]`, if it is there.
    pub(super) fn skip_options(&mut self) -> Option<()> {
        if !self.eat("[") {
            return Some(());
        }
        let mut depth = 1usize;
        while depth > 0 {
            match self.next()? {
                "[" => depth += 1,
                "]" => depth -= 1,
                _ => {}
            }
        }
        Some(())
    }
}

pub(super) fn is_name(token: &str) -> bool {
    let first_is_letter = token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    first_is_letter && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// With both quotes. They are ASCII, so that a text is cut between characters.
fn quoted_length(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn behind_comment(rest: &str) -> Option<&str> {
    if let Some(line) = rest.strip_prefix("//") {
        return Some(line.split_once('\n').map_or("", |(_, behind)| behind));
    }
    rest.strip_prefix("/*").and_then(|comment| comment.split_once("*/")).map(|(_, behind)| behind)
}
