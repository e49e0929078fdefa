/// The text `"name":`, prepared so that the expected next key of an object is recognised by one comparison.
pub(crate) struct JsonKey {
    /// The whole text; empty if the name needs escapes in JSON.
    text: Vec<u8>,
    /// The text if it is short, filled up with zeros; `mask` has the bits of it that count.
    word: u128,
    mask: u128,
}

const WORD_BYTES: usize = 16;

impl JsonKey {
    pub(crate) fn new(name: &str) -> Self {
        let needs_escapes = name.bytes().any(|byte| byte == b'"' || byte == b'\\');
        let text = if needs_escapes { Vec::new() } else { format!("\"{name}\":").into_bytes() };
        let (mut word, mut mask) = ([0; WORD_BYTES], [0; WORD_BYTES]);
        if text.len() <= WORD_BYTES {
            word[..text.len()].copy_from_slice(&text);
            mask[..text.len()].fill(0xFF);
        }
        JsonKey { text, word: u128::from_le_bytes(word), mask: u128::from_le_bytes(mask) }
    }

    /// Returns the length of the key at the start of `bytes`, if the key is there.
    #[inline]
    pub(crate) fn length_in(&self, bytes: &[u8]) -> Option<usize> {
        let found = match bytes.first_chunk::<WORD_BYTES>() {
            Some(chunk) if self.mask != 0 => u128::from_le_bytes(*chunk) & self.mask == self.word,
            _ => !self.text.is_empty() && bytes.starts_with(&self.text),
        };
        found.then_some(self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::JsonKey;

    #[test]
    fn keys_of_any_length_are_found_in_texts_of_any_length() {
        for length in 0..40 {
            let name = "x".repeat(length);
            let key = JsonKey::new(&name);
            for behind in ["", "1", "1234567890123456789"] {
                let text = format!("\"{name}\":{behind}");
                assert_eq!(key.length_in(text.as_bytes()), Some(length + 3));
                assert_eq!(key.length_in(text.replace(':', " ").as_bytes()), None);
                assert_eq!(key.length_in(&text.as_bytes()[1..]), None);
            }
            assert_eq!(key.length_in(format!("\"{name}\"").as_bytes()), None);
        }
        assert_eq!(JsonKey::new("a\"b").length_in(b"\"a\"b\":1234567890123456"), None);
        assert_eq!(JsonKey::new("a\"b").length_in(b""), None);
    }
}
