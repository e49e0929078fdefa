//! An INSERT that is not gathered, with its rows: it is sent over HTTP to ClickHouse, or to the gateway that owns it.

use std::time::Duration;

use windrow_clickhouse::{Call, Credentials, Purpose};
use windrow_sql::{backquote, TableName};

use super::context::StatementContext;
use super::deduplication::{outline, Passage};
use crate::cluster::{patience, GatewayId, FIELD};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::{not_taken, Origin, Receiver};

/// An INSERT whose rows are one Native block.
pub(crate) struct NativeInsert<'a> {
    pub(crate) table: &'a TableName,
    pub(crate) columns: &'a [String],
    pub(crate) block: &'a [u8],
    /// Credentials for another gateway, as the client gave them. That gateway may have another password for `default`.
    pub(crate) given: &'a Credentials,
}

/// Time that ClickHouse, or the owner, gets beyond the time that an insert waits to be stored.
const GRACE: Duration = Duration::from_secs(30);

impl NativeInsert<'_> {
    fn database(&self) -> &str {
        self.table.database.as_deref().unwrap_or("default")
    }

    fn statement(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|name| backquote(name)).collect();
        let (database, table) = (backquote(self.database()), backquote(&self.table.table));
        format!("INSERT INTO {database}.{table} ({}) FORMAT Native\n", columns.join(", "))
    }
}

impl StatementContext<'_> {
    /// Forwards an INSERT that is not gathered here for this reason. A repeat of a stored insert is not sent.
    pub(crate) async fn pass_on(
        &self,
        insert: &NativeInsert<'_>,
        reason: ForwardReason,
        origin: Origin<'_>,
    ) -> Result<(), Refusal> {
        let Some(clickhouse) = self.state.backend.clickhouse() else { return Err(not_taken(reason)) };
        let statement = insert.statement();
        let (additions, passage) = match outline(statement.as_bytes()) {
            Some(outline) => self.settle_deduplication(&outline).await,
            None => (Vec::new(), Passage::Nameless),
        };
        match passage {
            Passage::Refused(refusal) => return Err(refusal),
            Passage::Repeat => return Ok(()),
            Passage::Elsewhere(owner) => return self.pass_to_owner(insert, owner, origin).await,
            Passage::Nameless | Passage::Claimed(_) => {}
        }
        self.state.metrics.forwarded(reason);
        let body = [statement.as_bytes(), insert.block];
        let call = self.call(&self.user_key.credentials, &body, Receiver::ClickHouses);
        let call = additions.iter().fold(call, |call, (name, value)| call.param(name, value));
        let purpose = Purpose::forwarded_into(insert.database(), &insert.table.table);
        let stored = clickhouse.relay.call(call.purpose(purpose)).await.map(drop).map_err(Refusal::call);
        self.state.conclude(passage, stored.is_ok()).await;
        stored
    }

    /// Sends an INSERT to the gateway that owns it.
    pub(crate) async fn pass_to_owner(
        &self,
        insert: &NativeInsert<'_>,
        owner: GatewayId,
        origin: Origin<'_>,
    ) -> Result<(), Refusal> {
        let Some(cluster) = &self.state.cluster else { return Err(Refusal::unreachable("it has no owner")) };
        let (owner, statement) = (cluster.gateway(owner), insert.statement());
        let body = [statement.as_bytes(), insert.block];
        let call = self.call(insert.given, &body, Receiver::Own).purpose(Purpose::Statement);
        let call = call.field(FIELD, &owner.hop_value(origin.back_after));
        owner.post(self.state, patience(self.state, &self.options), call).await
    }

    fn call<'c>(&self, credentials: &'c Credentials, body: &'c [&'c [u8]], takes: Receiver) -> Call<'c> {
        let timeout = patience(self.state, &self.options) + GRACE;
        self.options.add_to(Call::new(credentials, "").body(body).timeout(timeout), takes)
    }
}
