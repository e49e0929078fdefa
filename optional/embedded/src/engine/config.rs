//! The engine's configuration and users, as texts.
//!
//! The engine runs its start-up statements as `default` without a password, so that user has to exist. That
//! user may start the listening and read `system.numbers`, and nothing else, and a quota that the start-up
//! uses up refuses every statement after it (except a `SELECT 1`, which the engine does not count). The users
//! file is the engine's only source of users: the engine has no storage to which `CREATE USER` could write.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::options::{GATEWAY_USER, STARTUP_USER};
use crate::xml::Xml;
use crate::{EmbeddedOptions, EmbeddedUser};

/// A query that only ends when it is killed. The engine ends with it.
pub(crate) const ENDLESS_QUERY: &str = "SELECT sleepEachRow(0.2) FROM system.numbers \
    SETTINGS function_sleep_max_microseconds_per_block=0, max_block_size=1 FORMAT Null";
/// Condition that finds the endless query among the running ones. Queries that the engine runs by itself have
/// no user.
pub(crate) const IS_ENDLESS_QUERY: &str =
    "user = '' AND startsWith(query, 'SELECT sleepEachRow(0.2) FROM system.numbers')";
/// Statements that the engine runs after its start.
pub(crate) const STARTUP_STATEMENTS: &str = "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; ";
/// The number of queries at the start: the two statements and the endless query.
const STARTUP_QUERIES: &str = "3";
const TEN_YEARS_S: &str = "315360000";

/// Sizes for a machine of a few cores that ClickHouse shares with the gateway. ClickHouse's own defaults are
/// for a machine of its own.
const SMALL_MACHINE: [(&str, &str); 8] = [
    ("background_pool_size", "2"),
    ("background_merges_mutations_concurrency_ratio", "2"),
    ("background_schedule_pool_size", "16"),
    ("background_schedule_pool_initial_size", "2"),
    ("mark_cache_size", "134217728"),
    ("index_mark_cache_size", "33554432"),
    ("uncompressed_cache_size", "0"),
    ("query_cache.max_size_in_bytes", "33554432"),
];

/// Settings of the default profile that exclude inserts from deduplication. The profile holds for all users
/// and for inserts that the engine makes by itself: views, `Buffer` tables, `Kafka` tables. Tables with a
/// deduplication window for batches would otherwise drop equal rows of these. The choice is left to the older
/// settings, which are off, so that a client that sets either the old setting or the new one gets
/// deduplication.
const NOT_DEDUPLICATED: [(&str, &str); 4] = [
    ("deduplicate_insert", "backward_compatible_choice"),
    ("deduplicate_insert_select", "disable"),
    ("insert_deduplicate", "0"),
    ("async_insert_deduplicate", "0"),
];

pub(crate) fn config_xml(users: &Path, options: &EmbeddedOptions) -> String {
    Xml::document(|xml| {
        xml.element("logger", |xml| {
            xml.value("console", "1");
            xml.value("console_log_level", options.log_level.name());
            xml.element("formatting", |xml| xml.value("type", "json"));
        });
        xml.element("user_directories", |xml| {
            xml.element("users_xml", |xml| xml.value("path", &users.to_string_lossy()));
        });
        // Lets the gateway keep the port reserved while the engine is down.
        xml.value("listen_reuse_port", "1");
        for (name, value) in SMALL_MACHINE {
            match name.split_once('.') {
                Some((section, name)) => xml.element(section, |xml| xml.value(name, value)),
                None => xml.value(name, value),
            }
        }
        if let Some(blocks) = options.deduplication_window {
            xml.element("merge_tree", |xml| xml.value("non_replicated_deduplication_window", &blocks.to_string()));
        }
        if options.system_logs {
            ["query_log", "part_log"].iter().for_each(|name| system_log(xml, name));
        }
    })
}

fn system_log(xml: &mut Xml, table: &str) {
    xml.element(table, |xml| {
        xml.value("database", "system");
        xml.value("table", table);
        xml.value("flush_interval_milliseconds", "1000");
    });
}

pub(crate) fn users_xml(gateway_password: &str, options: &EmbeddedOptions) -> String {
    let users = &options.users;
    Xml::document(|xml| {
        xml.element("profiles", |xml| {
            xml.element("default", |xml| {
                if options.deduplication_window.is_some() {
                    NOT_DEDUPLICATED.iter().for_each(|(name, value)| xml.value(name, value));
                }
            });
            users.iter().for_each(|user| profile(xml, user));
        });
        xml.element("quotas", |xml| {
            xml.element("default", |_| ());
            xml.element("startup", startup_quota);
        });
        xml.element("users", |xml| {
            xml.element(STARTUP_USER, startup_user);
            xml.element(GATEWAY_USER, |xml| gateway_user(xml, gateway_password));
            users.iter().for_each(|user| xml.element(&user.name, |xml| further_user(xml, user)));
        });
    })
}

