use super::outcome::NotParsedReason;

/// A position in the payload.
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    pub(super) fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Takes a semicolon, which may end the whole payload, and expects nothing behind it.
    pub(super) fn eat_final_semicolon(&mut self) -> Result<(), NotParsedReason> {
        self.eat(b';');
        self.expect_end()
    }

    /// Fails if anything but whitespace follows.
    pub(super) fn expect_end(&mut self) -> Result<(), NotParsedReason> {
        self.skip_space();
        if self.at_end() {
            Ok(())
        } else {
            Err(NotParsedReason::Syntax)
        }
    }

    #[inline]
    pub(super) fn eat(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    #[inline]
    pub(super) fn expect(&mut self, wanted: u8) -> Result<(), NotParsedReason> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(NotParsedReason::Syntax)
        }
    }

    /// Takes a word as it stands, in any case of its letters.
    pub(super) fn eat_word(&mut self, word: &[u8]) -> bool {
        let found = self.rest().get(..word.len()).is_some_and(|next| next.eq_ignore_ascii_case(word));
        if found {
            self.at += word.len();
        }
        found
    }

    #[inline]
    pub(super) fn eat_exactly(&mut self, word: &[u8]) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Skips the bytes that ClickHouse takes for whitespace between values.
    #[inline]
    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C) = self.peek() {
            self.at += 1;
        }
    }
}
