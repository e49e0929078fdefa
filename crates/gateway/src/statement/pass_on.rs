//! An INSERT that is not gathered, with its rows: it is sent over HTTP to ClickHouse, or to the gateway that owns it.

use windrow_clickhouse::{Call, Credentials, Purpose};
use windrow_sql::{backquote, TableName};

use super::context::StatementContext;
use super::deduplication::{outline, Passage};
use crate::backend::Backend;
use crate::cluster::{patience, FIELD};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::{not_taken, Origin, Takes};

/// An INSERT whose rows are one Native block.
pub(crate) struct NativeInsert<'a> {
    pub(crate) table: &'a TableName,
    pub(crate) columns: &'a [String],
    pub(crate) block: &'a [u8],
    /// As another gateway is told them, which may know its own `default` by another password.
    pub(crate) given: &'a Credentials,
}

impl StatementContext<'_> {
    /// Has an INSERT stored that is not gathered here, for this reason. A repeat of what is stored is not sent.
    pub(crate) async fn pass_on(
        &self,
        insert: &NativeInsert<'_>,
        reason: ForwardReason,
        origin: Origin<'_>,
    ) -> Result<(), Refusal> {
        let Backend::ClickHouse(clickhouse) = &self.state.backend else { return Err(not_taken(reason)) };
        let TableName { database, table } = insert.table;
        let database = database.as_deref().unwrap_or("default");
        let columns: Vec<String> = insert.columns.iter().map(|name| backquote(name)).collect();
        let statement = format!(
            "INSERT INTO {}.{} ({}) FORMAT Native\n",
            backquote(database),
            backquote(table),
            columns.join(", ")
        );
        let (additions, passage) = match outline(statement.as_bytes()) {
            Some(outline) => self.settle_deduplication(&outline).await,
            None => (Vec::new(), Passage::Nameless),
        };
        let body = [statement.as_bytes(), insert.block];
        let patience = patience(self.state, &self.options);
        let call =
            |credentials, takes| self.options.add_to(Call::new(credentials, "").body(&body).timeout(patience), takes);
        match passage {
            Passage::Refused(refusal) => Err(refusal),
            Passage::Repeat => Ok(()),
            Passage::Elsewhere(owner) => {
                let Some(cluster) = &self.state.cluster else { return Err(Refusal::unreachable("it has no owner")) };
                let owner = cluster.gateway(owner);
                let call = call(insert.given, Takes::Own).purpose(Purpose::Statement);
                owner.post(self.state, patience, call.field(FIELD, &owner.hop_value(origin.back_after))).await
            }
            passage @ (Passage::Nameless | Passage::Claimed(_)) => {
                self.state.metrics.forwarded(reason);
                let call = call(&self.user_key.credentials, Takes::ClickHouses);
                let call = additions.iter().fold(call, |call, (name, value)| call.param(name, value));
                let purpose = Purpose::forwarded_into(database, table);
                let stored = clickhouse.relay.call(call.purpose(purpose)).await.map(drop).map_err(Refusal::call);
                self.state.conclude(passage, stored.is_ok()).await;
                stored
            }
        }
    }
}
