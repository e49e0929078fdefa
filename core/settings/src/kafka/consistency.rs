//! Rules that must hold between the keys of a `[[kafka]]` entry, and between entries.

use crate::entries::Entry;
use crate::kafka::assemble::{format_of, has_tls};
use windrow_sql::TableName;

use crate::kafka::names::{group_of, is_address, is_topic, name_of};
use crate::units::{show_duration_ms, show_size_bytes};

/// Returns all conflicts, as clauses that say what to do.
pub(crate) fn check(entries: &[Entry]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let shown = match name_of(entry) {
            Some(name) => format!("[[kafka]] `{name}`"),
            None => format!("[[kafka]] entry {}", index + 1),
        };
        let mut found = Vec::new();
        for rule in [brokers, topics, table, format, registry, limits, tls, sasl] {
            rule(entry, &mut found);
        }
        problems.extend(found.into_iter().map(|problem| format!("{shown}: {problem}")));
        problems.extend(twins(&entries[..index], entry).map(|problem| format!("{shown}: {problem}")));
    }
    problems
}

type Problems = Vec<String>;

fn brokers(entry: &Entry, problems: &mut Problems) {
    let brokers = entry.list("brokers");
    if brokers.is_empty() {
        problems.push("`brokers` names none; give at least one as host:port".to_owned());
    }
    for broker in brokers.iter().filter(|broker| !is_address(broker)) {
        problems.push(format!("the broker {broker:?} is no address; write host:port"));
    }
}

fn topics(entry: &Entry, problems: &mut Problems) {
    let topics = entry.list("topics");
    match (topics.is_empty(), entry.given("topic_pattern").is_none()) {
        (true, true) => problems.push("it reads nothing; give `topics` or `topic_pattern`".to_owned()),
        (false, false) => problems.push("`topics` and `topic_pattern` are both set; remove one of them".to_owned()),
        _ => {}
    }
    for (index, topic) in topics.iter().enumerate() {
        if !is_topic(topic) {
            problems
                .push(format!("{topic:?} can't be a topic: their names have up to 249 letters, digits, dots, - and _"));
        } else if topics[..index].contains(topic) {
            problems.push(format!("the topic `{topic}` is named twice; remove one of them"));
        }
    }
}

fn table(entry: &Entry, problems: &mut Problems) {
    let text = entry.text("table").unwrap_or_default();
    if TableName::parse(text).is_none() {
        problems.push(format!("the table {text:?} is no `database.table`; names with dots stand in backquotes"));
    }
}

fn format(entry: &Entry, problems: &mut Problems) {
    let format = format_of(entry);
    let is_protobuf = matches!(format, "Protobuf" | "ProtobufSingle");
    for key in ["schema_file", "message"] {
        match (is_protobuf, entry.given(key).is_some()) {
            (true, false) => problems.push(format!("the format {format} needs `{key}`")),
            (false, true) => problems.push(format!("`{key}` is set, but the format {format} has no use for it")),
            _ => {}
        }
    }
    let is_confluent = format == "AvroConfluent";
    match (is_confluent, entry.given("schema_registry").is_some()) {
        (true, false) => problems.push(format!("the format {format} needs `schema_registry`")),
        (false, true) => {
            problems.push(format!("`schema_registry` is set, but the format {format} has no use for it"));
        }
        _ => {}
    }
    if entry.map("columns").iter().any(|(column, _)| column.is_empty()) {
        problems.push("`columns` has a column without a name".to_owned());
    }
}

fn registry(entry: &Entry, problems: &mut Problems) {
    // Not repeated in the message: it may hold a password.
    if let Some(url) = entry.given("schema_registry") {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        match rest {
            Some(rest) if rest.contains('@') => problems.push(
                "`schema_registry` holds a user; give it in `schema_registry_user` and `schema_registry_password`"
                    .to_owned(),
            ),
            Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => {}
            _ => problems.push("`schema_registry` is no http:// or https:// URL".to_owned()),
        }
    }
    pair(entry, ["schema_registry_user", "schema_registry_password"], problems);
}

