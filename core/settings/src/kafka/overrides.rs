//! Variables and flags that override the entries of the file.
//!
//! A variable names a pipeline and its key: `WINDROW_KAFKA_<NAME>_<KEY>`. Flags give keys `kafka.<key>`. They
//! belong to the pipeline that the flag `kafka.name` names, or to one more pipeline that stands in no file.

use crate::catalogue::Setting;
use crate::entries::Entry;
use crate::errors::SettingsError;
use crate::kafka::catalogue::KAFKA;
use crate::kafka::names::name_of;
use crate::kind::{Kind, Raw};
use crate::layers::{Flag, Resolved};
use crate::origin::Origin;
use crate::variables::PREFIX;

const FLAG_PREFIX: &str = "kafka.";

/// Returns the key of `[[kafka]]` that a flag gives.
pub(crate) fn key_of(flag: &Flag) -> Option<&str> {
    flag.path.strip_prefix(FLAG_PREFIX)
}

/// Returns the variables that would override a key, each with the entry's number and the key.
pub(crate) fn variables(entries: &[Entry]) -> Vec<(String, usize, &'static Setting)> {
    let of_entry = |(index, entry): (usize, &Entry)| {
        let name = name_of(entry);
        let variable = move |key: &'static Setting| Some((variable_of(name.as_deref()?, key.path), index, key));
        KAFKA.keys.iter().filter_map(variable)
    };
    entries.iter().enumerate().flat_map(of_entry).collect()
}

fn variable_of(name: &str, key: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
    };
    format!("{PREFIX}KAFKA_{}_{}", plain(name), plain(key))
}

/// Takes the variable's value if the variable belongs to a pipeline, and says whether it does.
pub(crate) fn take_variable(entries: &mut [Entry], name: &str, value: &str, errors: &mut Vec<SettingsError>) -> bool {
    let found: Vec<(usize, &'static Setting)> =
        variables(entries).into_iter().filter(|known| known.0 == name).map(|known| (known.1, known.2)).collect();
    let [(index, key)] = found.as_slice() else {
        if !found.is_empty() {
            let reason = format!("variable {name} is meant for several [[kafka]] entries; give them other names");
            errors.push(SettingsError::Conflict { reason });
        }
        return !found.is_empty();
    };
    let entry = &mut entries[*index];
    if matches!(entry.values.get(key.path), Some(Resolved { origin: Origin::Flag { .. }, .. })) {
        return true;
    }
    let origin = Origin::Variable { name: name.to_owned() };
    take(entry, key, &Raw::Word(value.to_owned()), origin, errors);
    true
}

/// Takes the flags of `kafka.…`, which all belong to one pipeline.
pub(crate) fn take_flags(entries: &mut Vec<Entry>, flags: Vec<Flag>, errors: &mut Vec<SettingsError>) {
    let Some(first) = flags.first() else { return };
    let named = flags.iter().find(|flag| key_of(flag) == Some("name")).map(|flag| flag.value.clone());
    let known =
        named.as_ref().and_then(|named| entries.iter().position(|entry| name_of(entry).as_ref() == Some(named)));
    if let (Some(name), None, 1) = (&named, known, flags.len()) {
        let names: Vec<String> = entries.iter().filter_map(name_of).collect();
        let there_are = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let reason = format!("no [[kafka]] entry is called `{name}`; there are: {there_are}");
        errors.push(SettingsError::Conflict { reason });
        return;
    }
    let index = known.unwrap_or_else(|| {
        entries.push(Entry::empty(&KAFKA, Origin::Flag { name: first.name.clone() }));
        entries.len() - 1
    });
    let entry = &mut entries[index];
    entry.of_flags = true;
    for flag in flags {
        let origin = Origin::Flag { name: flag.name.clone() };
        let key = key_of(&flag).unwrap_or_default();
        match KAFKA.keys.iter().find(|known| known.path == key) {
            Some(key) if matches!(key.kind, Kind::Secret) => {
                let reason =
                    "everybody can see the arguments of a process; give it in a variable, or in the file".to_owned();
                errors.push(SettingsError::BadValue { place: origin.place_of(key.path), reason });
            }
            Some(key) => take(entry, key, &Raw::Word(flag.value), origin, errors),
            None => errors.push(SettingsError::unknown_key(key, &origin, KAFKA.keys.iter().map(|key| key.path))),
        }
    }
}

fn take(entry: &mut Entry, key: &'static Setting, raw: &Raw, origin: Origin, errors: &mut Vec<SettingsError>) {
    match key.kind.check(raw) {
        Ok(value) => {
            entry.values.insert(key.path, Resolved { value, origin });
        }
        Err(reason) => {
            entry.refused.push(key.path);
            errors.push(SettingsError::BadValue { place: origin.place_of(key.path), reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_names_pipeline_and_key() {
        assert_eq!(variable_of("my-events.v2", "sasl.password"), "WINDROW_KAFKA_MY_EVENTS_V2_SASL_PASSWORD");
        assert_eq!(variable_of("events", "brokers"), "WINDROW_KAFKA_EVENTS_BROKERS");
    }
}
