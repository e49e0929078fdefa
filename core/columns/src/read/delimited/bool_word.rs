/// Words that ClickHouse takes for true and false in text, in any case of their letters.
const WORDS: &[(&[u8], bool)] = &[
    (b"true", true),
    (b"false", false),
    (b"1", true),
    (b"0", false),
    (b"t", true),
    (b"f", false),
    (b"yes", true),
    (b"no", false),
    (b"y", true),
    (b"n", false),
    (b"on", true),
    (b"off", false),
    (b"enable", true),
    (b"disable", false),
    (b"enabled", true),
    (b"disabled", false),
];

pub(super) fn read_bool_word(word: &[u8]) -> Option<bool> {
    WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}
