use windrow_client::{Call, CallError, Client};
use windrow_sink::{settings_of_flushes, Destination};
use windrow_statement::backquote;

use super::QUESTION_TIMEOUT;

/// An INSERT of no rows: ClickHouse checks the table, the columns, the privileges, the quota and the settings, and writes
/// nothing.
pub(crate) struct Probe<'a> {
    pub(crate) destination: &'a Destination,
    /// Settings of the request that the flush will not carry.
    pub(crate) other_settings: &'a [(&'a str, &'a str)],
}

impl Probe<'_> {
    pub(crate) async fn ask(&self, client: &Client) -> Result<(), CallError> {
        let to = self.destination;
        let columns: Vec<String> = to.columns.iter().map(|name| backquote(name)).collect();
        let table = format!("{}.{}", backquote(&to.database), backquote(&to.table));
        let statement = format!("INSERT INTO {table} ({}) FORMAT Native", columns.join(", "));
        let mut call = Call::new(&to.credentials, &statement).param("async_insert", "0");
        // As the flush will be: who may not set what it sets is not gathered.
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
        for role in &to.roles {
            call = call.param("role", role);
        }
        if !to.quota_key.is_empty() {
            call = call.param("quota_key", &to.quota_key);
        }
        client.call(call).await?;
        Ok(())
    }
}
