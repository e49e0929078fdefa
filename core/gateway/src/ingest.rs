//! The whole way of an insert, whatever protocol it came by. Each protocol has a [`RowSource`], and answers
//! its own client.

use std::sync::Arc;

use crate::cluster::InsertKey;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::{
    hand_over, AnswerForm, Candidate, NotGathered, Origin, Parsed, Prepared, Progress, RowsForm, SentRows, Summary,
};
use crate::state::State;
use crate::statement::{Claim, StatementContext};

/// A source of an insert's rows, as its protocol brings them.
pub(crate) trait RowSource {
    /// Returns the insert's rows. It is known by now how they are read, and that their sender may insert them.
    async fn rows(&mut self, prepared: &Arc<Prepared>) -> Result<SentRows<'_>, NotGathered>;
}

/// An insert that has been read and may use its query id. The bytes that it came in are not needed any more.
pub(crate) struct Accepted {
    pub(crate) parsed: Parsed,
    claim: Option<Claim>,
}

/// Takes an insert through the steps that may refuse it before anything is kept: its admission, and the
/// reading of its rows.
pub(crate) async fn accept(
    context: &StatementContext<'_>,
    candidate: &Candidate<'_>,
    origin: Origin<'_>,
    source: &mut impl RowSource,
) -> Result<Accepted, NotGathered> {
    let admitted = candidate.admit(context.state).await;
    origin.mark("admit");
    accept_admitted(context, candidate, admitted?, origin, source).await
}

/// Accepts an insert like [`accept`] when its admission is known already.
pub(crate) async fn accept_admitted(
    context: &StatementContext<'_>,
    candidate: &Candidate<'_>,
    prepared: Arc<Prepared>,
    origin: Origin<'_>,
    source: &mut impl RowSource,
) -> Result<Accepted, NotGathered> {
    let rows = source.rows(&prepared).await?;
    context.is_owner_of(prepared.key_by_token(candidate.token))?;
    let parsed = candidate.parse(context.state, prepared, rows).await;
    origin.mark("parse");
    let parsed = parsed?;
    // What a block leaves out gets the default of its type, not of its column, as ClickHouse does it for clients.
    let leaves_columns_out = matches!(candidate.form, RowsForm::Blocks) && !parsed.has_all_columns();
    if leaves_columns_out && context.state.backend.takes_requests() {
        return Err(ForwardReason::Columns.into());
    }
    context.is_owner_of(parsed.key)?;
    let claim = context.claim_for_insert().await?;
    Ok(Accepted { parsed, claim })
}

impl Accepted {
    /// Makes an accepted insert that has no query id of its own.
    pub(crate) fn nameless(parsed: Parsed) -> Accepted {
        Accepted { parsed, claim: None }
    }

    pub(crate) fn form(&self) -> AnswerForm {
        self.parsed.form()
    }

    /// Hands the rows over to the gatherer, and waits until the insert is acknowledged at the level that it asks
    /// for. Then its query id may be used again.
    pub(crate) async fn store(
        self,
        state: &State,
        origin: Origin<'_>,
        progress: &mut impl Progress,
    ) -> Result<Summary, Refusal> {
        let Accepted { parsed, claim } = self;
        let outcome = hand_over(state, parsed, origin, progress).await;
        drop(claim);
        outcome
    }
}

impl StatementContext<'_> {
    /// Fails if another gateway owns the insert.
    fn is_owner_of(&self, key: Option<InsertKey>) -> Result<(), NotGathered> {
        let cluster = self.state.cluster.as_ref().filter(|_| !self.stays_here);
        match cluster.zip(key).and_then(|(cluster, key)| cluster.elsewhere(key)) {
            Some(owner) => Err(NotGathered::Elsewhere(owner)),
            None => Ok(()),
        }
    }
}
