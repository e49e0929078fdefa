//! The table as a writer has to know it.

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::{Call, Client};

use super::error::WriterError;
use super::value::Column;
use crate::destination::Destination;

const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Table {
    pub(super) destination: Arc<Destination>,
    pub(super) columns: Vec<Column>,
}

struct Described {
    database: String,
    name: String,
    type_name: String,
    default_kind: String,
}

/// Asks for the columns that are named, or for all columns that rows may give values to.
pub(super) async fn describe(client: &Client, table: &str, columns: &[&str]) -> Result<Table, WriterError> {
    let (database, table) = table.split_once('.').unwrap_or(("", table));
    let query = "SELECT database, name, type, default_kind FROM system.columns WHERE table = {t:String} \
                 AND database = if({d:String} = '', currentDatabase(), {d:String}) ORDER BY position FORMAT RowBinary";
    let call = Call::new(&client.endpoint().credentials, query).param("param_d", database).param("param_t", table);
    let answer = client.call(call.timeout(TIMEOUT)).await?;
    let described = read(&answer.body).ok_or_else(|| WriterError::Table("its columns can't be read".into()))?;
    let Some(first) = described.first() else {
        return Err(WriterError::Table(format!("there is no table {table}, or its columns may not be seen")));
    };
    let mut destination =
        Destination { database: first.database.clone(), table: table.to_owned(), ..Destination::default() };
    let mut typed = Vec::new();
    for column in chosen(&described, columns)? {
        let Described { name, type_name, .. } = column;
        destination.columns.push(name.clone());
        destination.types.push(type_name.clone());
        let known = Column::of(name.clone(), type_name.clone());
        typed.push(
            known.ok_or_else(|| WriterError::Table(format!("rows can't give column {name} values of {type_name}")))?,
        );
    }
    Ok(Table { destination: Arc::new(destination), columns: typed })
}

fn chosen<'a>(described: &'a [Described], names: &[&str]) -> Result<Vec<&'a Described>, WriterError> {
    let takes_values =
        |column: &&Described| !matches!(column.default_kind.as_str(), "MATERIALIZED" | "ALIAS" | "EPHEMERAL");
    if names.is_empty() {
        return Ok(described.iter().filter(takes_values).collect());
    }
    let find = |name: &&str| {
        let column = described.iter().find(|column| column.name == **name);
        column.ok_or_else(|| WriterError::Table(format!("it has no column {name}")))
    };
    names.iter().map(find).collect()
}

fn read(mut body: &[u8]) -> Option<Vec<Described>> {
    let mut described = Vec::new();
    while !body.is_empty() {
        let mut text = || take_text(&mut body);
        described.push(Described { database: text()?, name: text()?, type_name: text()?, default_kind: text()? });
    }
    Some(described)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let mut length = 0_usize;
    for shift in (0..28).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            let text = rest.get(..length)?;
            *rest = &rest[length..];
            return String::from_utf8(text.to_vec()).ok();
        }
    }
    None
}

/// Says whether the table remembers the ids of batches, so that a repeat after a crash is harmless.
pub(super) async fn deduplicates(client: &Client, destination: &Destination) -> Result<bool, WriterError> {
    let query = "SELECT engine LIKE 'Replicated%' OR engine LIKE 'Shared%' \
                 OR toUInt64OrZero(extract(create_table_query, 'non_replicated_deduplication_window = (\\\\d+)')) > 0 \
                 FROM system.tables WHERE database = {d:String} AND name = {t:String}";
    let call = Call::new(&client.endpoint().credentials, query);
    let call = call.param("param_d", &destination.database).param("param_t", &destination.table);
    let answer = client.call(call.timeout(TIMEOUT)).await?;
    Ok(answer.text().trim() != "0")
}
