use std::sync::Arc;

use windrow_clickhouse::Purpose;
use windrow_sql::{InsertOutline, TableName};

use crate::admission::UserKey;
use crate::insert::StatementOptions;
use crate::state::State;

/// What goes along with a statement, whatever protocol it came by.
pub(crate) struct StatementContext<'a> {
    pub(crate) state: &'a Arc<State>,
    /// Who sends it; where that is unclear, it is asked about as Windrow's own account.
    pub(crate) user_key: UserKey,
    /// Whether it is clear who sends it.
    pub(crate) names_user: bool,
    pub(crate) options: StatementOptions<'a>,
    pub(crate) query_id: Option<&'a str>,
    /// Whether another gateway sends it, which may do so again when it has not heard the answer.
    pub(crate) came_by_hop: bool,
    /// Whether an insert is this gateway's, whoever owns it.
    pub(crate) stays_here: bool,
}

impl StatementContext<'_> {
    pub(crate) fn user(&self) -> &str {
        &self.user_key.credentials.user
    }

    /// What the backend is wanted for, which says which of several replicas is asked. `insert`: it is an INSERT.
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
