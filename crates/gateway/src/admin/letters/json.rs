//! Dead letters as JSON.

use serde_json::{json, Map, Value};
use windrow_gatherer::dead_letters::{write_moment, DeadLetter, LetterSummary, Listing};
use windrow_sink::Form;

pub fn listing_json(listing: &Listing) -> Value {
    let letters: Vec<Value> = listing.letters.iter().map(|letter| summary_json(letter)).collect();
    json!({ "total": listing.total, "letters": letters })
}

fn summary_json(letter: &LetterSummary) -> Value {
    json!({
        "id": letter.id.0,
        "database": letter.origin.database,
        "table": letter.origin.table,
        "user": letter.origin.user,
        "code": letter.code,
        "error": &*letter.error,
        "arrived": write_moment(letter.arrived_micros),
        "failed": write_moment(letter.failed_micros),
        "attempts": letter.attempts,
        "rows": letter.rows,
        "bytes": letter.payload_bytes,
        "ack": letter.ack.as_str(),
        "format": letter.origin.format,
        "query": letter.origin.query,
        "query_id": letter.query_id.to_string(),
    })
}

/// Everything but the rows.
pub fn letter_json(letter: &DeadLetter) -> Value {
    let mut value = summary_json(&letter.summary);
    let destination = &letter.destination;
    let columns: Vec<Value> = match &destination.form {
        Form::Native { types } => {
            let columns = destination.columns.iter().zip(types);
            columns.map(|(name, data_type)| json!({ "name": name, "type": data_type.to_string() })).collect()
        }
        Form::Text { .. } => destination.columns.iter().map(|name| json!({ "name": name })).collect(),
    };
    let settings: Map<String, Value> =
        destination.settings.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    let kept_as = match destination.form {
        Form::Native { .. } => "Native",
        Form::Text { format, .. } => format,
    };
    if let Some(fields) = value.as_object_mut() {
        fields.insert("error".to_owned(), Value::from(letter.error.as_str()));
        fields.insert("kept_as".to_owned(), Value::from(kept_as));
        fields.insert("columns".to_owned(), Value::from(columns));
        fields.insert("settings".to_owned(), Value::from(settings));
        fields.insert("roles".to_owned(), Value::from(destination.roles.clone()));
        fields.insert("quota_key".to_owned(), Value::from(destination.quota_key.as_str()));
    }
    value
}
