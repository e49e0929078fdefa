use std::hash::{BuildHasher, Hash, Hasher};

use windrow_clickhouse::{Call, CallError, Client, ErrorCode, Purpose};
use windrow_engine::sink::{settings_of_flushes, Destination, Form};
use windrow_sql::backquote;

use super::account::Account;
use super::schema::TableSchema;
use super::{TableKey, UserKey, QUESTION_TIMEOUT};

/// An INSERT of no rows: ClickHouse checks the table, the columns, the privileges, the quota and the settings, and
/// writes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub(crate) destination: &'a Destination,
    /// Settings of the request that the flush will not carry.
    pub(crate) other_settings: &'a [(&'a str, &'a str)],
    /// The database that the request names, unless it is the table's: ClickHouse refuses a missing one.
    pub(crate) database: Option<&'a str>,
}

impl Probe<'_> {
    /// Returns a hash of the question. It is the same for all tables that the account surely may insert into,
    /// since the answer then depends on the settings only.
    pub(super) fn question(&self, account: &Account, schema: &TableSchema) -> u64 {
        let to = self.destination;
        let mut hasher = account.hasher.build_hasher();
        (&to.settings, self.other_settings, self.database, to.partitioning.is_some()).hash(&mut hasher);
        if let Form::Text { format, .. } = &to.form {
            format.hash(&mut hasher);
        }
        let grants = account.grants.as_ref().filter(|_| !schema.asks_for_rights);
        if !grants.is_some_and(|grants| grants.allow_insert(&to.database, &to.table)) {
            (&to.database, &to.table, &to.columns).hash(&mut hasher);
            // Of this table as it is: what takes its place is asked about anew.
            std::ptr::from_ref(schema).hash(&mut hasher);
            schema.standing.learnt().hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(crate) async fn ask(&self, client: &Client) -> Result<(), CallError> {
        let to = self.destination;
        let columns: Vec<String> = to.columns.iter().map(|name| backquote(name)).collect();
        let table = format!("{}.{}", backquote(&to.database), backquote(&to.table));
        let statement = format!("INSERT INTO {table} ({}) FORMAT Native", columns.join(", "));
        let mut call = Call::new(&to.credentials, &statement).param("async_insert", "0");
        // The flush will set these as well: an account that may not set them is not gathered for.
        call = call.param("insert_deduplication_token", "").timeout(QUESTION_TIMEOUT);
        for (name, value) in &to.settings {
            call = call.param(name, value);
        }
        for (name, value) in settings_of_flushes(to, to.partitioning.is_some()) {
            call = call.param(name, value);
        }
        for (name, value) in self.other_settings {
            call = call.param(name, value);
        }
        if let Some(database) = self.database {
            call = call.param("database", database);
        }
        for role in &to.roles {
            call = call.param("role", role);
        }
        if !to.quota_key.is_empty() {
            call = call.param("quota_key", &to.quota_key);
        }
        let where_the_rows_go = match to.is_replicated {
            true => Purpose::probe_of(&to.database, &to.table),
            false => Purpose::First,
        };
        put(client, call.purpose(where_the_rows_go)).await
    }
}

async fn put(client: &Client, call: Call<'_>) -> Result<(), CallError> {
    match client.call(call).await {
        // Parts are counted when all else has been checked. Whether there will be too many is found when there are
        // rows.
        Err(CallError::Exception(exception)) if exception.code == ErrorCode::TOO_MANY_PARTS => Ok(()),
        answer => answer.map(drop),
    }
}

/// Probes an insert of which only the statement is known. `columns` are in parentheses, or empty for all.
pub(super) async fn ask_for_columns(
    client: &Client,
    key: &UserKey,
    table: &TableKey,
    columns: &str,
    settings: &[(&str, &str)],
) -> Result<(), CallError> {
    let name = format!("{}.{}", backquote(&table.database), backquote(&table.table));
    let statement = format!("INSERT INTO {name} {columns} FORMAT Native");
    let mut call = Call::new(&key.credentials, &statement).param("async_insert", "0").timeout(QUESTION_TIMEOUT);
    for (name, value) in settings {
        call = call.param(name, value);
    }
    for role in &key.roles {
        call = call.param("role", role);
    }
    if !key.quota_key.is_empty() {
        call = call.param("quota_key", &key.quota_key);
    }
    put(client, call.purpose(Purpose::probe_of(&table.database, &table.table))).await
}
