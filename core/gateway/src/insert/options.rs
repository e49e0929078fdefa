//! Settings and query parameters that stand beside a statement, as text, whatever protocol they came by.

use std::borrow::Cow;

use windrow_clickhouse::Call;
use windrow_sql::InsertStatement;

use super::dedup_settings::DedupSettings;
use super::role::{role, Role};

type NamedValue<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Settings and query parameters of one statement. Each protocol fills them in, and leaves out parameters
/// that only frame its requests.
#[derive(Default)]
pub struct StatementOptions<'a> {
    /// Settings in their order; the last of a name counts.
    settings: Vec<NamedValue<'a>>,
    /// Values of `{name:Type}` in the statement.
    query_parameters: Vec<NamedValue<'a>>,
    /// Says whether the insert names itself by a token that is no text, which can't be told from others here.
    pub(crate) has_unreadable_token: bool,
}

impl<'a> StatementOptions<'a> {
    pub(crate) const NONE: StatementOptions<'a> =
        StatementOptions { settings: Vec::new(), query_parameters: Vec::new(), has_unreadable_token: false };

    pub(crate) fn set(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        self.settings.push((name.into(), value.into()));
    }

    pub(crate) fn set_query_parameter(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        self.query_parameters.push((name.into(), value.into()));
    }

    pub fn settings(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> + Clone {
        self.settings.iter().map(|(name, value)| (&**name, &**value))
    }

    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings().rfind(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub fn query_parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query_parameters.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the value of `{name:...}` in the statement. `None`: there is none or several, or it is empty.
    pub(crate) fn query_parameter(&self, name: &str) -> Option<String> {
        let mut values = self.query_parameters().filter(|(known, _)| *known == name).map(|(_, value)| value);
        let value = values.next().filter(|value| !value.is_empty())?;
        values.next().is_none().then(|| value.to_owned())
    }

    /// Adds the settings and query parameters to a request.
    pub(crate) fn add_to<'c>(&self, mut call: Call<'c>, takes: Receiver) -> Call<'c> {
        for (name, value) in self.settings().filter(|(name, _)| takes == Receiver::Own || role(name) != Role::Windrow) {
            call = call.param(name, value);
        }
        self.query_parameters().fold(call, |call, (name, value)| call.param(&url_name(name), value))
    }

    /// Returns the name that an insert gives itself. One in the statement goes before one beside it.
    pub(crate) fn token<'t>(&'t self, statement: &'t InsertStatement) -> Option<&'t str> {
        let in_text = statement.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        DedupSettings::of(self.settings().chain(in_text)).token()
    }
}

/// Receiver of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// A Windrow, which takes settings of its own besides ClickHouse's.
    Own,
    ClickHouses,
}

/// Returns the name of a query parameter in a URL.
pub(crate) fn url_name(query_parameter: &str) -> String {
    format!("param_{query_parameter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_setting_counts_and_only_one_query_parameter_of_a_name() {
        let mut options = StatementOptions::default();
        for value in ["1", "2"] {
            options.set("max_threads", value);
            options.set_query_parameter("twice", value);
        }
        options.set_query_parameter("once", "t");
        options.set_query_parameter("empty", "");
        assert_eq!(options.setting("max_threads"), Some("2"));
        assert_eq!(options.query_parameter("once").as_deref(), Some("t"));
        for name in ["twice", "empty", "missing", "max_threads"] {
            assert_eq!(options.query_parameter(name), None, "{name}");
        }
    }
}
