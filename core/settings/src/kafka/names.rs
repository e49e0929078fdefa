//! Names within `[[kafka]]`: names of pipelines, tables and topics, and addresses.

use windrow_sql::TableName;

use crate::entries::Entry;

/// Returns the name of a pipeline: its `name`, else its group, which is made from its table if it is not set.
pub(crate) fn name_of(entry: &Entry) -> Option<String> {
    entry.given("name").map(str::to_owned).or_else(|| group_of(entry))
}

pub(crate) fn group_of(entry: &Entry) -> Option<String> {
    let given = entry.given("group").map(str::to_owned);
    given.or_else(|| Some(format!("windrow-{}", TableName::parse(entry.given("table")?)?.table)))
}

/// Says whether Kafka takes this as a topic's name.
pub(crate) fn is_topic(name: &str) -> bool {
    const MAX_BYTES: usize = 249;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_BYTES && name != "." && name != ".." && name.bytes().all(allowed)
}

/// Says whether the text is `host:port`, with an IPv6 address in brackets.
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
