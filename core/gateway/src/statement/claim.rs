//! The decision whether a request may have the query id that it asks for. ClickHouse decides that when a
//! query begins, but it does not see the ids of inserts that wait here.

use std::time::Duration;

use tokio::time::Instant;

use super::context::StatementContext;
use super::query_ids::{Claim, InUse};
use crate::admission::UserContext;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::NotGathered;

/// ClickHouse's default of `replace_running_query_max_wait_ms`.
const REPLACE_WAIT: Duration = Duration::from_secs(5);
const LONGEST_REPLACE_WAIT: Duration = Duration::from_secs(86_400);

impl StatementContext<'_> {
    /// Claims the query id for an insert that is about to be gathered.
    pub(crate) async fn claim_for_insert(&self) -> Result<Option<Claim>, NotGathered> {
        let Some(id) = self.query_id else { return Ok(None) };
        let mut wait = Wait::default();
        loop {
            match self.state.query_ids.claim_for_insert(id, self.user()) {
                Ok(claim) => return Ok(Some(claim)),
                // ClickHouse runs a query of this id, or did so a moment ago, and judges.
                Err(InUse::ByForwarded) => return Err(ForwardReason::QueryId.into()),
                Err(in_use) => wait.out(self, id, in_use).await.map_err(NotGathered::Refused)?,
            }
        }
    }

    /// Claims the query id for a request that is about to be forwarded. The account that it names is not checked yet.
    pub(crate) async fn claim_for_forwarded(&self) -> Result<Option<Claim>, Refusal> {
        let (Some(id), true) = (self.query_id, self.names_user) else { return Ok(None) };
        let mut wait = Wait::default();
        loop {
            match self.state.query_ids.claim_for_forwarded(id) {
                Ok(claim) => return Ok(Some(claim)),
                // Who sent the request is not known to ClickHouse, which will say so.
                Err(_) if self.state.admission.user(self.user_key.clone()).await.is_err() => return Ok(None),
                Err(in_use) => wait.out(self, id, in_use).await?,
            }
        }
    }
}

/// The time that `replace_running_query` gives to the earlier query.
#[derive(Default)]
struct Wait {
    until: Option<Instant>,
}

impl Wait {
    /// Waits until the insert that has the id has ended, if the request may wait for that; else refuses the request.
    async fn out(&mut self, context: &StatementContext<'_>, id: &str, in_use: InUse) -> Result<(), Refusal> {
        let InUse::ByInsert { user, ended } = in_use else { return Ok(()) };
        if user != context.user() {
            return Err(Refusal::query_id_in_use(id, &format!(" by user {user}")));
        }
        let profile = context.state.admission.user(context.user_key.clone()).await.ok();
        let setting = |name| setting(context, profile.as_deref(), name);
        let replaces = setting("replace_running_query").is_some_and(|value| matches!(value, "1" | "true"));
        // A hop that is made again finds the first one's insert, and is the same: its end is the answer to both.
        if context.came_by_hop && !replaces {
            ended.wait().await;
            return Ok(());
        }
        if !replaces {
            return Err(Refusal::query_id_in_use(id, ""));
        }
        let patience = setting("replace_running_query_max_wait_ms").and_then(|ms| ms.parse().ok());
        let patience = patience.map_or(REPLACE_WAIT, Duration::from_millis).min(LONGEST_REPLACE_WAIT);
        let until = *self.until.get_or_insert_with(|| Instant::now() + patience);
        let ended = tokio::time::timeout_at(until, ended.wait()).await;
        ended.map_err(|_| Refusal::query_id_in_use(id, " and can't be stopped"))
    }
}

fn setting<'a>(context: &'a StatementContext<'_>, profile: Option<&'a UserContext>, name: &str) -> Option<&'a str> {
    context.options.setting(name).or_else(|| profile?.setting(name))
}
