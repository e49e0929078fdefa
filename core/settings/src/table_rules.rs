//! `[[tables]]`: rules that the operator sets for a table or a user, over the client's head.

use crate::typed::FlushPolicy;

/// The rule that says whether an insert is gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AsyncInsertRule {
    /// The request decides.
    #[default]
    Client,
    /// All inserts are gathered, also when the request says `async_insert=0`.
    Always,
    /// No insert is gathered, also when the request says `async_insert=1`.
    Never,
}

/// The rule that says when an insert is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckRule {
    /// The request decides.
    #[default]
    Client,
    Memory,
    Disk,
    Stored,
}

impl AckRule {
    pub(crate) fn named(name: &str) -> AckRule {
        match name {
            "memory" => AckRule::Memory,
            "disk" => AckRule::Disk,
            "stored" => AckRule::Stored,
            _ => AckRule::Client,
        }
    }
}

/// The rules for one table and user. A `Some` is stronger than the request's own setting; at `None` the request
/// decides, and where it doesn't say, [`crate::GatherSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableRules {
    pub async_insert: AsyncInsertRule,
    pub ack: AckRule,
    pub flush_policy: Option<FlushPolicy>,
    pub busy_timeout_min_ms: Option<u64>,
    pub busy_timeout_max_ms: Option<u64>,
    pub max_data_size_bytes: Option<u64>,
    pub max_query_number: Option<u64>,
}

/// One `[[tables]]` section.
#[derive(Debug, Clone)]
pub(crate) struct TableEntry {
    pub database: Pattern,
    pub table: Pattern,
    pub user: Pattern,
    pub async_insert: Option<AsyncInsertRule>,
    pub ack: Option<AckRule>,
    /// Rules of which only the options count.
    pub options: TableRules,
}

impl TableRules {
    pub(crate) fn of(entries: &[TableEntry], database: &str, table: &str, user: &str) -> Self {
        let mut rules = Self::default();
        for entry in entries {
            if entry.database.matches(database) && entry.table.matches(table) && entry.user.matches(user) {
                rules.overlay(entry);
            }
        }
        rules
    }

    fn overlay(&mut self, entry: &TableEntry) {
        let options = &entry.options;
        self.async_insert = entry.async_insert.unwrap_or(self.async_insert);
        self.ack = entry.ack.unwrap_or(self.ack);
        self.flush_policy = options.flush_policy.or(self.flush_policy);
        self.busy_timeout_min_ms = options.busy_timeout_min_ms.or(self.busy_timeout_min_ms);
        self.busy_timeout_max_ms = options.busy_timeout_max_ms.or(self.busy_timeout_max_ms);
        self.max_data_size_bytes = options.max_data_size_bytes.or(self.max_data_size_bytes);
        self.max_query_number = options.max_query_number.or(self.max_query_number);
    }
}

/// A name in which `*` stands for any characters, also none.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    Any,
    Exact(String),
    /// The text between the stars: a start, pieces to be found in order, an end.
    Pieces(Vec<String>),
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        match text {
            "*" => Self::Any,
            text if !text.contains('*') => Self::Exact(text.to_owned()),
            text => Self::Pieces(text.split('*').map(str::to_owned).collect()),
        }
    }

    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(text) => text == name,
            Self::Pieces(pieces) => matches_pieces(pieces, name),
        }
    }
}

/// Matches the pieces in order. Taking each middle piece at its first place leaves the most room for the
/// next, so no going back is needed.
fn matches_pieces(pieces: &[String], name: &str) -> bool {
    let [start, middle @ .., end] = pieces else { return false };
    let Some(mut rest) = name.strip_prefix(start.as_str()).and_then(|rest| rest.strip_suffix(end.as_str())) else {
        return false;
    };
    for piece in middle {
        match rest.split_once(piece.as_str()) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_written() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("events", "events", true),
            ("events", "Events", false),
            ("events_*", "events_2024", true),
            ("events_*", "events", false),
            ("*_raw", "a_raw", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("**", "anything", true),
            ("ü*ß", "übergrößß", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    /// Matches by the plain definition, exponential and obviously right.
    fn model(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|skipped| model(rest, &name[skipped..])),
            Some((byte, rest)) => name.first() == Some(byte) && model(rest, &name[1..]),
        }
    }

    #[test]
    fn patterns_agree_with_the_definition() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..20_000 {
            let text = |alphabet: &[char], random: &mut fastrand::Rng| -> String {
                (0..random.usize(..7)).map(|_| alphabet[random.usize(..alphabet.len())]).collect()
            };
            let pattern = text(&['a', 'b', '*'], &mut random);
            let name = text(&['a', 'b'], &mut random);
            let expected = model(pattern.as_bytes(), name.as_bytes());
            assert_eq!(Pattern::new(&pattern).matches(&name), expected, "{pattern} {name}");
        }
    }
}
