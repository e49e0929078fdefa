//! Names within `[[kafka]]`: of pipelines, tables, topics, addresses.

use crate::entries::Entry;

/// What a pipeline is called: by its name, else its group, else its table.
pub(crate) fn name_of(entry: &Entry) -> Option<String> {
    entry.given("name").map(str::to_owned).or_else(|| group_of(entry))
}

pub(crate) fn group_of(entry: &Entry) -> Option<String> {
    let given = entry.given("group").map(str::to_owned);
    given.or_else(|| Some(format!("windrow-{}", TableName::parse(entry.given("table")?)?.table)))
}

/// `table` or `database.table`, each of them perhaps in backquotes or double quotes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableName {
    pub database: Option<String>,
    pub table: String,
}

impl TableName {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (first, rest) = identifier(text)?;
        match rest.strip_prefix('.') {
            None => rest.is_empty().then_some(Self { database: None, table: first }),
            Some(second) => {
                let (table, rest) = identifier(second)?;
                rest.is_empty().then_some(Self { database: Some(first), table })
            }
        }
    }
}

/// A name and what comes after it.
fn identifier(text: &str) -> Option<(String, &str)> {
    let (name, rest) = match text.chars().next()? {
        quote @ ('`' | '"') => text[1..].split_once(quote)?,
        _ => text.split_at(text.find('.').unwrap_or(text.len())),
    };
    let is_plain = !name.contains(['`', '"']) && name.trim() == name;
    (!name.is_empty() && is_plain).then(|| (name.to_owned(), rest))
}

/// Whether Kafka takes this as a topic's name.
pub(crate) fn is_topic(name: &str) -> bool {
    const MAX_BYTES: usize = 249;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_BYTES && name != "." && name != ".." && name.bytes().all(allowed)
}

/// `host:port`, with an IPv6 address in brackets.
pub(crate) fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let good_host = match bare {
        Some(address) => !address.is_empty(),
        None => !host.is_empty() && !host.contains([':', '/', '@']),
    };
    good_host && !host.contains(char::is_whitespace) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_with_their_quotes() {
        let name = |database: Option<&str>, table: &str| {
            Some(TableName { database: database.map(str::to_owned), table: table.to_owned() })
        };
        for (text, expected) in [
            ("events", name(None, "events")),
            ("d.events", name(Some("d"), "events")),
            ("`a.b`.\"c.d\"", name(Some("a.b"), "c.d")),
            ("ü.ß", name(Some("ü"), "ß")),
            ("", None),
            (".t", None),
            ("d.", None),
            ("a.b.c", None),
            ("`a", None),
            ("`a`b", None),
            ("``", None),
            (" a", None),
        ] {
            assert_eq!(TableName::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn topics_and_addresses_are_those_that_kafka_knows() {
        for (name, good) in
            [("events", true), ("a.b_c-1", true), ("", false), ("a b", false), ("..", false), ("é", false)]
        {
            assert_eq!(is_topic(name), good, "{name}");
        }
        assert!(is_topic(&"a".repeat(249)) && !is_topic(&"a".repeat(250)));
        for (text, good) in [
            ("localhost:9092", true),
            ("[::1]:9092", true),
            ("::1:9092", false),
            ("broker", false),
            (":9092", false),
            ("b:0", false),
            ("b:99999", false),
            ("http://b:1", false),
            ("a b:1", false),
        ] {
            assert_eq!(is_address(text), good, "{text}");
        }
    }
}
