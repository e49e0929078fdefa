//! Settings of an insert about its deduplication, and their effect with a table's window.
//!
//! Since 26.2 ClickHouse asks `deduplicate_insert`, which is on by default; `backward_compatible_choice`
//! means the older `insert_deduplicate` (sync) and `async_insert_deduplicate` (async). An INSERT SELECT has a
//! setting of its own. On an embedded ClickHouse the default profile switches all of them off, because every
//! table there has a window for Windrow's batches: only inserts that ask for it, or whose table has a window
//! of its owner, are deduplicated.

use windrow_settings::{Backend, Settings};

use crate::admission::{UserContext, Window};

const CHOICE: &str = "deduplicate_insert";
const CHOICE_OF_SELECT: &str = "deduplicate_insert_select";
const OLD_SYNC: &str = "insert_deduplicate";
const OLD_ASYNC: &str = "async_insert_deduplicate";
pub(crate) const TOKEN: &str = "insert_deduplication_token";
/// Setting under which views process a block that the table had already, and their targets recognise their
/// part of the block. With 0 the targets miss that part, or have it twice.
pub(crate) const THROUGH_VIEWS: &str = "deduplicate_blocks_in_dependent_materialized_views";
/// The value of [`CHOICE`] that leaves the decision to the older settings.
const BY_OLD_SETTINGS: &str = "backward_compatible_choice";

/// Settings of one insert about its deduplication.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DedupSettings<'a> {
    choice: Option<&'a str>,
    choice_of_select: Option<&'a str>,
    old_sync: Option<&'a str>,
    old_async: Option<&'a str>,
    token: Option<&'a str>,
}

/// A value that ClickHouse would refuse.
#[derive(Debug)]
pub(crate) struct UnknownValue;

/// Says whether the setting is the name that an insert gives itself: only its repeats have the same.
pub(crate) fn is_token(name: &str) -> bool {
    name == TOKEN
}

pub(crate) fn is_dedup_setting(name: &str) -> bool {
    matches!(name, CHOICE | CHOICE_OF_SELECT | OLD_SYNC | OLD_ASYNC | TOKEN)
}

impl<'a> DedupSettings<'a> {
    /// Takes one setting if it is about deduplication; later ones of the same name win.
    pub(crate) fn set(&mut self, name: &str, value: &'a str) {
        match name {
            CHOICE => self.choice = Some(value),
            CHOICE_OF_SELECT => self.choice_of_select = Some(value),
            OLD_SYNC => self.old_sync = Some(value),
            OLD_ASYNC => self.old_async = Some(value),
            TOKEN => self.token = Some(value),
            _ => {}
        }
    }

    pub(crate) fn of(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> DedupSettings<'a> {
        let mut dedup = DedupSettings::default();
        settings.into_iter().for_each(|(name, value)| dedup.set(name, value));
        dedup
    }

    pub(crate) fn check(&self) -> Result<(), UnknownValue> {
        let choices = [None, Some("enable"), Some("disable"), Some(BY_OLD_SETTINGS)];
        let flags = [None, Some("0"), Some("1"), Some("true"), Some("false")];
        match choices.contains(&self.choice) && flags.contains(&self.old_sync) && flags.contains(&self.old_async) {
            true => Ok(()),
            false => Err(UnknownValue),
        }
    }

    /// Returns the name that the insert gives itself.
    pub(crate) fn token(&self) -> Option<&'a str> {
        self.token.filter(|token| !token.is_empty())
    }

    /// Returns that name if a repeat of the insert is to be recognised.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.token().filter(|_| self.asks() == Some(true))
    }

    /// Says whether the insert itself asks for a repeat to be recognised. `None`: it says nothing of that.
    fn asks(&self) -> Option<bool> {
        match self.choice {
            Some("disable") => Some(false),
            Some(BY_OLD_SETTINGS) => Some([self.old_sync, self.old_async].into_iter().flatten().any(is_on)),
            Some(_) => Some(true),
            None if self.token().is_some() => Some(true),
            None => [self.old_sync, self.old_async].into_iter().flatten().find(|value| is_on(value)).map(|_| true),
        }
    }

    /// Says whether a repeat of the insert is to be recognised.
    pub(crate) fn wants(&self, window: Window, user: &UserContext, profile: DefaultProfile) -> bool {
        self.asks().unwrap_or_else(|| matches!(window, Window::Owners(_)) && is_on_by_profile(user, profile))
    }

    /// Returns settings that a request needs besides for ClickHouse to do what [`wants`](Self::wants) says.
    pub(crate) fn additions(
        &self,
        window: Window,
        has_views: bool,
        user: &UserContext,
        profile: DefaultProfile,
    ) -> Vec<(&'static str, &'static str)> {
        let wants = self.wants(window, user, profile);
        let is_needed = match (profile, wants) {
            // Views write into tables that may have a window of Windrow's, where the table itself has none.
            // One that had none when it was asked about may have been given one since, by another gateway too.
            (DefaultProfile::Backends { managed }, false) => {
                window == Window::Windrows
                    || (managed && window == Window::None)
                    || (has_views && !matches!(window, Window::Owners(_)))
            }
            (DefaultProfile::Backends { .. }, true) => false,
            (DefaultProfile::SwitchedOff, wants) => wants,
        };
        let choice = if wants { switched_on(user) } else { switched_off(user) };
        let given = [self.choice.map(|_| CHOICE), self.choice_of_select.map(|_| CHOICE_OF_SELECT)];
        choice.into_iter().filter(|(name, _)| is_needed && !given.contains(&Some(name))).collect()
    }
}

