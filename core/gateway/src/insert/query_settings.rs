//! Settings that change the meaning of a statement. The backend's version decides which ones there are.

use windrow_sql::InsertStatement;

use crate::admission::{NotAdmitted, ServerVersion, UserContext};
use crate::forward_reason::ForwardReason;

/// The first version in which `format` and `input_format` go before the FORMAT clause, and other settings put
/// clauses around a query.
const SINCE: ServerVersion = ServerVersion { major: 26, minor: 8 };

/// Settings of this kind that a request gives.
#[derive(Debug, Default)]
pub(crate) struct QuerySettings<'a> {
    format: Option<&'a str>,
    input_format: Option<&'a str>,
    puts_clauses: bool,
}

impl<'a> QuerySettings<'a> {
    /// Takes one setting if it is of this kind; later ones of the same name win.
    pub(crate) fn set(&mut self, name: &str, value: &'a str) {
        match name {
            "format" => self.format = Some(value),
            "input_format" => self.input_format = Some(value),
            _ => self.puts_clauses |= is_clause(name) && !matches!(value, "" | "0"),
        }
    }

    /// Returns the name of the format that an insert's data is in.
    pub(crate) fn format<'f>(&self, statement: &'f InsertStatement, user: &UserContext) -> Result<&'f str, NotAdmitted>
    where
        'a: 'f,
    {
        let forward = Err(NotAdmitted::Forward(ForwardReason::Setting));
        if user.version < SINCE {
            // Not known there: the backend says so.
            let none = self.format.is_none() && self.input_format.is_none();
            return if none { Ok(&statement.format) } else { forward };
        }
        // A profile's would hold for the flush as well, which has a format of its own.
        let in_profile = |(name, _): &(String, String)| is_clause(name) || is_format(name);
        if self.puts_clauses || user.changed_settings.iter().any(in_profile) {
            return forward;
        }
        match [self.input_format, self.format].into_iter().flatten().find(|name| !name.is_empty()) {
            // Where the data begins depends on its being VALUES.
            Some(_) if statement.format.eq_ignore_ascii_case("Values") => forward,
            Some(name) => Ok(name),
            None => Ok(&statement.format),
        }
    }
}

fn is_format(name: &str) -> bool {
    matches!(name, "format" | "input_format")
}

/// Says whether a setting puts a clause around a query. Its effect on an INSERT is the backend's business.
fn is_clause(name: &str) -> bool {
    matches!(name, "select" | "filter" | "order" | "sort" | "page" | "limit" | "offset")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_sql::{classify, Statement};

    fn format(minor: u32, profile: &[&str], statement: &str, settings: &[(&str, &str)]) -> Option<String> {
        let Statement::Insert(statement) = classify(statement.as_bytes()) else { panic!("{statement} is no INSERT") };
        let user = UserContext {
            database: "d".into(),
            timezone: "UTC".into(),
            version: ServerVersion { major: 26, minor },
            bounds: Vec::new(),
            enabled_roles: Vec::new(),
            is_for_sql: false,
            changed_settings: profile.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect(),
            effective_settings: Vec::new(),
        };
        let mut query = QuerySettings::default();
        settings.iter().for_each(|(name, value)| query.set(name, value));
        query.format(&statement, &user).ok().map(str::to_owned)
    }

    const CSV: &str = "INSERT INTO t FORMAT CSV\n";

    #[test]
    fn newer_backends_let_settings_go_before_the_clause() {
        let newer = |settings: &[(&str, &str)]| format(8, &[], CSV, settings);
        assert_eq!(newer(&[]).as_deref(), Some("CSV"));
        assert_eq!(newer(&[("format", "JSONEachRow")]).as_deref(), Some("JSONEachRow"));
        assert_eq!(newer(&[("input_format", "TSV"), ("format", "JSONEachRow")]).as_deref(), Some("TSV"));
        assert_eq!(newer(&[("input_format", ""), ("format", "")]).as_deref(), Some("CSV"));
        assert_eq!(format(8, &[], "INSERT INTO t VALUES (1)", &[("format", "CSV")]), None);
        assert_eq!(format(10, &[], CSV, &[("format", "TSV")]).as_deref(), Some("TSV"));
    }

    #[test]
    fn older_backends_are_left_to_say_that_they_do_not_know_them() {
        assert_eq!(format(7, &[], CSV, &[]).as_deref(), Some("CSV"));
        assert_eq!(format(7, &[], CSV, &[("format", "TSV")]), None);
        assert_eq!(format(7, &[], CSV, &[("input_format", "")]), None);
        assert_eq!(
            format(7, &["limit"], CSV, &[("limit", "5")]).as_deref(),
            Some("CSV"),
            "it says nothing to an INSERT"
        );
    }

    #[test]
    fn what_would_hold_for_the_flush_too_or_is_not_understood_is_forwarded() {
        for name in ["format", "input_format", "limit", "filter"] {
            assert_eq!(format(8, &[name], CSV, &[]), None, "{name} in the profile");
        }
        assert_eq!(format(8, &[], CSV, &[("filter", "a > 1")]), None);
        assert_eq!(format(8, &[], CSV, &[("limit", "0"), ("select", "")]).as_deref(), Some("CSV"));
    }
}
