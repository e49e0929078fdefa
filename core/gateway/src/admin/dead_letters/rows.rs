//! The rows of a dead letter: as they are kept, and as JSON.
//!
//! What is for a DuckDB has been read here, and is written here too. Of ClickHouse's, nobody can read every format and
//! type that ClickHouse does, so ClickHouse is asked: the rows go there as an external table, and come back as JSON.
//! What it takes of them for sure are the rows whose columns are known here; a text is read against the table's columns
//! as they are now, or, where there is no such table any more, as strings.

use std::collections::HashMap;
use std::time::Duration;

use windrow_clickhouse::{Call, CallError, Client};
use windrow_columns::Rows;
use windrow_engine::{
    dead_letters::{DeadLetter, Kept, KeptInsert},
    sink::{Destination, Form},
};
use windrow_sql::backquote;

use super::super::answer::Answer;
use crate::backend::{Backend, ClickHouse};
use crate::multipart::Multipart;
use crate::sql_backend::rows_as_json;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The rows as they would be sent to ClickHouse, or the message's value, with the format as the end of the file's name.
pub(super) fn payload(dead_letter: &DeadLetter) -> Answer {
    let extension = match &dead_letter.kept {
        Kept::Insert(insert) => match &insert.destination.form {
            Form::Native { .. } => "native",
            Form::Text { format, .. } => format,
        },
        Kept::Message(message) => message.source.format.as_str(),
    };
    let name = format!("dead-letter-{}.{}", dead_letter.summary.id, extension.to_ascii_lowercase());
    Answer::file(name, dead_letter.payload())
}

pub(super) async fn as_json(backend: &Backend, dead_letter: &DeadLetter, limit: usize) -> Answer {
    let Kept::Insert(insert) = &dead_letter.kept else {
        return Answer::error(
            422,
            "a message is kept as it was, and has no rows before it is retried; see its value, or /payload",
        );
    };
    let Some(ClickHouse { client, .. }) = backend.clickhouse() else {
        return written_here(insert, limit).unwrap_or_else(|why| {
            Answer::error(422, &format!("the rows can't be shown; they can be had as they are under /payload. {why}"))
        });
    };
    match ask(client, insert, &dead_letter.payload(), limit).await {
        Ok(body) => Answer::new(200, "application/json", body),
        Err(CallError::Exception(exception)) => Answer::error(
            422,
            &format!("ClickHouse can't read the rows; they can be had as they are under /payload. {}", exception.line),
        ),
        Err(error) => Answer::error(503, &format!("ClickHouse has to read the rows, and can't be asked: {error}")),
    }
}

fn written_here(dead_letter: &KeptInsert, limit: usize) -> Result<Answer, String> {
    let (Rows::Parsed(block), Form::Native { types }) = (&dead_letter.rows, &dead_letter.destination.form) else {
        return Err("They are text of a format that is not known here".to_owned());
    };
    let body = rows_as_json(&dead_letter.destination.columns, types, block, limit)?;
    Ok(Answer::new(200, "application/json", body))
}

async fn ask(client: &Client, dead_letter: &KeptInsert, payload: &[u8], limit: usize) -> Result<Vec<u8>, CallError> {
    let destination = &dead_letter.destination;
    let (format, structure) = match &destination.form {
        Form::Native { types } => {
            ("Native", structure(&destination.columns, |at| types.get(at).map(ToString::to_string)))
        }
        Form::Text { format, .. } => {
            let known = types_of_table(client, destination).await?;
            (*format, structure(&destination.columns, |at| known.get(destination.columns.get(at)?).cloned()))
        }
    };
    let mut parts = Multipart::new();
    parts.table("letter", &[payload]);
    let form = parts.end();
    let query = format!("SELECT * FROM letter LIMIT {limit} FORMAT JSON");
    let mut call = Call::new(&client.endpoint().credentials, &query)
        .param("letter_format", format)
        .param("letter_structure", &structure)
        .field("Content-Type", &form.content_type)
        .timeout(TIMEOUT);
    for (name, value) in &destination.settings {
        call = call.param(name, value);
    }
    let body = [form.body];
    Ok(client.call(call.body(&body)).await?.body.to_vec())
}

fn structure(columns: &[String], type_at: impl Fn(usize) -> Option<String>) -> String {
    let column = |(at, name): (usize, &String)| {
        format!("{} {}", backquote(name), type_at(at).unwrap_or_else(|| "String".to_owned()))
    };
    columns.iter().enumerate().map(column).collect::<Vec<_>>().join(", ")
}

/// The types of the table's columns as it is now; none if there is no such table.
async fn types_of_table(client: &Client, destination: &Destination) -> Result<HashMap<String, String>, CallError> {
    let (database, table) = (backquote(&destination.database), backquote(&destination.table));
    let describe = format!("DESCRIBE TABLE {database}.{table} FORMAT JSONCompactEachRow");
    let call = Call::new(&client.endpoint().credentials, &describe).timeout(TIMEOUT);
    let answer = match client.call(call).await {
        Ok(answer) => answer,
        Err(CallError::Exception(_)) => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let column = |line: &str| {
        let fields: Vec<String> = serde_json::from_str(line).ok()?;
        let [name, data_type, ..] = <[String; 2]>::try_from(fields.into_iter().take(2).collect::<Vec<_>>()).ok()?;
        Some((name, data_type))
    };
    Ok(answer.text().lines().filter_map(column).collect())
}