/// Default profile of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultProfile {
    /// The backend's own profile. `managed` means that tables without a window may be given one of Windrow's.
    Backends { managed: bool },
    /// Windrow's profile, which leaves deduplication to the older settings and switches those off.
    SwitchedOff,
}

impl DefaultProfile {
    pub(crate) fn of(settings: &Settings) -> DefaultProfile {
        match settings.backend {
            Backend::Embedded if settings.manage_deduplication_window => DefaultProfile::SwitchedOff,
            _ => DefaultProfile::Backends { managed: settings.manage_deduplication_window },
        }
    }
}

fn is_on(value: &str) -> bool {
    matches!(value, "1" | "true")
}

/// Says whether ClickHouse deduplicates an asynchronous insert that says nothing itself.
fn is_on_by_profile(user: &UserContext, profile: DefaultProfile) -> bool {
    match user.setting(CHOICE) {
        Some("disable") => false,
        Some(BY_OLD_SETTINGS) if profile == DefaultProfile::SwitchedOff => true,
        Some(BY_OLD_SETTINGS) | None => user.setting(OLD_ASYNC).is_some_and(is_on),
        Some(_) => true,
    }
}

/// Returns the settings that make ClickHouse recognise a repeated INSERT, as far as the backend knows them.
fn switched_on(user: &UserContext) -> Vec<(&'static str, &'static str)> {
    choose(user, [(CHOICE, "enable"), (CHOICE_OF_SELECT, "enable_when_possible")], (OLD_SYNC, "1"))
}

/// Returns the settings that make ClickHouse recognise a repeated batch, also behind views. Names that the
/// backend doesn't know are left out, and so is the setting for views where the user has it on anyway.
pub(crate) fn recognised(user: &UserContext, has_views: bool) -> Vec<(&'static str, &'static str)> {
    let has_it_off = user.setting(THROUGH_VIEWS).is_some_and(|value| !is_on(value));
    let through_views = (has_views && has_it_off).then_some((THROUGH_VIEWS, "1"));
    switched_on(user).into_iter().chain(through_views).collect()
}

fn switched_off(user: &UserContext) -> Vec<(&'static str, &'static str)> {
    choose(user, [(CHOICE, "disable"), (CHOICE_OF_SELECT, "disable")], (OLD_SYNC, "0"))
}

