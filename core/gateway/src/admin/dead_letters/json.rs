//! Dead letters as JSON.

use serde_json::{json, Map, Value};
use windrow_engine::{
    dead_letters::{write_moment, DeadLetter, DeadLetterSummary, Kept, KeptInsert, Listing, MessageDeadLetter},
    sink::Form,
};

pub fn listing_json(listing: &Listing) -> Value {
    let dead_letters: Vec<Value> = listing.dead_letters.iter().map(|dead_letter| summary_json(dead_letter)).collect();
    json!({ "total": listing.total, "letters": dead_letters })
}

fn summary_json(dead_letter: &DeadLetterSummary) -> Value {
    let (stream, message) = (dead_letter.origin.stream.as_deref(), dead_letter.message);
    json!({
        "id": dead_letter.id.0,
        "database": dead_letter.origin.database,
        "table": dead_letter.origin.table,
        "user": dead_letter.origin.user,
        "pipeline": stream.map(|stream| &stream.pipeline),
        "topic": stream.map(|stream| &stream.topic),
        "partition": message.map(|message| message.partition),
        "offset": message.map(|message| message.offset),
        "code": dead_letter.code.number(),
        "error": &*dead_letter.error,
        "arrived": write_moment(dead_letter.arrived_micros),
        "failed": write_moment(dead_letter.failed_micros),
        "attempts": dead_letter.attempts,
        "rows": dead_letter.rows,
        "bytes": dead_letter.payload_bytes,
        "ack": dead_letter.ack.as_str(),
        "format": dead_letter.origin.format,
        "query": dead_letter.origin.query,
        "query_id": dead_letter.query_id.to_string(),
    })
}

/// Returns everything about a dead letter but its rows. A message has its key, headers and value.
pub fn dead_letter_json(dead_letter: &DeadLetter) -> Value {
    let mut value = summary_json(&dead_letter.summary);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("error".to_owned(), Value::from(dead_letter.error.as_str()));
        match &dead_letter.kept {
            Kept::Insert(insert) => add_insert(fields, insert),
            Kept::Message(message) => add_message(fields, message),
        }
    }
    value
}

fn add_insert(fields: &mut Map<String, Value>, insert: &KeptInsert) {
    let destination = &insert.destination;
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
    fields.insert("kept_as".to_owned(), Value::from(kept_as));
    fields.insert("columns".to_owned(), Value::from(columns));
    fields.insert("settings".to_owned(), Value::from(settings));
    fields.insert("roles".to_owned(), Value::from(destination.roles.clone()));
    fields.insert("quota_key".to_owned(), Value::from(destination.quota_key.as_str()));
}

fn add_message(fields: &mut Map<String, Value>, message: &MessageDeadLetter) {
    let header = |(name, value): &(String, Option<Vec<u8>>)| json!({ "name": name, "value": shown(value.as_deref()) });
    fields.insert("kept_as".to_owned(), Value::from(message.source.format.as_str()));
    fields.insert("was_read".to_owned(), Value::from(message.was_read));
    fields.insert("timestamp_ms".to_owned(), Value::from(message.timestamp_ms));
    fields.insert("key".to_owned(), shown(message.key.as_deref()));
    fields.insert("headers".to_owned(), Value::from(message.headers.iter().map(header).collect::<Vec<_>>()));
    fields.insert("value".to_owned(), shown(message.value.as_deref()));
}

/// Returns the first 64 KiB of a message's key or value as text. Bytes that are not UTF-8 become replacement
/// characters; `/payload` has the bytes.
fn shown(bytes: Option<&[u8]>) -> Value {
    const SHOWN_BYTES: usize = 64 << 10;
    bytes.map_or(Value::Null, |bytes| {
        Value::from(String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned())
    })
}