fn limits(entry: &Entry, problems: &mut Problems) {
    let number = |key| entry.integer(key);
    if let (Some(interval), Some(latency)) = (number("flush_interval"), number("max_latency")) {
        if interval >= latency {
            problems.push(format!(
                "`flush_interval` ({}) leaves no time to store a batch within `max_latency` ({}); lower the first or raise the second",
                show_duration_ms(interval),
                show_duration_ms(latency)
            ));
        }
    }
    for (small, large) in
        [("fetch_min_bytes", "fetch_max_bytes"), ("max_batch_bytes", "max_memory"), ("fetch_max_bytes", "max_memory")]
    {
        if let (Some(less), Some(more)) = (number(small), number(large)) {
            if less > more {
                problems.push(format!(
                    "`{small}` ({}) is more than `{large}` ({}); lower the first or raise the second",
                    show_size_bytes(less),
                    show_size_bytes(more)
                ));
            }
        }
    }
}

fn tls(entry: &Entry, problems: &mut Problems) {
    pair(entry, ["tls.certificate_file", "tls.key_file"], problems);
    let named =
        ["tls.ca_file", "tls.certificate_file", "tls.key_file"].into_iter().find(|key| entry.given(key).is_some());
    // Someone who names an authority believes the connection is checked: it must not be in the clear.
    if let (Some(key), false) = (named, has_tls(entry)) {
        problems.push(format!("`{key}` is set, but `tls.enabled` is false; change one of them"));
    }
}

fn sasl(entry: &Entry, problems: &mut Problems) {
    const LOGIN: [&str; 2] = ["sasl.user", "sasl.password"];
    let has = |key: &str| entry.given(key).is_some() || !entry.list(key).is_empty() || !entry.map(key).is_empty();
    let tokens: Vec<&str> =
        ["sasl.token", "sasl.token_file", "sasl.token_command"].into_iter().filter(|key| has(key)).collect();
    let useless = |keys: &[&str]| keys.iter().find(|key| has(key)).map(|key| (*key).to_owned());
    match entry.given("sasl.mechanism") {
        None => {
            if let Some(key) = useless(&LOGIN).or_else(|| tokens.first().map(|key| (*key).to_owned())) {
                problems.push(format!("`{key}` is set without `sasl.mechanism`; set that as well"));
            }
        }
        Some(mechanism @ "OAUTHBEARER") => {
            if tokens.len() != 1 {
                problems.push(format!(
                    "{mechanism} needs one of `sasl.token`, `sasl.token_file` and `sasl.token_command`, and has {}",
                    if tokens.is_empty() { "none".to_owned() } else { tokens.join(", ") }
                ));
            }
            if let Some(key) = useless(&LOGIN) {
                problems.push(format!("`{key}` is set, but {mechanism} has no use for it"));
            }
        }
        Some(mechanism) => {
            for key in LOGIN.iter().filter(|key| !has(key)) {
                problems.push(format!("{mechanism} needs `{key}`"));
            }
            if let Some(key) = tokens.first().copied().or_else(|| has("sasl.extensions").then_some("sasl.extensions")) {
                problems.push(format!("`{key}` is set, but {mechanism} has no use for it"));
            }
        }
    }
}

/// Reports that one of two keys is set without the other.
fn pair(entry: &Entry, [first, second]: [&str; 2], problems: &mut Problems) {
    match (entry.given(first).is_some(), entry.given(second).is_some()) {
        (true, false) => problems.push(format!("`{first}` is set without `{second}`; set both or neither")),
        (false, true) => problems.push(format!("`{second}` is set without `{first}`; set both or neither")),
        _ => {}
    }
}

/// Reports what this entry must not have in common with an earlier one: the name, or a group on a shared
/// broker.
fn twins<'a>(earlier: &'a [Entry], entry: &'a Entry) -> impl Iterator<Item = String> + 'a {
    let (name, group) = (name_of(entry), group_of(entry));
    earlier.iter().filter_map(move |other| {
        if name.is_some() && name_of(other) == name {
            return Some("another entry has the same name; give one of them another `name`".to_owned());
        }
        let share_a_broker = entry.list("brokers").iter().any(|broker| other.list("brokers").contains(broker));
        (share_a_broker && group.is_some() && group_of(other) == group).then(|| {
            format!(
                "`{}` has the same group, so the two would share the partitions between them; give one of them another `group`",
                name_of(other).unwrap_or_default()
            )
        })
    })
}