fn choose(
    user: &UserContext,
    newer: [(&'static str, &'static str); 2],
    older: (&'static str, &'static str),
) -> Vec<(&'static str, &'static str)> {
    match user.setting(CHOICE) {
        Some(_) => newer.into_iter().filter(|(name, _)| user.setting(name).is_some()).collect(),
        None => vec![older],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Bounds, ServerVersion};

    const OWNERS: Window = Window::Owners(Bounds { blocks: 100, age: None });
    const DEFAULTS: &[(&str, &str)] =
        &[(CHOICE, "enable"), (CHOICE_OF_SELECT, "enable_when_possible"), (OLD_SYNC, "1"), (OLD_ASYNC, "0")];
    const OURS: &[(&str, &str)] =
        &[(CHOICE, BY_OLD_SETTINGS), (CHOICE_OF_SELECT, "disable"), (OLD_SYNC, "0"), (OLD_ASYNC, "0")];
    const BEFORE_26_2: &[(&str, &str)] = &[(OLD_SYNC, "1"), (OLD_ASYNC, "0")];

    fn user(settings: &[(&str, &str)]) -> UserContext {
        UserContext {
            database: "d".into(),
            timezone: "UTC".into(),
            version: ServerVersion { major: 26, minor: 7 },
            bounds: Vec::new(),
            enabled_roles: Vec::new(),
            is_for_sql: false,
            changed_settings: Vec::new(),
            effective_settings: settings.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
        }
    }

    fn wants(window: Window, profile: &[(&str, &str)], said: &[(&str, &str)]) -> bool {
        let whose =
            if profile == OURS { DefaultProfile::SwitchedOff } else { DefaultProfile::Backends { managed: false } };
        DedupSettings::of(said.iter().copied()).wants(window, &user(profile), whose)
    }

    #[test]
    fn an_owners_window_deduplicates_unless_it_is_switched_off() {
        for profile in [DEFAULTS, OURS] {
            assert!(wants(OWNERS, profile, &[]));
            assert!(!wants(OWNERS, profile, &[(CHOICE, "disable")]));
            assert!(!wants(OWNERS, profile, &[(CHOICE, "disable"), (TOKEN, "t")]), "as ClickHouse has it");
            assert!(!wants(OWNERS, profile, &[(CHOICE, BY_OLD_SETTINGS)]));
            assert!(wants(OWNERS, profile, &[(CHOICE, BY_OLD_SETTINGS), (OLD_ASYNC, "1")]));
        }
        assert!(!wants(OWNERS, BEFORE_26_2, &[]) && wants(OWNERS, BEFORE_26_2, &[(OLD_ASYNC, "1")]));
        assert!(!wants(OWNERS, &[(CHOICE, "disable")], &[]));
    }

    #[test]
    fn any_other_table_deduplicates_only_for_those_who_ask() {
        for window in [Window::Windrows, Window::None, Window::Never] {
            for profile in [DEFAULTS, OURS, BEFORE_26_2] {
                assert!(!wants(window, profile, &[]));
                assert!(!wants(window, profile, &[(TOKEN, "")]) && !wants(window, profile, &[(OLD_SYNC, "0")]));
                assert!(wants(window, profile, &[(TOKEN, "t")]) && wants(window, profile, &[(OLD_SYNC, "1")]));
            }
        }
    }

    fn added(window: Window, profile: &[(&str, &str)], said: &[(&str, &str)]) -> String {
        let whose =
            if profile == OURS { DefaultProfile::SwitchedOff } else { DefaultProfile::Backends { managed: false } };
        let added = DedupSettings::of(said.iter().copied()).additions(window, false, &user(profile), whose);
        added.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }

    #[test]
    fn views_are_told_only_where_they_would_not_do_it() {
        let told = |value: Option<&str>, has_views| {
            let mut user = user(DEFAULTS);
            user.changed_settings.extend(value.map(|value| (THROUGH_VIEWS.to_owned(), value.to_owned())));
            recognised(&user, has_views).contains(&(THROUGH_VIEWS, "1"))
        };
        assert!(told(Some("0"), true) && !told(Some("0"), false));
        assert!(!told(Some("1"), true) && !told(None, true), "a server that doesn't know it");
    }

    #[test]
    fn what_is_forwarded_is_told_only_what_it_does_not_know() {
        const OFF: &str = "deduplicate_insert=disable&deduplicate_insert_select=disable";
        const ON: &str = "deduplicate_insert=enable&deduplicate_insert_select=enable_when_possible";
        assert_eq!(added(Window::Windrows, DEFAULTS, &[]), OFF);
        assert_eq!(added(Window::Windrows, BEFORE_26_2, &[]), "insert_deduplicate=0");
        assert_eq!(added(Window::Windrows, DEFAULTS, &[(TOKEN, "t")]), "");
        assert_eq!(added(Window::Windrows, OURS, &[]), "");
        assert_eq!(added(Window::Windrows, OURS, &[(TOKEN, "t")]), ON);
        assert_eq!(added(OWNERS, OURS, &[]), ON);
        assert_eq!(added(OWNERS, OURS, &[(CHOICE, "enable")]), "deduplicate_insert_select=enable_when_possible");
        assert_eq!(added(OWNERS, DEFAULTS, &[]), "");
        assert_eq!(added(Window::None, DEFAULTS, &[]), "");
        let managed = DefaultProfile::Backends { managed: true };
        let added = DedupSettings::default().additions(Window::None, false, &user(DEFAULTS), managed);
        assert_eq!(added.len(), 2, "it may have been given a window since");
    }
}
