//! The table that `windrow config` prints.

use std::fmt::{self, Write};

use crate::catalogue::{
    ListSection, ADBC_USERS, DUCKDB_USERS, EMBEDDED_USERS, OTLP_MAPPINGS, OTLP_TOKENS, SETTINGS, TABLES,
};
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
    value: Hidden,
    pub origin: Origin,
}

/// A value that may be a secret. It is kept only to be compared, and `Debug` hides it.
#[derive(Clone)]
struct Hidden(Value);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The difference between settings in force and settings that were read later, as the paths of the settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Settings that take effect when settings are reloaded.
    pub at_reload: Vec<String>,
    /// Settings that take effect at the next start.
    pub at_start: Vec<String>,
}

/// The settings that a reload exchanges; a `*` at the end stands for any characters.
const AT_RELOAD: [&str; 14] = [
    "backend.hedge_reads_ms",
    "log.level",
    "http.tls_certificate",
    "http.tls_key",
    "http.max_body_bytes_gathered",
    "http.max_decompressed_bytes",
    "gather.flush_policy",
    "gather.async_insert*",
    "gather.wait_for_async_insert*",
    "gather.admission_away_ttl_ms",
    "gather.admission_kept_ttl_ms",
    "tables[*",
    "otlp.tokens[*",
    "otlp.mappings[*",
];

/// Says whether a reload exchanges the setting.
pub(crate) fn is_exchanged_at_reload(path: &str) -> bool {
    AT_RELOAD.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == *known,
    })
}

/// Returns the rows of `new` that are exchanged, and the others as they were `before`.
pub(crate) fn mixed(before: &[Row], new: &[Row], is_exchanged: impl Fn(&str) -> bool) -> Vec<Row> {
    let kept = before.iter().filter(|row| !is_exchanged(&row.path));
    kept.chain(new.iter().filter(|row| is_exchanged(&row.path))).cloned().collect()
}

pub(crate) fn difference(before: &[Row], now: &[Row], is_exchanged: impl Fn(&str) -> bool) -> Difference {
    let known =
        |rows: &[Row], wanted: &Row| rows.iter().any(|row| row.path == wanted.path && row.value.0 == wanted.value.0);
    let gone = before.iter().filter(|row| !known(now, row));
    let new = now.iter().filter(|row| !known(before, row));
    let mut paths: Vec<String> = gone.chain(new).map(|row| row.path.clone()).collect();
    paths.sort_unstable();
    paths.dedup();
    let (at_reload, at_start) = paths.into_iter().partition(|path| is_exchanged(path));
    Difference { at_reload, at_start }
}

pub(crate) fn rows(layers: &Layers) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in SETTINGS {
        let resolved = layers.resolved(setting.path);
        let shown = setting.kind.show(&resolved.value);
        let (path, origin) = (setting.path.to_owned(), resolved.origin.clone());
        rows.push(Row { path, shown, value: Hidden(resolved.value.clone()), origin });
    }
    add_entries(&TABLES, &layers.entries.tables, &mut rows);
    add_entries(&EMBEDDED_USERS, &layers.entries.embedded_users, &mut rows);
    add_entries(&DUCKDB_USERS, &layers.entries.duckdb_users, &mut rows);
    add_entries(&OTLP_TOKENS, &layers.entries.otlp_tokens, &mut rows);
    add_entries(&OTLP_MAPPINGS, &layers.entries.otlp_mappings, &mut rows);
    add_entries(&ADBC_USERS, &layers.entries.adbc_users, &mut rows);
    add_entries(&KAFKA, &layers.entries.kafka, &mut rows);
    rows
}

fn add_entries(list: &ListSection, entries: &[Entry], rows: &mut Vec<Row>) {
    for (index, entry) in entries.iter().enumerate() {
        for key in list.keys {
            let resolved = &entry.values[key.path];
            if resolved.value != Value::Unset {
                let path = format!("{}[{}].{}", list.path, index + 1, key.path);
                let (shown, origin) = (key.kind.show(&resolved.value), resolved.origin.clone());
                rows.push(Row { path, shown, value: Hidden(resolved.value.clone()), origin });
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
