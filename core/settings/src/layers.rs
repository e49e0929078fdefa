//! The order of the sources: file, then variables, then flags; and which source gave each value.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::catalogue::{self, DefaultValue, Setting, LIST_SECTIONS, SETTINGS};
use crate::entries::{self, Entries};
use crate::errors::SettingsError;
use crate::file::{self, FileContent, FileKey};
use crate::kafka::catalogue::KAFKA;
use crate::kafka::overrides;
use crate::kind::{Raw, Value};
use crate::memory::default_buffer_bytes;
use crate::origin::Origin;
use crate::variables::{is_set_by_kubernetes, variable_of, CONFIG_VARIABLE, PREFIX};

/// A flag of the command line that gives a setting. Flags of `kafka.…` belong to one pipeline: the one of the
/// file that the flag `kafka.name` names, else a pipeline of their own.
#[derive(Debug, Clone)]
pub struct Flag {
    /// The path of the setting, such as `http.listen`.
    pub path: String,
    /// The flag as the user wrote it, such as `--http`. Errors and `windrow config` show it.
    pub name: String,
    pub value: String,
}

/// The sources of settings, weakest first.
#[derive(Debug)]
pub struct Sources<E> {
    /// The path of the settings file. Without it, the variable `WINDROW_CONFIG` may name the file.
    pub config_path: Option<PathBuf>,
    /// All variables of the process. Those that aren't Windrow's are skipped.
    pub env: E,
    pub flags: Vec<Flag>,
    /// The value of `backend` if no source sets it, in place of the table's default.
    pub default_backend: Option<String>,
}

/// A checked value and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub value: Value,
    pub origin: Origin,
}

/// The values that won among all sources.
#[derive(Debug)]
pub(crate) struct Layers {
    values: HashMap<&'static str, Resolved>,
    pub entries: Entries,
}

impl Layers {
    /// Merges the sources. A value that could not be used is reported in `errors`, and the weaker source
    /// holds in its place, so that the rest can be checked too.
    pub fn merge<E: Iterator<Item = (String, String)>>(sources: Sources<E>, errors: &mut Vec<SettingsError>) -> Self {
        let mut variables: Vec<(String, String)> = sources.env.filter(|(name, _)| name.starts_with(PREFIX)).collect();
        variables.sort();
        let mut layers = Self { values: defaults(), entries: Entries::default() };
        if let Some(backend) = sources.default_backend {
            layers.take("backend", Raw::Word(backend), Origin::Default, errors);
        }
        let named_by_variable = || variables.iter().find(|(name, _)| name == CONFIG_VARIABLE).map(|found| &found.1);
        if let Some(path) = sources.config_path.or_else(|| named_by_variable().map(PathBuf::from)) {
            layers.take_file(&path.display().to_string(), file::read(&path, errors), errors);
        }
        // Before the variables, which may give what a pipeline of the flags lacks.
        let (of_kafka, flags) = sources.flags.into_iter().partition(|flag| overrides::key_of(flag).is_some());
        overrides::take_flags(&mut layers.entries.kafka, of_kafka, errors);
        for (name, value) in variables {
            layers.take_variable(name, value, errors);
        }
        layers.entries.kafka.iter().for_each(|entry| entries::missing_keys(&KAFKA, entry, errors));
        for flag in flags as Vec<Flag> {
            let origin = Origin::Flag { name: flag.name };
            layers.take(&flag.path, Raw::Word(flag.value), origin, errors);
        }
        layers
    }

    pub fn resolved(&self, path: &str) -> &Resolved {
        self.values.get(path).expect("only paths of the table are asked for, and each has a default")
    }

    fn take_file(&mut self, path: &str, mut content: FileContent, errors: &mut Vec<SettingsError>) {
        content.keys.sort_by_key(|key| key.line);
        content.entries.sort_by_key(|entry| entry.line);
        for FileKey { path: mut key, line, raw } in content.keys {
            // In a section, where the addresses need a name.
            if key == "backend.replicas" {
                key.truncate("backend".len());
            }
            let origin = Origin::File { path: path.to_owned(), line };
            let list =
                LIST_SECTIONS.iter().find(|list| key == list.path || key.starts_with(&format!("{}.", list.path)));
            match list {
                Some(list) if matches!(&raw, Raw::List(items) if items.is_empty() && key == list.path) => {}
                Some(list) => {
                    let meant = Some(format!("[[{}]]", list.path));
                    errors.push(SettingsError::UnknownKey { place: origin.place_of(&key), meant });
                }
                None => self.take(&key, raw, origin, errors),
            }
        }
        self.entries = entries::check(path, content.entries, errors);
    }

    fn take_variable(&mut self, name: String, value: String, errors: &mut Vec<SettingsError>) {
        if name == CONFIG_VARIABLE || is_set_by_kubernetes(&name) {
            return;
        }
        match SETTINGS.iter().find(|setting| variable_of(setting.path) == name) {
            Some(setting) => self.take(setting.path, Raw::Word(value), Origin::Variable { name }, errors),
            None if overrides::take_variable(&mut self.entries.kafka, &name, &value, errors) => {}
            None => {
                let of_pipelines = overrides::variables(&self.entries.kafka).into_iter().map(|known| known.0);
                let known: Vec<String> =
                    SETTINGS.iter().map(|setting| variable_of(setting.path)).chain(of_pipelines).collect();
                let meant = crate::nearest::nearest_variable(&name, &known);
                errors.push(SettingsError::UnknownKey { place: format!("variable {name}"), meant });
            }
        }
    }

    fn take(&mut self, path: &str, raw: Raw, origin: Origin, errors: &mut Vec<SettingsError>) {
        let Some(setting) = catalogue::setting(path) else {
            let known = SETTINGS.iter().map(|setting| setting.path).chain(LIST_SECTIONS.iter().map(|list| list.path));
            errors.push(SettingsError::unknown_key(path, &origin, known));
            return;
        };
        match setting.kind.check(&raw) {
            Ok(value) => {
                self.values.insert(setting.path, Resolved { value, origin });
            }
            Err(reason) => errors.push(SettingsError::BadValue { place: origin.place_of(path), reason }),
        }
    }
}

fn defaults() -> HashMap<&'static str, Resolved> {
    let resolved = |setting: &Setting| Resolved { value: default_value(setting), origin: Origin::Default };
    SETTINGS.iter().map(|setting| (setting.path, resolved(setting))).collect()
}

pub(crate) fn default_value(setting: &Setting) -> Value {
    match setting.default {
        DefaultValue::Is(text) => {
            setting.kind.check(&Raw::Word(text.to_owned())).expect("a test reads every default of the table")
        }
        DefaultValue::Unset | DefaultValue::Required => Value::Unset,
        DefaultValue::ShareOfMemory => Value::Integer(default_buffer_bytes()),
    }
}
