use windrow_client::{Call, Client, Credentials};

use super::facts::Facts;
use super::{NotAdmitted, QUESTION_TIMEOUT};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct UserKey {
    pub(crate) credentials: Credentials,
    pub(crate) roles: Vec<String>,
    pub(crate) database: Option<String>,
}

/// A user, as the backend sees it.
#[derive(Debug, Clone)]
pub(crate) struct UserContext {
    /// The database of tables that are named without one.
    pub(crate) database: String,
    /// The server's time zone, which columns without one of their own use.
    pub(crate) timezone: String,
    pub(crate) version: ServerVersion,
    /// Settings that differ from ClickHouse's defaults, by profile or configuration.
    pub(crate) changed_settings: Vec<(String, String)>,
    /// Settings whose default differs between versions, as they are here.
    pub(crate) effective_settings: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerVersion {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

/// Settings that inserts depend on and whose default has changed over time, so that they are read, not assumed.
const VERSIONED_SETTINGS: &str =
    "'date_time_input_format', 'input_format_null_as_default', 'input_format_skip_unknown_fields', \
    'input_format_defaults_for_omitted_fields', 'deduplicate_insert', 'deduplicate_insert_select', \
    'async_insert_deduplicate', 'insert_deduplicate', 'enable_http_compression', \
    'max_partitions_per_insert_block', 'throw_on_max_partitions_per_insert_block'";

pub(crate) async fn ask(client: &Client, facts: &Facts, key: UserKey) -> Result<UserContext, NotAdmitted> {
    let query = format!(
        "SELECT name, value, toString(changed) FROM system.settings WHERE changed OR name IN ({VERSIONED_SETTINGS}) \
         UNION ALL SELECT '=database', currentDatabase(), '' UNION ALL SELECT '=timezone', serverTimezone(), '' \
         UNION ALL SELECT '=version', version(), '' FORMAT JSONCompactEachRow"
    );
    let mut call = Call::new(&key.credentials, &query).timeout(QUESTION_TIMEOUT);
    for role in &key.roles {
        call = call.param("role", role);
    }
    if let Some(database) = &key.database {
        call = call.param("database", database);
    }
    let answer = client.call(call).await?;
    facts.learn(client, &answer.head).await;
    read(answer.text()).ok_or(NotAdmitted::Forward("unclear_user"))
}

fn read(text: &str) -> Option<UserContext> {
    let mut context = UserContext {
        database: String::new(),
        timezone: String::new(),
        version: ServerVersion { major: 0, minor: 0 },
        changed_settings: Vec::new(),
        effective_settings: Vec::new(),
    };
    for line in text.lines() {
        let (name, value, changed): (String, String, String) = serde_json::from_str(line).ok()?;
        match name.as_str() {
            "=database" => context.database = value,
            "=timezone" => context.timezone = value,
            "=version" => context.version = version(&value)?,
            _ if changed == "1" => context.changed_settings.push((name, value)),
            _ => context.effective_settings.push((name, value)),
        }
    }
    (!context.database.is_empty() && context.version.major > 0).then_some(context)
}

fn version(text: &str) -> Option<ServerVersion> {
    let mut numbers = text.split('.').map(str::parse);
    Some(ServerVersion { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
}

impl UserContext {
    /// A setting's value for this user, if it is known here.
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
                    [\"=database\",\"d\",\"\"]\n[\"=timezone\",\"Etc\\/UTC\",\"\"]\n[\"=version\",\"26.7.2.1\",\"\"]\n";
        let user = read(text).unwrap();
        assert_eq!((user.database.as_str(), user.timezone.as_str()), ("d", "Etc/UTC"));
        assert_eq!(user.version, ServerVersion { major: 26, minor: 7 });
        assert_eq!(user.changed_settings, [("async_insert".into(), "0".into())]);
        assert_eq!(user.setting("date_time_input_format"), Some("basic"));
        for length in 0..text.len() - 1 {
            assert!(read(&text[..length]).is_none(), "cut after {length}");
        }
    }
}
