//! The statement `SYSTEM FLUSH ASYNC INSERT QUEUE`, for inserts that are gathered here.

use windrow_clickhouse::CallError;
use windrow_engine::TableKey;
use windrow_sql::TableName;

use super::context::StatementContext;
use crate::error::Refusal;

const PRIVILEGE: &str = "SYSTEM FLUSH ASYNC INSERT QUEUE ON *.*";

impl StatementContext<'_> {
    /// Stores the inserts that were gathered for these tables, or for all if none is named. Returns false if
    /// the user may not flush.
    pub(crate) async fn flush_gathered(&self, tables: Vec<TableName>) -> Result<bool, Refusal> {
        match self.state.admission.is_granted(&self.user_key.credentials, PRIVILEGE).await {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // Forwarded, it might succeed by now, and nothing of what is gathered here would have been flushed.
            Err(CallError::Exception(exception)) if exception.is_passing() => {
                return Err(Refusal::exception(exception));
            }
            Err(CallError::Exception(_)) => return Ok(false),
            Err(error) => return Err(Refusal::unreachable(&error.to_string())),
        }
        let database = self.current_database().await;
        let names: Vec<TableKey> = tables
            .into_iter()
            .map(|name| TableKey { database: name.database.unwrap_or_else(|| database.clone()), table: name.table })
            .collect();
        self.state.gatherer.flush((!names.is_empty()).then_some(names.as_slice())).await;
        Ok(true)
    }
}
