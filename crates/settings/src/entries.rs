//! The `[[tables]]`, `[[embedded.users]]` and `[[duckdb.users]]` sections of the file, checked key by key.

use std::collections::HashMap;

use crate::catalogue::{DefaultValue, ListSection, DUCKDB_USERS, EMBEDDED_USERS, LIST_SECTIONS, TABLES};
use crate::errors::SettingsError;
use crate::file::FileEntry;
use crate::kind::Value;
use crate::layers::{default_value, Resolved};
use crate::nearest::nearest;
use crate::origin::Origin;

/// More would make the match of an insert with its rules a cost worth thinking about.
const MAX_ENTRIES: usize = 1000;

/// One checked section.
#[derive(Debug)]
pub(crate) struct Entry {
    pub values: HashMap<&'static str, Resolved>,
}

#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub tables: Vec<Entry>,
    pub embedded_users: Vec<Entry>,
    pub duckdb_users: Vec<Entry>,
}

impl Entry {
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
        into.push(check_entry(list, file, entry, errors));
    }
    entries
}

fn check_entry(list: &ListSection, file: &str, mut entry: FileEntry, errors: &mut Vec<SettingsError>) -> Entry {
    let header = Origin::File { path: file.to_owned(), line: entry.line };
    let defaults =
        list.keys.iter().map(|key| (key.path, Resolved { value: default_value(key), origin: Origin::Default }));
    let mut values: HashMap<&'static str, Resolved> = defaults.collect();
    let mut refused = Vec::new();
    entry.keys.sort_by_key(|key| key.line);
    for key in entry.keys {
        let origin = Origin::File { path: file.to_owned(), line: key.line };
        let Some(known) = list.keys.iter().find(|known| known.path == key.path) else {
            errors.push(SettingsError::unknown_key(&key.path, &origin, list.keys.iter().map(|known| known.path)));
            continue;
        };
        match known.kind.check(&key.raw) {
            Ok(value) => {
                values.insert(known.path, Resolved { value, origin });
            }
            Err(reason) => {
                refused.push(known.path);
                errors.push(SettingsError::BadValue { place: origin.place_of(&key.path), reason });
            }
        }
    }
    for key in
        list.keys.iter().filter(|key| matches!(key.default, DefaultValue::Required) && !refused.contains(&key.path))
    {
        if matches!(&values[key.path].value, Value::Unset) {
            let entry = format!("the entry {}", header.place_of(&format!("[[{}]]", list.path)));
            errors.push(SettingsError::MissingKey { entry, key: key.path });
        }
    }
    Entry { values }
}
