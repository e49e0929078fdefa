use std::sync::Arc;

use windrow_clickhouse::Purpose;
use windrow_sql::{InsertOutline, TableName};

use crate::admission::UserKey;
use crate::insert::StatementOptions;
use crate::state::State;

/// The account, settings and query id that come with a statement, whatever protocol it came by.
pub(crate) struct StatementContext<'a> {
    pub(crate) state: &'a Arc<State>,
    /// The account that sends the statement. If that is unclear, it is Windrow's own, with which the backend is asked.
    pub(crate) user_key: UserKey,
    /// Says whether it is clear which account sends the statement.
    pub(crate) names_user: bool,
    pub(crate) options: StatementOptions<'a>,
    pub(crate) query_id: Option<&'a str>,
    /// Says whether another gateway sends the statement. That gateway may send it again if it has not got the answer.
    pub(crate) came_by_hop: bool,
    /// Says whether an insert is handled here, whichever gateway owns it.
    pub(crate) stays_here: bool,
}

impl StatementContext<'_> {
    pub(crate) fn user(&self) -> &str {
        &self.user_key.credentials.user
    }

    /// Returns what the backend is wanted for, which decides the replica that is asked. `insert` is set for an INSERT.
    pub(crate) fn purpose(&self, insert: Option<&InsertOutline>) -> Purpose {
        let Some(insert) = insert else { return Purpose::Statement };
        match insert.table_name(|parameter| self.options.query_parameter(parameter)) {
            Some(TableName { database, table }) => {
                let database = database.as_deref().or(self.user_key.database.as_deref()).unwrap_or("default");
                Purpose::forwarded_into(database, &table)
            }
            None => Purpose::InOrder,
        }
    }

    pub(crate) async fn current_database(&self) -> String {
        let user = self.state.admission.user(self.user_key.clone()).await;
        user.map_or_else(|_| "default".to_owned(), |user| user.database.clone())
    }
}
