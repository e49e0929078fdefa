//! What `windrow config` prints.

use std::fmt::Write;

use crate::catalogue::{ListSection, DUCKDB_USERS, EMBEDDED_USERS, SETTINGS, TABLES};
use crate::entries::Entry;
use crate::kafka::catalogue::KAFKA;
use crate::kind::Value;
use crate::layers::Layers;
use crate::origin::Origin;

/// One line: a setting, its value as it may be shown, and its source.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub path: String,
    pub shown: String,
    pub origin: Origin,
}

pub(crate) fn rows(layers: &Layers) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in SETTINGS {
        let resolved = layers.resolved(setting.path);
        let shown = setting.kind.show(&resolved.value);
        rows.push(Row { path: setting.path.to_owned(), shown, origin: resolved.origin.clone() });
    }
    add_entries(&TABLES, &layers.entries.tables, &mut rows);
    add_entries(&EMBEDDED_USERS, &layers.entries.embedded_users, &mut rows);
    add_entries(&DUCKDB_USERS, &layers.entries.duckdb_users, &mut rows);
    add_entries(&KAFKA, &layers.entries.kafka, &mut rows);
    rows
}

fn add_entries(list: &ListSection, entries: &[Entry], rows: &mut Vec<Row>) {
    for (index, entry) in entries.iter().enumerate() {
        for key in list.keys {
            let resolved = &entry.values[key.path];
            if resolved.value != Value::Unset {
                let path = format!("{}[{}].{}", list.path, index + 1, key.path);
                rows.push(Row { path, shown: key.kind.show(&resolved.value), origin: resolved.origin.clone() });
            }
        }
    }
}

pub(crate) fn table(rows: &[Row]) -> String {
    let path_width = widest(rows.iter().map(|row| row.path.as_str()), 60);
    let value_width = widest(rows.iter().map(|row| row.shown.as_str()), 40);
    let mut text = String::new();
    for row in rows {
        // Writing into a String can't fail.
        let _ = writeln!(text, "{:path_width$}  {:value_width$}  {}", row.path, row.shown, row.origin);
    }
    text
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>, limit: usize) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0).min(limit)
}
