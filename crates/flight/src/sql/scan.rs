//! Walks through a statement token by token, as far as it takes to know what is inside quotes and comments and what
//! isn't.

use super::Dialect;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// A bare name, keyword or number.
    Word(&'t str),
    /// A quoted name, quotes included.
    Quoted(&'t str),
    /// A string, a heredoc.
    Text,
    Symbol(char),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) piece: Piece<'t>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

pub(crate) struct Scanner<'t> {
    dialect: Dialect,
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(dialect: Dialect, text: &'t str) -> Scanner<'t> {
        Scanner { dialect, text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Past blanks and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            let comment = self.comment(&rest[blanks..]);
            if blanks + comment == 0 {
                return;
            }
            self.at += blanks + comment;
        }
    }

    fn comment(&self, rest: &str) -> usize {
        let hash = self.dialect == Dialect::ClickHouse && (rest.starts_with("# ") || rest.starts_with("#!"));
        let slashes = self.dialect == Dialect::ClickHouse && rest.starts_with("//");
        if hash || slashes || rest.starts_with("--") {
            return rest.find('\n').map_or(rest.len(), |at| at + 1);
        }
        if !rest.starts_with("/*") {
            return 0;
        }
        let (mut depth, mut at) = (0usize, 0);
        let bytes = rest.as_bytes();
        while at < bytes.len() {
            match &bytes[at..] {
                [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                return at;
            }
        }
        rest.len()
    }

    /// Behind the closing quote of what begins at `at`; a quote that never closes ends with the text.
    fn quoted(&self, mark: u8, escapes: bool) -> usize {
        let bytes = self.rest().as_bytes();
        let mut at = 1;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if escapes => at += 2,
                byte if byte == mark && bytes.get(at + 1) == Some(&mark) => at += 2,
                byte if byte == mark => return at + 1,
                _ => at += 1,
            }
        }
        bytes.len()
    }

    /// `$tag$ ... $tag$`, where a dollar sign begins one.
    fn heredoc(&self) -> Option<usize> {
        let rest = self.rest();
        let tag_end = rest[1..].find('$')? + 2;
        let tag = &rest[..tag_end];
        let inner = &tag[1..tag_end - 1];
        let is_tag = inner.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_tag || inner.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        Some(tag_end + rest[tag_end..].find(tag)? + tag_end)
    }

    fn word(&self) -> usize {
        let is_in_word = |c: char| c.is_alphanumeric() || c == '_';
        self.rest().find(|c| !is_in_word(c)).unwrap_or(self.rest().len())
    }
}

impl<'t> Iterator for Scanner<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        self.skip();
        let (start, rest) = (self.at, self.rest());
        let first = rest.chars().next()?;
        let backslashes = self.dialect == Dialect::ClickHouse;
        let symbol = (Piece::Symbol(first), first.len_utf8());
        let (piece, length) = match first {
            '\'' => (Piece::Text, self.quoted(b'\'', backslashes)),
            'e' | 'E' if !backslashes && rest[1..].starts_with('\'') => {
                self.at += 1;
                let length = self.quoted(b'\'', true) + 1;
                self.at = start;
                (Piece::Text, length)
            }
            '"' | '`' if first == '"' || backslashes => {
                let length = self.quoted(first as u8, backslashes).min(rest.len());
                (Piece::Quoted(&rest[..boundary(rest, length)]), boundary(rest, length))
            }
            '$' => self.heredoc().map_or(symbol, |length| (Piece::Text, length)),
            c if c.is_alphanumeric() || c == '_' => {
                let length = self.word();
                (Piece::Word(&rest[..length]), length)
            }
            _ => symbol,
        };
        self.at = boundary(self.text, (start + length).min(self.text.len()));
        Some(Token { piece, start, end: self.at })
    }
}

/// An escape may stand before a character of several bytes.
fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(dialect: Dialect, text: &str) -> String {
        let symbol = |token: Token| match token.piece {
            Piece::Symbol(symbol) => Some(symbol),
            _ => None,
        };
        Scanner::new(dialect, text).filter_map(symbol).collect()
    }

    #[test]
    fn what_is_quoted_is_no_symbol() {
        let both = r#"'a?''?' "b?""?" -- ?
            /* ? /* ? */ ? */ $x$ ? $$ ? $x$ $$?$$ , 1.5 name_1"#;
        assert_eq!(symbols(Dialect::DuckDb, both), ",.");
        assert_eq!(symbols(Dialect::ClickHouse, both), ",.");
        assert_eq!(
            symbols(
                Dialect::ClickHouse,
                r"'\'?' `a\`?` # ?
            // ?
            #! ?"
            ),
            ""
        );
        assert_eq!(symbols(Dialect::DuckDb, r"'\' ? e'\'?'"), "?");
    }

    #[test]
    fn any_text_is_walked_through_to_its_end() {
        let mut random = fastrand::Rng::with_seed(11);
        let parts =
            ["'", "\"", "`", "\\", "é", "?", "$", "$a$", "--", "\n", "/*", "*/", "#", "x", "e'", " ", "😀", "1"];
        for _ in 0..20_000 {
            let text: String = (0..random.usize(..12)).map(|_| parts[random.usize(..parts.len())]).collect();
            for dialect in [Dialect::DuckDb, Dialect::ClickHouse] {
                let mut end = 0;
                for token in Scanner::new(dialect, &text) {
                    assert!(token.start >= end && token.end > token.start, "{text:?}");
                    end = token.end;
                }
            }
        }
    }
}
