//! Reading of the API's requests: which dead letters they select, and which page of the list.

use serde_json::Value;
use windrow_clickhouse::percent_decode;
use windrow_engine::dead_letters::{Page, Selection};

pub(super) const MAX_LISTED: usize = 10_000;
const USUALLY_LISTED: usize = 100;

/// Conditions and page of a list, read from a URL.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) selection: Selection,
    pub(super) page: Page,
}

/// Reads the query string of a list. An error is a sentence for the client.
pub(super) fn listed(query: &str, now_micros: u64) -> Result<Listed, String> {
    let mut listed = Listed { selection: Selection::default(), page: Page { offset: 0, limit: USUALLY_LISTED } };
    for (name, value) in parameters(query) {
        match name.as_str() {
            "limit" => listed.page.limit = number(&name, &value)?.min(MAX_LISTED),
            "offset" => listed.page.offset = number(&name, &value)?,
            _ => listed.selection.add(&name, &value, now_micros)?,
        }
    }
    Ok(listed)
}

pub(super) fn number(name: &str, value: &str) -> Result<usize, String> {
    value.parse().map_err(|_| format!("'{value}' is no number; '{name}' wants one"))
}

pub(in crate::admin) fn parameters(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| String::from_utf8_lossy(&percent_decode(text)).into_owned();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(n, v)| (decoded(n), decoded(v))).collect()
}

/// Reads from a JSON body which dead letters an action is for. Only `"all": true` selects all of them: a
/// selection that is empty by mistake must not mean everything.
pub(super) fn chosen(body: &[u8], now_micros: u64) -> Result<Selection, String> {
    const WANTED: &str =
        "the body says which dead letters are meant: {\"ids\": [1, 2]}, {\"table\": \"db.t\", \"code\": 469}, \
                          or {\"all\": true}";
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else { return Err(WANTED.to_owned()) };
    let mut selection = Selection::default();
    let mut all = false;
    for (name, value) in &fields {
        match (name.as_str(), value) {
            ("all", Value::Bool(wanted)) => all = *wanted,
            ("ids", Value::Array(ids)) => {
                for id in ids {
                    selection.add("id", &plain(id), now_micros)?;
                }
            }
            (_, Value::String(_) | Value::Number(_)) => selection.add(name, &plain(value), now_micros)?,
            _ => return Err(format!("'{name}' can't be {value}; {WANTED}")),
        }
    }
    let names_none = fields.get("ids").is_some_and(|ids| ids.as_array().is_some_and(Vec::is_empty));
    match all == selection.is_everything() && !names_none {
        true => Ok(selection),
        false => Err(WANTED.to_owned()),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use windrow_clickhouse::ErrorCode;

    use super::*;

    #[test]
    fn a_list_is_asked_for_in_the_url() {
        let asked = listed("table=db.t&user=joe%20d&code=469&limit=5&offset=10&since=1000", 0).unwrap();
        assert_eq!(asked.page, Page { offset: 10, limit: 5 });
        assert_eq!(asked.selection.database.as_deref(), Some("db"));
        assert_eq!(asked.selection.table.as_deref(), Some("t"));
        assert_eq!(asked.selection.user.as_deref(), Some("joe d"));
        assert_eq!(
            (asked.selection.code, asked.selection.since_micros),
            (Some(ErrorCode::VIOLATED_CONSTRAINT), Some(1_000_000_000))
        );
        assert!(listed("", 0).unwrap().selection.is_everything());
        assert_eq!(listed("limit=99999999", 0).unwrap().page.limit, MAX_LISTED);
        for wrong in ["limit=x", "code=x", "colour=red", "id=a", "since=never"] {
            assert!(listed(wrong, 0).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_chosen_by_mistake() {
        let ids = chosen(br#"{"ids": [3, "4"], "table": "t"}"#, 0).unwrap();
        assert_eq!(ids.ids.iter().map(|id| id.0).collect::<Vec<_>>(), [3, 4]);
        assert!(chosen(br#"{"all": true}"#, 0).unwrap().is_everything());
        for wrong in [
            "",
            "{}",
            "[]",
            "{\"all\": false}",
            "{\"ids\": []}",
            "{\"ids\": [], \"all\": true}",
            "{\"ids\": [1.5]}",
            "{\"ids\": [-1]}",
            "{\"all\": true, \"table\": \"t\"}",
            "{\"table\": null}",
            "{\"tabel\": \"t\"}",
        ] {
            assert!(chosen(wrong.as_bytes(), 0).is_err(), "{wrong}");
        }
    }
}
