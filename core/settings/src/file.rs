//! The settings file: TOML into a flat list of keys, each with its line.

use std::fs;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::catalogue::{list_section, ListSection};
use crate::errors::SettingsError;
use crate::kind::Raw;

/// The size of the longest file that is read. No settings file is longer, but a device or a log may be.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A `key = value` of the file.
#[derive(Debug)]
pub(crate) struct FileKey {
    /// Sections and key, joined by dots.
    pub path: String,
    pub line: usize,
    pub raw: Raw,
}

/// One `[[path]]` section.
#[derive(Debug)]
pub(crate) struct FileEntry {
    pub path: String,
    pub line: usize,
    /// Paths relative to the section.
    pub keys: Vec<FileKey>,
}

/// The content of a settings file.
#[derive(Debug, Default)]
pub(crate) struct FileContent {
    pub keys: Vec<FileKey>,
    pub entries: Vec<FileEntry>,
}

pub(crate) fn read(path: &Path, errors: &mut Vec<SettingsError>) -> FileContent {
    let shown = path.display().to_string();
    match read_text(path) {
        Ok(text) => parse(&shown, &text, errors),
        Err(reason) => {
            errors.push(SettingsError::Unreadable { path: shown, reason });
            FileContent::default()
        }
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let length = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > MAX_FILE_BYTES {
        return Err(format!("it has {length} bytes, more than the {MAX_FILE_BYTES} that a settings file may have"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

pub(crate) fn parse(path: &str, text: &str, errors: &mut Vec<SettingsError>) -> FileContent {
    let lines = Lines { text };
    let (table, faults) = DeTable::parse_recoverable(text);
    for fault in &faults {
        let line = fault.span().map_or(1, |span| lines.line_at(span.start));
        errors.push(SettingsError::Syntax { path: path.to_owned(), line, reason: fault.message().to_owned() });
    }
    let mut content = FileContent::default();
    // After a syntax error the rest can't be trusted: it would only add errors that aren't there.
    if faults.is_empty() {
        flatten("", table.get_ref(), &lines, &mut content);
    }
    content
}

fn flatten(prefix: &str, table: &DeTable<'_>, lines: &Lines<'_>, content: &mut FileContent) {
    for (key, value) in table {
        let path = join(prefix, key.get_ref());
        let line = lines.line_at(key.span().start);
        match value.get_ref() {
            DeValue::Table(inner) if inner.is_empty() => {}
            DeValue::Table(inner) => flatten(&path, inner, lines, content),
            DeValue::Array(items) if is_list_of_tables(items.iter().map(|item| item.get_ref())) => {
                for item in items.iter() {
                    if let DeValue::Table(inner) = item.get_ref() {
                        let line = lines.line_at(item.span().start);
                        let keys = entry_keys(list_section(&path), inner, lines);
                        content.entries.push(FileEntry { path: path.clone(), line, keys });
                    }
                }
            }
            other => content.keys.push(FileKey { path, line, raw: raw(other) }),
        }
    }
}

fn is_list_of_tables<'a, 'b: 'a>(mut items: impl ExactSizeIterator<Item = &'a DeValue<'b>>) -> bool {
    items.len() > 0 && items.all(|item| matches!(item, DeValue::Table(_)))
}

/// Returns the keys of an entry. Keys of a section within the entry, such as `[kafka.tls]`, have the
/// section's name before them.
fn entry_keys(list: Option<&ListSection>, table: &DeTable<'_>, lines: &Lines<'_>) -> Vec<FileKey> {
    let mut keys = Vec::new();
    for (key, value) in table {
        let (path, line) = (key.get_ref().to_string(), lines.line_at(key.span().start));
        match value.get_ref() {
            DeValue::Table(inner) if list.is_some_and(|list| list.has_group(&path)) => {
                keys.push(FileKey { path: path.clone(), line, raw: Raw::Section });
                keys.extend(inner.iter().map(|(key, value)| FileKey {
                    path: join(&path, key.get_ref()),
                    line: lines.line_at(key.span().start),
                    raw: raw(value.get_ref()),
                }));
            }
            other => keys.push(FileKey { path, line, raw: raw(other) }),
        }
    }
    keys
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Raw::Integer(number),
            Err(_) => Raw::Other("number too large"),
        },
        DeValue::Float(digits) => digits.as_str().parse().map_or(Raw::Other("number"), Raw::Float),
        DeValue::Boolean(flag) => Raw::Bool(*flag),
        DeValue::Datetime(moment) => Raw::Date(moment.to_string()),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Table(table) => {
            Raw::Map(table.iter().map(|(key, value)| (key.get_ref().to_string(), raw(value.get_ref()))).collect())
        }
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

struct Lines<'a> {
    text: &'a str,
}

impl Lines<'_> {
    fn line_at(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "backend = \"embedded\"\n[http]\nlisten = \"x\"\nmax = 0x10\n\n[[tables]]\ntable = \"a\"\n[[tables]]\ntable = \"b\"\n\n[[embedded.users]]\nname = \"u\"\ngrants = [\"g\"]\nsettings = { a = 1, b = true }\n";

    #[test]
    fn keys_and_entries_know_their_lines() {
        let mut errors = Vec::new();
        let mut content = parse("f", EXAMPLE, &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        content.keys.sort_by_key(|key| key.line);
        content.entries.sort_by_key(|entry| entry.line);
        let keys: Vec<_> = content.keys.iter().map(|key| (key.path.as_str(), key.line)).collect();
        assert_eq!(keys, [("backend", 1), ("http.listen", 3), ("http.max", 4)]);
        let entries: Vec<_> = content.entries.iter().map(|entry| (entry.path.as_str(), entry.line)).collect();
        assert_eq!(entries, [("tables", 6), ("tables", 8), ("embedded.users", 11)]);
    }

    #[test]
    fn syntax_errors_have_lines() {
        let mut errors = Vec::new();
        parse("w.toml", "backend = \"embedded\"\n[http\nlisten = 3\n", &mut errors);
        assert!(matches!(&errors[0], SettingsError::Syntax { line: 2, .. }), "{errors:?}");
    }

    #[test]
    fn truncations_and_mutations_never_panic() {
        let mut random = fastrand::Rng::with_seed(11);
        for end in 0..EXAMPLE.len() {
            parse("f", &EXAMPLE[..end], &mut Vec::new());
        }
        for _ in 0..5_000 {
            let mut bytes = EXAMPLE.as_bytes().to_vec();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            parse("f", &String::from_utf8_lossy(&bytes), &mut Vec::new());
        }
    }
}
