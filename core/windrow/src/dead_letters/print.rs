//! Texts that show dead letters to people.

use std::fmt::Write;

use serde_json::Value;

const COLUMNS: [&str; 9] = ["id", "failed", "table", "from", "rows", "bytes", "attempts", "code", "error"];
/// The number of an error's characters that a list shows. More would break lines; `show` prints all of it.
const ERROR_CHARS: usize = 80;

pub(super) fn list(listing: &Value) -> String {
    let dead_letters = listing.get("letters").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let total = listing.get("total").and_then(Value::as_u64).unwrap_or(0);
    let rows: Vec<[String; 9]> = dead_letters.iter().map(row).collect();
    let mut text = String::new();
    if !rows.is_empty() {
        let widths: Vec<usize> = (0..COLUMNS.len())
            .map(|at| rows.iter().map(|row| row[at].chars().count()).chain([COLUMNS[at].len()]).max().unwrap_or(0))
            .collect();
        line(&mut text, &widths, COLUMNS.iter().copied());
        rows.iter().for_each(|row| line(&mut text, &widths, row.iter().map(String::as_str)));
    }
    // Writing to a String never fails.
    let _ = match (total, dead_letters.len() as u64) {
        (0, _) => writeln!(text, "no dead letters"),
        (total, shown) if shown < total => writeln!(text, "{shown} of {total} dead letters"),
        (1, _) => writeln!(text, "1 dead letter"),
        (total, _) => writeln!(text, "{total} dead letters"),
    };
    text
}

fn row(dead_letter: &Value) -> [String; 9] {
    let field = |name: &str| dead_letter.get(name).map(plain).unwrap_or_default();
    let failed = field("failed");
    let moment = failed.split('.').next().unwrap_or_default().replace('T', " ");
    let table = format!("{}.{}", field("database"), field("table"));
    let error: String = one_line(&field("error")).chars().take(ERROR_CHARS).collect();
    let from = match dead_letter.get("topic").and_then(Value::as_str) {
        Some(topic) => one_line(&format!("{topic}:{}:{}", field("partition"), field("offset"))),
        None => field("user"),
    };
    [field("id"), moment, table, from, field("rows"), field("bytes"), field("attempts"), field("code"), error]
}

fn line<'a>(text: &mut String, widths: &[usize], cells: impl Iterator<Item = &'a str>) {
    let mut cells: Vec<String> = cells.zip(widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
    if let Some(last) = cells.last_mut() {
        last.truncate(last.trim_end().len());
    }
    text.push_str(&cells.join("  "));
    text.push('\n');
}

/// The fields in the order in which they are printed: what, why, when, and then the rest.
const FIELDS: [&str; 29] = [
    "id",
    "database",
    "table",
    "user",
    "pipeline",
    "topic",
    "partition",
    "offset",
    "code",
    "error",
    "arrived",
    "failed",
    "attempts",
    "rows",
    "bytes",
    "ack",
    "query",
    "format",
    "query_id",
    "kept_as",
    "columns",
    "settings",
    "roles",
    "quota_key",
    "timestamp_ms",
    "was_read",
    "key",
    "headers",
    "value",
];

/// Writes one field a line, named as the API names them.
pub(super) fn dead_letter(dead_letter: &Value) -> String {
    let mut text = String::new();
    let known = FIELDS.iter().filter_map(|name| Some((name, dead_letter.get(name).filter(|value| !value.is_null())?)));
    for (name, value) in known {
        let shown = match value {
            Value::Array(items) => items.iter().map(item).collect::<Vec<_>>().join(", "),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect::<Vec<_>>().join(", ")
            }
            value => plain(value),
        };
        let _ = writeln!(text, "{name:<10} {}", one_line(&shown));
    }
    text
}

fn item(value: &Value) -> String {
    match (value.get("name"), value.get("type")) {
        (Some(name), Some(data_type)) => format!("{} {}", plain(name), plain(data_type)),
        (Some(name), None) => match value.get("value") {
            Some(value) => format!("{}={}", plain(name), plain(value)),
            None => plain(name),
        },
        _ => plain(value),
    }
}

/// Writes the rows of ClickHouse's answer in FORMAT JSON, one row a line.
pub(super) fn rows(answer: &Value) -> String {
    let rows = answer.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Writes the outcome of a retry or a discard.
pub(super) fn change(answer: &Value, deed: &str) -> String {
    let count = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut text = format!("{} of {} dead letters {deed}\n", count(deed), count("selected"));
    for failure in answer.get("failed").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| failure.get(name).map(plain).unwrap_or_default();
        let _ = writeln!(text, "{}: {}", field("id"), one_line(&field("error")));
    }
    text
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Replaces control characters: a client's text may hold anything, also commands that a terminal would obey.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_a_table() {
        let dead_letter = json!({"id": 7, "failed": "2026-01-01T12:00:00.000001Z", "database": "d", "table": "t", "user": "joe",
            "rows": 1, "bytes": 20, "attempts": 1, "code": 469, "error": format!("bad\n\u{1b}[31m{}", "é".repeat(200))});
        let shown = list(&json!({"total": 3, "letters": [dead_letter]}));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "id  failed               table  from  rows  bytes  attempts  code  error");
        assert!(lines[1].starts_with("7   2026-01-01 12:00:00  d.t    joe   1     20     1         469   bad  [31mé"));
        assert_eq!(lines[2], "1 of 3 dead letters");
        assert!(!shown.contains('\u{1b}'), "what a client sent is not for the terminal to obey");
        assert_eq!(list(&json!({"total": 0, "letters": []})), "no dead letters\n");
    }

    #[test]
    fn a_message_is_told_by_where_it_stands() {
        let message = json!({"id": 8, "failed": "2026-01-01T12:00:00Z", "database": "d", "table": "t", "user": "",
            "pipeline": "p", "topic": "clicks", "partition": 3, "offset": 77, "rows": 0, "bytes": 9, "attempts": 0,
            "code": 0, "error": "no", "key": null, "headers": [{"name": "h", "value": "v"}], "value": "{x"});
        let shown = list(&json!({"total": 1, "letters": [message]}));
        assert!(shown.contains("d.t    clicks:3:77  0     9      0         0     no"), "{shown}");
        let shown = dead_letter(&message);
        assert!(shown.contains("offset     77\n") && shown.contains("headers    h=v\n"), "{shown}");
        assert!(shown.contains("value      {x\n") && !shown.contains("key"), "{shown}");
    }

    #[test]
    fn a_dead_letter_is_a_line_a_field() {
        let shown = dead_letter(
            &json!({"id": 7, "columns": [{"name": "a", "type": "UInt8"}, {"name": "b"}], "settings": {"x": "1"}}),
        );
        assert!(shown.contains("id         7\n") && shown.contains("a UInt8, b") && shown.contains("x=1"), "{shown}");
        let changed =
            change(&json!({"selected": 2, "retried": 1, "failed": [{"id": 9, "error": "no\nroom"}]}), "retried");
        assert_eq!(changed, "1 of 2 dead letters retried\n9: no room\n");
    }
}