fn profile(xml: &mut Xml, user: &EmbeddedUser) {
    xml.element(&profile_name(user), |xml| {
        user.settings.iter().for_each(|(name, value)| xml.value(name, value));
    });
}

fn profile_name(user: &EmbeddedUser) -> String {
    format!("user_{}", user.name)
}

fn startup_quota(xml: &mut Xml) {
    xml.element("interval", |xml| {
        xml.value("duration", TEN_YEARS_S);
        xml.value("queries", STARTUP_QUERIES);
    });
}

fn startup_user(xml: &mut Xml) {
    xml.value("password", "");
    common(xml, "default", "startup");
    xml.element("grants", |xml| {
        xml.value("query", "GRANT SYSTEM LISTEN ON *.*");
        xml.value("query", "GRANT SELECT ON system.numbers");
    });
}

fn gateway_user(xml: &mut Xml, password: &str) {
    xml.value("password_sha256_hex", &sha256_hex(password));
    common(xml, "default", "default");
    // Without grants of its own a user has all of them; these go beyond.
    for right in
        ["access_management", "named_collection_control", "show_named_collections", "show_named_collections_secrets"]
    {
        xml.value(right, "1");
    }
}

fn further_user(xml: &mut Xml, user: &EmbeddedUser) {
    xml.value("password_sha256_hex", &sha256_hex(&user.password));
    common(xml, &profile_name(user), "default");
    // The element has to be there even when it is empty: a user without one may do everything.
    xml.element("grants", |xml| {
        user.grants.iter().for_each(|grant| xml.value("query", grant));
    });
}

fn common(xml: &mut Xml, profile: &str, quota: &str) {
    xml.element("networks", |xml| xml.value("ip", "127.0.0.1"));
    xml.value("profile", profile);
    xml.value("quota", quota);
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256_hex(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(users: Vec<EmbeddedUser>) -> EmbeddedOptions {
        EmbeddedOptions { users, ..EmbeddedOptions::new("data") }
    }

    #[test]
    fn passwords_are_written_as_hashes_only() {
        let user = EmbeddedUser {
            name: "reader".to_owned(),
            password: "hunter2".to_owned(),
            grants: vec!["GRANT SELECT ON `a<b`.*".to_owned()],
            settings: vec![("max_threads".to_owned(), "1".to_owned())],
        };
        let text = users_xml("secret", &options(vec![user]));
        assert!(!text.contains("hunter2") && !text.contains(">secret<"), "{text}");
        // `printf secret | sha256sum`
        assert!(text.contains("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"), "{text}");
        assert!(text.contains("GRANT SELECT ON `a&lt;b`.*"), "{text}");
        assert!(text.contains("<user_reader><max_threads>1</max_threads>"), "{text}");
    }

    #[test]
    fn a_user_without_grants_gets_an_empty_list_of_them() {
        let user =
            EmbeddedUser { name: "a".to_owned(), password: String::new(), grants: Vec::new(), settings: Vec::new() };
        assert!(users_xml("secret", &options(vec![user])).contains("<grants></grants>"));
    }

    #[test]
    fn system_logs_are_off_unless_asked_for() {
        let path = Path::new("users.xml");
        assert!(!config_xml(path, &options(vec![])).contains("_log>\n"));
        let with = config_xml(path, &EmbeddedOptions { system_logs: true, ..options(vec![]) });
        assert!(with.contains("<query_log>") && with.contains("<part_log>"));
    }

    #[test]
    fn a_window_for_all_tables_deduplicates_nobody_who_does_not_ask() {
        let (path, without) = (Path::new("users.xml"), options(vec![]));
        assert!(!config_xml(path, &without).contains("window") && !users_xml("", &without).contains("deduplicate"));
        let with = EmbeddedOptions { deduplication_window: Some(7), ..options(vec![]) };
        let window = "<non_replicated_deduplication_window>7</non_replicated_deduplication_window>";
        assert!(config_xml(path, &with).contains(window));
        assert!(users_xml("", &with).contains("<deduplicate_insert>backward_compatible_choice</deduplicate_insert>"));
    }
}
