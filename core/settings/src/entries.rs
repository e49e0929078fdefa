//! The sections of the file that may be repeated, such as `[[tables]]`, checked key by key.

use std::collections::HashMap;

use crate::catalogue::{
    DefaultValue, ListSection, ADBC_USERS, DUCKDB_USERS, EMBEDDED_USERS, LIST_SECTIONS, OTLP_MAPPINGS, OTLP_TOKENS,
    TABLES,
};
use crate::errors::SettingsError;
use crate::file::{FileEntry, FileKey};
use crate::kafka::catalogue::KAFKA;
use crate::kind::{Kind, Raw, Value};
use crate::layers::{default_value, Resolved};
use crate::nearest::nearest;
use crate::origin::Origin;

/// The largest number of entries: with more, finding the rules of an insert would become expensive.
const MAX_ENTRIES: usize = 1000;

/// One checked section.
#[derive(Debug)]
pub(crate) struct Entry {
    pub values: HashMap<&'static str, Resolved>,
    /// The place where the section begins.
    pub header: Origin,
    /// Keys whose values could not be used.
    pub refused: Vec<&'static str>,
    /// Says whether flags of the command line set a key of the entry.
    pub of_flags: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub tables: Vec<Entry>,
    pub embedded_users: Vec<Entry>,
    pub duckdb_users: Vec<Entry>,
    pub otlp_tokens: Vec<Entry>,
    pub otlp_mappings: Vec<Entry>,
    pub adbc_users: Vec<Entry>,
    pub kafka: Vec<Entry>,
}

impl Entry {
    pub fn empty(list: &ListSection, header: Origin) -> Self {
        let default = |key: &crate::catalogue::Setting| Resolved { value: default_value(key), origin: Origin::Default };
        let values = list.keys.iter().map(|key| (key.path, default(key))).collect();
        Self { values, header, refused: Vec::new(), of_flags: false }
    }

    pub fn value(&self, key: &str) -> &Value {
        &self.values.get(key).expect("every key of the section has a value, if only `Unset`").value
    }
}

pub(crate) fn check(file: &str, found: Vec<FileEntry>, errors: &mut Vec<SettingsError>) -> Entries {
    let mut entries = Entries::default();
    for entry in found {
        let origin = Origin::File { path: file.to_owned(), line: entry.line };
        let (list, into) = match entry.path.as_str() {
            path if path == TABLES.path => (&TABLES, &mut entries.tables),
            path if path == EMBEDDED_USERS.path => (&EMBEDDED_USERS, &mut entries.embedded_users),
            path if path == DUCKDB_USERS.path => (&DUCKDB_USERS, &mut entries.duckdb_users),
            path if path == OTLP_TOKENS.path => (&OTLP_TOKENS, &mut entries.otlp_tokens),
            path if path == OTLP_MAPPINGS.path => (&OTLP_MAPPINGS, &mut entries.otlp_mappings),
            path if path == ADBC_USERS.path => (&ADBC_USERS, &mut entries.adbc_users),
            path if path == KAFKA.path => (&KAFKA, &mut entries.kafka),
            path => {
                let meant = nearest(path, LIST_SECTIONS.iter().map(|list| list.path)).map(|path| format!("[[{path}]]"));
                errors.push(SettingsError::UnknownKey { place: origin.place_of(&format!("[[{path}]]")), meant });
                continue;
            }
        };
        if into.len() == MAX_ENTRIES {
            let reason = format!("there are more than {MAX_ENTRIES} [[{}]] entries; use patterns with *", list.path);
            errors.push(SettingsError::Conflict { reason });
            break;
        }
        let entry = check_entry(list, file, entry, errors);
        // Variables and flags may give what a pipeline lacks in the file.
        if list.path != KAFKA.path {
            missing_keys(list, &entry, errors);
        }
        into.push(entry);
    }
    entries
}

fn check_entry(list: &ListSection, file: &str, entry: FileEntry, errors: &mut Vec<SettingsError>) -> Entry {
    let mut checked = Entry::empty(list, Origin::File { path: file.to_owned(), line: entry.line });
    let mut keys = entry.keys;
    keys.sort_by_key(|key| key.line);
    for key in keys.into_iter().filter_map(|key| as_switch(list, key)) {
        let origin = Origin::File { path: file.to_owned(), line: key.line };
        let Some(known) = list.keys.iter().find(|known| known.path == key.path) else {
            errors.push(SettingsError::unknown_key(&key.path, &origin, list.keys.iter().map(|known| known.path)));
            continue;
        };
        match known.kind.check(&key.raw) {
            Ok(value) => {
                checked.values.insert(known.path, Resolved { value, origin });
            }
            Err(reason) => {
                checked.refused.push(known.path);
                errors.push(SettingsError::BadValue { place: origin.place_of(&key.path), reason });
            }
        }
    }
    checked
}

/// Turns a section within an entry, such as `[kafka.tls]`, into the key that switches on its feature: a
/// section that is there is switched on, as by `tls = true`.
fn as_switch(list: &ListSection, key: FileKey) -> Option<FileKey> {
    if !list.has_group(&key.path) {
        return Some(key);
    }
    let switch = format!("{}.enabled", key.path);
    let has_switch = list.keys.iter().any(|known| known.path == switch && matches!(known.kind, Kind::Bool));
    match (&key.raw, has_switch) {
        (Raw::Section, false) => None,
        (Raw::Section, true) => Some(FileKey { path: switch, line: key.line, raw: Raw::Bool(true) }),
        (_, true) => Some(FileKey { path: switch, ..key }),
        (_, false) => Some(key),
    }
}

/// Reports the required keys that an entry lacks.
pub(crate) fn missing_keys(list: &ListSection, entry: &Entry, errors: &mut Vec<SettingsError>) {
    let required = list.keys.iter().filter(|key| matches!(key.default, DefaultValue::Required));
    for key in required.filter(|key| !entry.refused.contains(&key.path) && *entry.value(key.path) == Value::Unset) {
        let entry = match &entry.header {
            Origin::Flag { name } => format!("the [[{}]] entry that begins with flag {name}", list.path),
            header => format!("the entry {}", header.place_of(&format!("[[{}]]", list.path))),
        };
        errors.push(SettingsError::MissingKey { entry, key: key.path });
    }
}
