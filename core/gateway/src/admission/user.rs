use serde::{Deserialize, Serialize};
use windrow_clickhouse::{Client, Credentials};

use super::account::AccountKey;
use super::facts::Facts;
use super::NotAdmitted;
use crate::forward_reason::ForwardReason;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct UserKey {
    pub(crate) credentials: Credentials,
    pub(crate) roles: Vec<String>,
    pub(crate) quota_key: String,
    pub(crate) database: Option<String>,
}

impl UserKey {
    /// Makes the key of a user with the backend's own choice of roles, quota key and database.
    pub(crate) fn of(credentials: &Credentials) -> UserKey {
        UserKey { credentials: credentials.clone(), roles: Vec::new(), quota_key: String::new(), database: None }
    }
}

/// A user, as the backend sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(crate) struct UserContext {
    /// The database of tables that are named without one.
    pub(crate) database: String,
    /// The server's time zone, which columns without one of their own use.
    pub(crate) timezone: String,
    pub(crate) version: ServerVersion,
    /// Settings that differ from ClickHouse's defaults, by profile or configuration.
    pub(crate) changed_settings: Vec<(String, String)>,
    /// Settings whose default differs between versions, with their values for this user.
    pub(crate) effective_settings: Vec<(String, String)>,
    /// Other limits of the user: bounds on settings, and quotas with whether they are used up.
    pub(crate) bounds: Vec<String>,
    /// Enabled roles, with those that they bring along.
    pub(crate) enabled_roles: Vec<String>,
    /// Says whether the backend is a database that takes SQL.
    pub(crate) is_for_sql: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub(crate) struct ServerVersion {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

/// Settings that inserts depend on and whose default has changed over time, so that they are read, not assumed.
const VERSIONED_SETTINGS: &str =
    "'date_time_input_format', 'input_format_null_as_default', 'input_format_skip_unknown_fields', \
    'input_format_defaults_for_omitted_fields', 'deduplicate_insert', 'deduplicate_insert_select', \
    'async_insert_deduplicate', 'insert_deduplicate', 'enable_http_compression', \
    'max_partitions_per_insert_block', 'throw_on_max_partitions_per_insert_block', \
    'deduplicate_blocks_in_dependent_materialized_views'";

/// Bounds of a quota that inserts can run into, as `system.quota_usage` names them. A quota on whole queries
/// is used up when it reaches its bound, the others when they pass it.
const QUOTAS: [(&str, &str); 5] =
    [("queries", ">="), ("query_inserts", ">="), ("errors", ">"), ("written_bytes", ">"), ("execution_time", ">")];

/// Pattern of the columns in which `system.settings` says what may be set. Not every version has all of them.
const BOUNDS: &str = "^(name|min|max|disallowed_values|readonly)$";

pub(super) async fn ask(client: &Client, facts: &Facts, key: &AccountKey) -> Result<UserContext, NotAdmitted> {
    let used_up = QUOTAS.map(|(name, reaches)| format!("ifNull({name} {reaches} max_{name}, 0)")).join(" OR ");
    let query = format!(
        "SELECT name, value, toString(changed) FROM system.settings WHERE changed OR name IN ({VERSIONED_SETTINGS}) \
         UNION ALL SELECT '=bounds', toString(groupBitXor(cityHash64(toString(tuple(COLUMNS('{BOUNDS}')))))), '' \
         FROM system.settings \
         UNION ALL SELECT '=role', arrayJoin(enabledRoles()), '' \
         UNION ALL SELECT '=bounds', concat(quota_name, ' ', toString({used_up})), '' FROM system.quota_usage \
         UNION ALL SELECT '=database', currentDatabase(), '' UNION ALL SELECT '=timezone', serverTimezone(), '' \
         UNION ALL SELECT '=version', version(), '' FORMAT JSONCompactEachRow"
    );
    let answer = client.call(key.call(&query)).await?;
    facts.learn(client, &answer.head).await;
    read(answer.text()).ok_or(NotAdmitted::Forward(ForwardReason::UnclearUser))
}

fn read(text: &str) -> Option<UserContext> {
    let mut context = UserContext::default();
    for line in text.lines() {
        let (name, value, changed): (String, String, String) = serde_json::from_str(line).ok()?;
        match name.as_str() {
            "=database" => context.database = value,
            "=timezone" => context.timezone = value,
            "=version" => context.version = version(&value)?,
            "=bounds" => context.bounds.push(value),
            "=role" => context.enabled_roles.push(value),
            _ if changed == "1" => context.changed_settings.push((name, value)),
            _ => context.effective_settings.push((name, value)),
        }
    }
    context.changed_settings.sort();
    context.effective_settings.sort();
    context.bounds.sort();
    context.enabled_roles.sort();
    (!context.database.is_empty() && context.version.major > 0).then_some(context)
}

fn version(text: &str) -> Option<ServerVersion> {
    let mut numbers = text.split('.').map(str::parse);
    Some(ServerVersion { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
}

impl UserContext {
    /// Returns a setting's value for this user, if it is known here.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        let known = self.changed_settings.iter().chain(&self.effective_settings);
        known.rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_read() {
        let text = "[\"async_insert\",\"0\",\"1\"]\n[\"date_time_input_format\",\"basic\",\"0\"]\n\
                    [\"=bounds\",\"q 0\",\"\"]\n[\"=bounds\",\"77\",\"\"]\n[\"=database\",\"d\",\"\"]\n[\"=timezone\",\"Etc\\/UTC\",\"\"]\n[\"=version\",\"26.7.2.1\",\"\"]\n";
        let user = read(text).unwrap();
        assert_eq!((user.database.as_str(), user.timezone.as_str()), ("d", "Etc/UTC"));
        assert_eq!(user.version, ServerVersion { major: 26, minor: 7 });
        assert_eq!(user.changed_settings, [("async_insert".into(), "0".into())]);
        assert_eq!(user.setting("date_time_input_format"), Some("basic"));
        assert_eq!(user.bounds, ["77", "q 0"]);
        for length in 0..text.len() - 1 {
            assert!(read(&text[..length]).is_none(), "cut after {length}");
        }
    }
}
