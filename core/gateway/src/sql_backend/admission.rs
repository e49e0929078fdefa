//! The questions of an admission, answered for a DuckDB or another database that takes SQL: by the settings' users, and
//! by its catalogue.

use windrow_clickhouse::{Credentials, ErrorCode, Exception};
use windrow_columns::{DataType, DefaultKind};
use windrow_duckdb::TableInfo;
use windrow_engine::InsertError;

use super::SqlBackend;
use crate::admission::{
    hostname, Account, BackendFacts, Column, Moment, NotAdmitted, ServerVersion, TableKey, TableSchema, UserContext,
    UserKey, Window,
};
use crate::error::Refusal;

/// The ClickHouse whose way of reading inserts holds.
const VERSION: ServerVersion = ServerVersion { major: 26, minor: 7 };

/// ClickHouse's defaults, but for one: where a table says NOT NULL, a NULL is an error, and no other value takes its
/// place.
pub(crate) const SETTINGS: [(&str, &str); 6] = [
    ("date_time_input_format", "best_effort"),
    ("input_format_null_as_default", "0"),
    ("input_format_skip_unknown_fields", "1"),
    ("input_format_defaults_for_omitted_fields", "1"),
    ("deduplicate_insert", "enable"),
    ("enable_http_compression", "1"),
];

impl SqlBackend {
    pub(crate) fn facts(&self) -> BackendFacts {
        let name = hostname().unwrap_or_else(|| "windrow".to_owned());
        BackendFacts::new(self.database.version_suffix().to_owned(), name, "UTC".to_owned())
    }

    pub(crate) fn account(&self, key: &UserKey) -> Result<Account, NotAdmitted> {
        let began = Moment::now();
        if self.users.check(&key.credentials).is_none() {
            return Err(NotAdmitted::refused(Refusal::wrong_password(&key.credentials.user)));
        }
        let setting = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let context = UserContext {
            database: "default".to_owned(),
            timezone: "UTC".to_owned(),
            version: VERSION,
            changed_settings: Vec::new(),
            effective_settings: SETTINGS.map(setting).to_vec(),
            bounds: Vec::new(),
            enabled_roles: Vec::new(),
            is_for_sql: true,
        };
        Ok(Account::new(context, None, 0, began))
    }

    pub(crate) async fn table(&self, key: &TableKey) -> Result<TableSchema, NotAdmitted> {
        let began = Moment::now();
        let name = self.database.table_ref(&key.database, &key.table);
        if self.database.is_windrows(&name) {
            let text = format!("{}.{} is Windrow's own: nothing can be inserted into it", key.database, key.table);
            return Err(NotAdmitted::refused(Refusal::of_insert(ErrorCode::ACCESS_DENIED, text)));
        }
        match self.database.table(&name).await {
            Ok(Some(info)) => Ok(schema(self, info, began)),
            Ok(None) => Err(NotAdmitted::refused(Refusal::unknown_table(&key.database, &key.table))),
            Err(exception) => Err(not_answered(exception)),
        }
    }

    /// As [`table`](Self::table), in the database's own words.
    pub(crate) async fn table_anew(&self, key: &TableKey) -> Result<TableSchema, Exception> {
        let began = Moment::now();
        let name = self.database.table_ref(&key.database, &key.table);
        let refused = |code, text: String| Exception::new(code, &text, self.database.version_suffix());
        if self.database.is_windrows(&name) {
            return Err(refused(ErrorCode::ACCESS_DENIED, format!("{}.{} is Windrow's own", key.database, key.table)));
        }
        let found = self.database.table(&name).await?;
        let missing =
            || refused(ErrorCode::UNKNOWN_TABLE, format!("Table {}.{} does not exist", key.database, key.table));
        found.map(|info| schema(self, info, began)).ok_or_else(missing)
    }

    /// May the user insert?
    pub(crate) fn probe(&self, credentials: &Credentials) -> Result<(), NotAdmitted> {
        match self.users.check(credentials) {
            Some(access) if !access.readonly => Ok(()),
            Some(_) => Err(NotAdmitted::refused(Refusal::readonly(&credentials.user))),
            None => Err(NotAdmitted::refused(Refusal::wrong_password(&credentials.user))),
        }
    }
}

/// An error of which the table itself is not the cause may pass.
fn not_answered(exception: Exception) -> NotAdmitted {
    match exception.is_passing() {
        true => NotAdmitted::Unreachable(exception.line),
        false => NotAdmitted::refused(Refusal::insert(InsertError::Exception(exception))),
    }
}

/// A table recognises a batch that comes again, if its id is stored with its rows: in one transaction.
fn schema(backend: &SqlBackend, info: TableInfo, began: Moment) -> TableSchema {
    let columns = info.columns.into_iter().map(|column| {
        // What has a default, and what has no NULL to stand for nothing, is the database's to fill where it isn't given.
        let takes_null = matches!(column.data_type, Ok(DataType::Nullable(_)));
        let default_kind = match (column.generated, column.has_default || !takes_null) {
            (true, _) => DefaultKind::Materialized,
            (false, true) => DefaultKind::Default,
            (false, false) => DefaultKind::None,
        };
        // As a native client is told it, if it is one that ClickHouse has.
        let type_name = column.data_type.as_ref().map_or(column.duckdb_type, ToString::to_string);
        Column::plain(column.name, type_name, column.data_type, default_kind)
    });
    let window = if backend.database.has_transactions() { Window::Windrows } else { Window::Never };
    TableSchema::plain(columns.collect(), window, began)
}
