//! The questions of an admission, answered for a database that takes SQL: by its users and by its catalogue.

use windrow_clickhouse::{Credentials, ErrorCode, Exception};
use windrow_columns::{DataType, DefaultKind};
use windrow_engine::InsertError;

use super::{SqlBackend, SqlColumn, SqlTable};
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

impl dyn SqlBackend {
    pub(crate) fn facts(&self) -> BackendFacts {
        let name = hostname().unwrap_or_else(|| "windrow".to_owned());
        BackendFacts::new(self.version_suffix().to_owned(), name, "UTC".to_owned())
    }

    pub(crate) fn account(&self, key: &UserKey) -> Result<Account, NotAdmitted> {
        let began = Moment::now();
        if self.access(&key.credentials).is_none() {
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

    pub(crate) async fn schema(&self, key: &TableKey) -> Result<TableSchema, NotAdmitted> {
        let began = Moment::now();
        match self.table(&key.database, &key.table).await {
            Ok(SqlTable::Found { columns, recognises_batches }) => Ok(schema(columns, recognises_batches, began)),
            Ok(SqlTable::Missing) => Err(NotAdmitted::refused(Refusal::unknown_table(&key.database, &key.table))),
            Ok(SqlTable::Windrows) => {
                let text = format!("{}.{} is Windrow's own: nothing can be inserted into it", key.database, key.table);
                Err(NotAdmitted::refused(Refusal::of_insert(ErrorCode::ACCESS_DENIED, text)))
            }
            Err(exception) => Err(not_answered(exception)),
        }
    }

    /// Reads the schema like [`schema`](Self::schema), with errors in the database's own words.
    pub(crate) async fn schema_anew(&self, key: &TableKey) -> Result<TableSchema, Exception> {
        let began = Moment::now();
        let refused = |code, text: String| Err(Exception::new(code, &text, self.version_suffix()));
        let name = format!("{}.{}", key.database, key.table);
        match self.table(&key.database, &key.table).await? {
            SqlTable::Found { columns, recognises_batches } => Ok(schema(columns, recognises_batches, began)),
            SqlTable::Missing => refused(ErrorCode::UNKNOWN_TABLE, format!("Table {name} does not exist")),
            SqlTable::Windrows => refused(ErrorCode::ACCESS_DENIED, format!("{name} is Windrow's own")),
        }
    }

    /// Says whether the user may insert.
    pub(crate) fn probe(&self, credentials: &Credentials) -> Result<(), NotAdmitted> {
        match self.access(credentials) {
            Some(access) if !access.readonly => Ok(()),
            Some(_) => Err(NotAdmitted::refused(Refusal::readonly(&credentials.user))),
            None => Err(NotAdmitted::refused(Refusal::wrong_password(&credentials.user))),
        }
    }
}

/// Refuses by an error, unless its cause is not the table itself and may pass.
fn not_answered(exception: Exception) -> NotAdmitted {
    match exception.is_passing() {
        true => NotAdmitted::Unreachable(exception.line),
        false => NotAdmitted::refused(Refusal::insert(InsertError::Exception(exception))),
    }
}

fn schema(columns: Vec<SqlColumn>, recognises_batches: bool, began: Moment) -> TableSchema {
    let columns = columns.into_iter().map(|column| {
        // What has a default, and what has no NULL to stand for nothing, is the database's to fill where it isn't given.
        let takes_null = matches!(column.data_type, Ok(DataType::Nullable(_)));
        let default_kind = match (column.is_generated, column.has_default || !takes_null) {
            (true, _) => DefaultKind::Materialized,
            (false, true) => DefaultKind::Default,
            (false, false) => DefaultKind::None,
        };
        Column::plain(column.name, column.type_name, column.data_type, default_kind)
    });
    let window = if recognises_batches { Window::Windrows } else { Window::Never };
    TableSchema::plain(columns.collect(), window, began)
}
