//! The tables of a gateway that runs in another process, which is asked over its data port: its engine or its
//! DuckDB can't be reached in another way.
//!
//! They are only looked at: the other gateway would store rows that come this way like those of any client,
//! so nothing is ever stored through it.

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::{Call, Client};
use windrow_columns::{Block, DataType, DefaultKind};
use windrow_engine::sink::{Destination, Form};
use windrow_kafka::pipeline::{AskError, Asking, FormatQuestion, TableColumn, TableDescription, TableError, Tables};
use windrow_sql::backquote;

use super::{own_account, table_error};
use crate::sql_backend::SETTINGS;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The tables of the DuckDB behind a running gateway.
pub struct TablesThroughGateway {
    client: Arc<Client>,
}

impl TablesThroughGateway {
    pub fn new(client: Arc<Client>) -> TablesThroughGateway {
        TablesThroughGateway { client }
    }

    async fn ask(&self, database: &str, table: &str) -> Result<TableDescription, TableError> {
        let own = own_account(&self.client);
        let name = format!("{}.{}", backquote(database), backquote(table));
        let query = format!("DESCRIBE TABLE {name} FORMAT JSONCompactEachRow");
        let answer = self.client.call(Call::new(own, &query).timeout(TIMEOUT)).await.map_err(table_error)?;
        let columns: Vec<TableColumn> = answer.text().lines().filter_map(column).collect();
        let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let destination = Destination {
            database: database.to_owned(),
            table: table.to_owned(),
            columns: Vec::new(),
            form: Form::Native { types: Vec::new() },
            credentials: own.clone(),
            own_account: true,
            roles: Vec::new(),
            quota_key: String::new(),
            shard: None,
            settings: Vec::new(),
            deduplicates: true,
            is_replicated: false,
            has_views: false,
            hands_on: false,
            partitioning: None,
        };
        Ok(TableDescription {
            columns,
            destination,
            no_deduplication: None,
            time_zone: "UTC".to_owned(),
            server_version: None,
            settings,
        })
    }
}

impl Tables for TablesThroughGateway {
    fn describe<'a>(
        &'a self,
        database: &'a str,
        table: &'a str,
        _exactly_once: bool,
    ) -> Asking<'a, Result<TableDescription, TableError>> {
        Box::pin(self.ask(database, table))
    }

    fn ask_format<'a>(&'a self, _question: FormatQuestion<'a>) -> Asking<'a, Result<Block, AskError>> {
        Box::pin(async { Err(AskError::Nobody) })
    }
}

/// Reads a line of ClickHouse's DESCRIBE, as the gateway words it for DuckDB.
fn column(line: &str) -> Option<TableColumn> {
    let fields: Vec<String> = serde_json::from_str(line).ok()?;
    let [name, type_name, default, ..] = fields.as_slice() else { return None };
    let data_type = DataType::parse(type_name).map_err(|error| error.to_string());
    let takes_null = matches!(data_type, Ok(DataType::Nullable(_)));
    let default_kind = match default.as_str() {
        "MATERIALIZED" => return None,
        // What has no NULL to stand for nothing is DuckDB's to fill where it isn't given.
        "" if takes_null => DefaultKind::None,
        _ => DefaultKind::Default,
    };
    Some(TableColumn { name: name.clone(), type_name: type_name.clone(), data_type, default_kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read() {
        let kind = |line: &str| column(line).map(|column| (column.default_kind, column.data_type.is_ok()));
        assert_eq!(kind(r#"["a","Nullable(Int32)","","","","",""]"#), Some((DefaultKind::None, true)));
        assert_eq!(kind(r#"["a","Int32","","","","",""]"#), Some((DefaultKind::Default, true)));
        assert_eq!(kind(r#"["a","Nullable(Int32)","DEFAULT","","","",""]"#), Some((DefaultKind::Default, true)));
        assert_eq!(kind(r#"["a","UNION(a INTEGER)","","","","",""]"#), Some((DefaultKind::Default, false)));
        assert_eq!(kind(r#"["a","Int32","MATERIALIZED","","","",""]"#), None);
        assert_eq!(kind("[\"a\""), None);
    }
}
