//! The words of a schema's text.

pub(super) struct Tokens<'t> {
    tokens: std::vec::IntoIter<&'t str>,
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
                b'"' => rest[1..].find('"')? + 2,
                b'{' | b'}' | b';' | b'=' | b'<' | b'>' | b',' => 1,
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
        Some(Tokens { tokens: tokens.into_iter() })
    }

    pub(super) fn next(&mut self) -> Option<&'t str> {
        self.tokens.next()
    }

    pub(super) fn expect(&mut self, wanted: &str) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    pub(super) fn name(&mut self) -> Option<&'t str> {
        self.next().filter(|token| is_name(token))
    }
}

pub(super) fn is_name(token: &str) -> bool {
    let first_is_letter = token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    first_is_letter && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn behind_comment(rest: &str) -> Option<&str> {
    if let Some(line) = rest.strip_prefix("//") {
        return Some(line.split_once('\n').map_or("", |(_, behind)| behind));
    }
    rest.strip_prefix("/*").and_then(|comment| comment.split_once("*/")).map(|(_, behind)| behind)
}
