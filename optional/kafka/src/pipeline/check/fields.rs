//! The fields of messages, where a message contains their names: JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use windrow_columns::DataType;

use super::report::UnusedField;

/// Rows of one message that are looked at.
const MAX_ROWS: usize = 1_000;
/// Number of unused fields that are listed. Messages that use data as names would make a list that is too
/// long to read.
const MAX_UNUSED: usize = 1_000;
const EXAMPLE_CHARS: usize = 60;

/// A count of the messages that have each field.
pub(super) struct Fields {
    /// Fields that columns take, with their types and the number of messages that have them.
    taken: BTreeMap<String, (DataType, u64)>,
    unused: BTreeMap<String, (u64, String)>,
}

impl Fields {
    pub fn new<'f>(taken: impl Iterator<Item = (&'f str, &'f DataType)>) -> Fields {
        let taken = taken.map(|(field, data_type)| (field.to_owned(), (data_type.clone(), 0))).collect();
        Fields { taken, unused: BTreeMap::new() }
    }

    /// Counts the fields of one message. A message that isn't JSON has none.
    pub fn see(&mut self, message: &[u8]) {
        let mut seen = Vec::new();
        for row in rows(message) {
            self.walk("", &row, &mut seen);
        }
        // The first value of each stays.
        seen.sort_by(|one, other| one.0.cmp(&other.0));
        seen.dedup_by(|one, other| one.0 == other.0);
        for (name, example) in seen {
            match self.taken.get_mut(name.as_str()) {
                Some((_, count)) => *count += 1,
                None => self.see_unused(name, example),
            }
        }
    }

    /// Counts one message that has such a field, once or several times.
    pub fn see_unused(&mut self, name: String, example: String) {
        if let Some((count, _)) = self.unused.get_mut(&name) {
            *count += 1;
        } else if self.unused.len() < MAX_UNUSED {
            self.unused.insert(name, (1, example));
        }
    }

    fn walk(&self, prefix: &str, row: &Value, seen: &mut Vec<(String, String)>) {
        let Value::Object(fields) = row else { return };
        for (key, value) in fields {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            let begins = format!("{name}.");
            match (self.taken.get(name.as_str()), value) {
                (Some((data_type, _)), value) => {
                    walk_column(&name, value, data_type, seen);
                    seen.push((name, String::new()));
                }
                (None, Value::Object(_)) if self.taken.keys().any(|taken| taken.starts_with(&begins)) => {
                    self.walk(&name, value, seen);
                }
                (None, value) => seen.push((name, shortened(&value.to_string()))),
            }
        }
    }

    /// Returns the number of messages that have this field, if a column takes it.
    pub fn messages_with(&self, field: &str) -> Option<u64> {
        self.taken.get(field).map(|(_, count)| *count)
    }

    /// Returns the unused fields, the most frequent first.
    pub fn unused(self) -> Vec<UnusedField> {
        let unused = self.unused.into_iter();
        let mut unused: Vec<UnusedField> = unused
            .map(|(name, (messages, example))| UnusedField {
                name,
                messages: Some(messages),
                example: Some(example).filter(|example| !example.is_empty()),
            })
            .collect();
        unused.sort_by_key(|field| std::cmp::Reverse(field.messages));
        unused
    }
}

/// Finds the parts of a column's value that the column's type has no place for.
fn walk_column(name: &str, value: &Value, data_type: &DataType, seen: &mut Vec<(String, String)>) {
    match (data_type.plain(), value) {
        (DataType::Nullable(inner), value) => walk_column(name, value, inner, seen),
        (DataType::Array(inner), Value::Array(values)) => {
            values.iter().take(MAX_ROWS).for_each(|value| walk_column(name, value, inner, seen));
        }
        (DataType::Tuple(tuple), Value::Object(fields)) => {
            let Some(names) = &tuple.names else { return };
            for (key, value) in fields {
                let name = format!("{name}.{key}");
                match names.iter().position(|known| known == key) {
                    Some(at) => walk_column(&name, value, &tuple.elements[at], seen),
                    None => seen.push((name, shortened(&value.to_string()))),
                }
            }
        }
        _ => {}
    }
}

/// Returns the rows of a message: objects one after another, or an array of them.
pub(super) fn rows(message: &[u8]) -> Vec<Value> {
    let values = serde_json::Deserializer::from_slice(message).into_iter::<Value>().map_while(Result::ok);
    let rows = values.flat_map(|value| match value {
        Value::Array(rows) => rows,
        row => vec![row],
    });
    rows.take(MAX_ROWS).collect()
}

/// Returns the value of a field, which may lie within others.
pub(super) fn value_of<'r>(row: &'r Value, field: &str) -> Option<&'r Value> {
    if let Some(value) = row.get(field) {
        return Some(value);
    }
    let (outer, inner) = field.split_once('.')?;
    value_of(row.get(outer)?, inner)
}

pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(EXAMPLE_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_by_message() {
        let types = ["Int64", "String", "Array(Tuple(a Int8, b Tuple(c Int8)))"];
        let types = types.map(|text| DataType::parse(text).unwrap());
        let taken = [("id", &types[0]), ("event.time", &types[1]), ("gone", &types[0]), ("list", &types[2])];
        let mut fields = Fields::new(taken.into_iter());
        fields.see(br#"{"list":[{"a":1,"more":1},{"b":{"c":1,"d":2}}]}"#);
        fields.see(br#"{"id":1,"event":{"time":2,"kind":"k"},"x":[1]} {"id":2,"x":3}"#);
        fields.see(br#"[{"id":1},{"id":2,"y":null}]"#);
        fields.see(b"no json");
        fields.see(b"{\"id\":");
        assert_eq!(
            ["id", "event.time", "gone", "x"].map(|it| fields.messages_with(it)),
            [Some(2), Some(1), Some(0), None]
        );
        let unused: Vec<_> = fields.unused().into_iter().map(|it| (it.name, it.messages, it.example)).collect();
        let expected = [
            ("event.kind", 1u64, "\"k\""),
            ("list.b.d", 1, "2"),
            ("list.more", 1, "1"),
            ("x", 1, "[1]"),
            ("y", 1, "null"),
        ];
        assert_eq!(
            unused,
            expected.map(|(name, count, example)| (name.to_owned(), Some(count), Some(example.to_owned())))
        );
    }

    #[test]
    fn values_are_found_inside_others() {
        let row = serde_json::json!({"a": {"b": {"c": 1}}, "a.b": 2});
        assert_eq!(value_of(&row, "a.b.c"), Some(&serde_json::json!(1)));
        assert_eq!(value_of(&row, "a.b"), Some(&serde_json::json!(2)));
        assert_eq!(value_of(&row, "a.x"), None);
        assert_eq!(shortened(&"é".repeat(61)).chars().count(), 61);
    }
}
