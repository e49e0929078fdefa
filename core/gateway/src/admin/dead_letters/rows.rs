//! The rows of a dead letter: as they are kept, and as JSON.
//!
//! Rows for a DuckDB were parsed here, and are written here too. Rows for ClickHouse may have formats and
//! types that only ClickHouse knows, so ClickHouse is asked: the rows are sent as an external table, and come
//! back as JSON. ClickHouse surely reads parsed rows, whose column types are known here. Text is read with
//! the types that the table's columns have now, or as strings where there is no such table any more.

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
use crate::sql_backend::SqlBackend;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a file with the rows as they would be sent to ClickHouse, or with the message's value. Its
/// extension is the format.
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
    let client = match backend {
        Backend::ClickHouse(ClickHouse { client, .. }) => client,
        Backend::Sql(backend) => {
            return written_here(&**backend, insert, limit).unwrap_or_else(|why| {
                let text = format!("the rows can't be shown; they can be had as they are under /payload. {why}");
                Answer::error(422, &text)
            });
        }
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

fn written_here(backend: &dyn SqlBackend, dead_letter: &KeptInsert, limit: usize) -> Result<Answer, String> {
    let (Rows::Parsed(block), Form::Native { types }) = (&dead_letter.rows, &dead_letter.destination.form) else {
        return Err("They are text of a format that is not known here".to_owned());
    };
    let body = backend.rows_as_json(&dead_letter.destination.columns, types, block, limit)?;
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

/// Returns the present types of the table's columns, by name; none if there is no such table.
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
