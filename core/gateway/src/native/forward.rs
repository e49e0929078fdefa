//! Statements that are no plain inserts, on their way to the backend.

use std::io;

use windrow_clickhouse::native::{client, Query};
use windrow_clickhouse::Purpose;
use windrow_sql::{own_table_references, settings_of_set, InsertOutline, OtherStatement, OwnTableUse};

use super::over_http::{Posted, Through};
use super::relay::{pass_answer, Answered, AnsweredPart, Ended, Form};
use super::rows::ExternalTables;
use super::session::{Closed, Session};
use super::upstream::Upstream;
use super::wire::first_byte;
use crate::data::own_tables;
use crate::forward_reason::ForwardReason;
use crate::insert::Summary;
use crate::statement::{outline, Changes, Learnt, Passage, RowRemoval, StatementContext, LOOKED_THROUGH_BYTES};

/// Limit of the bytes of settings from SET that are kept. A session with more of them is left to the backend.
const MAX_SET_BYTES: usize = 16 * 1024;

/// A statement that is forwarded to the backend's native port.
struct Forwarded<'q> {
    query: &'q Query,
    /// Length of its packet, in bytes.
    length: usize,
    changes: Changes,
    /// Settings that Windrow adds.
    additions: Vec<(&'static str, &'static str)>,
    passage: Passage,
    purpose: Purpose,
    /// Settings of a plain SET: later inserts have them as well.
    set: Option<Vec<(String, String)>>,
    /// Says whether the session was changed before this statement.
    was_changed: bool,
    /// Says whether the statement may leave something behind where it fails.
    may_leave_something: bool,
}

impl Session<'_> {
    /// Forwards a statement and passes its answer on. `statement` is its parsed form, if it was parsed.
    pub(super) async fn forward(
        &mut self,
        query: &Query,
        length: usize,
        statement: Option<&OtherStatement>,
        reason: ForwardReason,
    ) -> Result<(), Closed> {
        let context = self.context(query);
        self.state.metrics.forwarded(reason);
        let _claim = match context.claim_for_forwarded().await {
            Ok(claim) => claim,
            Err(refusal) => return self.refuse_with_data(query, length, &refusal).await,
        };
        if self.reads_own_tables(query) {
            let posted = Posted { reads_own_tables: true, ..Posted::new(&context, query) };
            return self.forward_over_http(posted, length, &Changes::default(), Passage::Nameless).await.map(drop);
        }
        let changes = self.changes_of(&context, query, statement, reason).await;
        let insert = outline(self.start_of(query));
        let purpose = context.purpose(insert.as_ref());
        let (additions, passage) = self.passage_of(&context, insert).await;
        let passage = match passage {
            Passage::Refused(refusal) => return self.refuse_with_data(query, length, &refusal).await,
            Passage::Repeat => return self.answer_repeat(query, length).await,
            // An INSERT SELECT, or what is looked at no closer.
            Passage::Elsewhere(owner) => {
                let posted = Posted { through: Through::Gateway(owner), ..Posted::new(&context, query) };
                return self.statement_to_owner(posted, length).await;
            }
            passage @ (Passage::Nameless | Passage::Claimed(_)) => passage,
        };
        let text = &self.wire.input[query.text.clone()];
        let set = settings_of_set(text).filter(|_| text.len() <= LOOKED_THROUGH_BYTES && !self.is_over_http());
        // What it leaves behind is undone only where it surely leaves nothing.
        let may_leave_something =
            text.trim_ascii_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"CREATE"));
        // Before it runs, and undone if it is refused: no insert behind it is to be taken too early. DuckDB knows no
        // sessions.
        let was_changed = self.is_changed;
        self.is_changed |= changes.session && self.state.backend.takes_requests() && set.is_none();
        if self.is_over_http() {
            let posted = Posted { additions: &additions, purpose, ..Posted::new(&context, query) };
            let is_done = self.forward_over_http(posted, length, &changes, passage).await?;
            self.is_changed = was_changed || self.is_changed && (is_done || may_leave_something);
            return Ok(());
        }
        // A connection that is passed on for the rest of its life keeps no account.
        drop(context);
        let forwarded =
            Forwarded { query, length, changes, additions, passage, purpose, set, was_changed, may_leave_something };
        self.forward_natively(forwarded).await
    }

    /// Says whether a statement reads tables that the gateway has and the backend doesn't. After USE, roles and
    /// temporary tables, its other names could mean something else there: the answer is then false.
    fn reads_own_tables(&self, query: &Query) -> bool {
        let is_whole = query.stage == windrow_clickhouse::native::STAGE_COMPLETE;
        if self.is_changed || !is_whole || !self.state.backend.takes_requests() {
            return false;
        }
        let own = own_table_references(self.start_of(query), &self.client.hello.database, &own_tables::NAMES);
        own.usage == OwnTableUse::Reads && !own.references.is_empty()
    }

    /// Returns the start of the text, as much as is looked through.
    fn start_of(&self, query: &Query) -> &[u8] {
        let text = &self.wire.input[query.text.clone()];
        &text[..text.len().min(LOOKED_THROUGH_BYTES)]
    }

    async fn changes_of(
        &self,
        context: &StatementContext<'_>,
        query: &Query,
        statement: Option<&OtherStatement>,
        reason: ForwardReason,
    ) -> Changes {
        let mut changes = Changes::of(statement, reason);
        if let (Some(statement), true) = (statement, changes.learnt != Learnt::Holds) {
            changes.gone = context.row_removal(statement, &self.wire.input[query.text.clone()]).await;
            if self.is_changed && changes.gone.is_some() {
                // Behind USE, a name without a database is another table's.
                changes.gone = Some(RowRemoval::OfAnyTable);
            }
        }
        changes
    }

    async fn passage_of(
        &self,
        context: &StatementContext<'_>,
        insert: Option<InsertOutline>,
    ) -> (Vec<(&'static str, &'static str)>, Passage) {
        let is_looked_at = self.state.backend.takes_requests() && !self.is_changed;
        match insert.filter(|_| is_looked_at) {
            Some(insert) => context.settle_deduplication(&insert).await,
            None => (Vec::new(), Passage::Nameless),
        }
    }

    /// Answers an INSERT whose rows are stored already.
    async fn answer_repeat(&mut self, query: &Query, length: usize) -> Result<(), Closed> {
        match self.tables_beside(query, length).await? {
            ExternalTables::Whole { end, .. } => self.wire.consume(end),
            ExternalTables::Unreadable => return Err(Closed),
            ExternalTables::Cancelled => return Ok(()),
        }
        self.tell_success(query, &Summary::default(), false).await
    }

    async fn forward_natively(&mut self, forwarded: Forwarded<'_>) -> Result<(), Closed> {
        let Forwarded { query, length, changes, additions, passage, purpose, set, was_changed, may_leave_something } =
            forwarded;
        if let Err(error) = self.upstream_for(purpose).await {
            self.is_changed = was_changed;
            return self.refuse_with_data(query, length, &error.refusal()).await;
        }
        let is_claimed = matches!(passage, Passage::Claimed(_));
        let has_to_be_known = changes.any() || is_claimed || changes.session && !was_changed;
        let mut end = length;
        if has_to_be_known {
            // What comes behind it is looked at when its answer is out.
            match self.tables_beside(query, length).await? {
                ExternalTables::Whole { end: of_tables, .. } => end = of_tables,
                ExternalTables::Cancelled => {
                    self.is_changed = was_changed;
                    return Ok(());
                }
                ExternalTables::Unreadable => {
                    self.state.have_changed(&changes).await;
                    return self.splice().await;
                }
            }
        }
        let bytes = self.without_own_settings(query, &additions, end);
        (self.is_forwarding, self.is_compressed) = (true, query.is_compressed);
        self.client.upstream.as_mut().ok_or(Closed)?.wire.send(&bytes).await?;
        if !has_to_be_known {
            return Ok(());
        }
        let answered = self.pass_its_answer().await;
        if !matches!(answered, Ok(Answered { ended: Ended::Failed { .. }, .. })) {
            // Before the client can know of it; if one of the two has gone, whether it was done is not known.
            self.state.have_changed(&changes).await;
        }
        let Answered { ended, last } = answered?;
        self.state.conclude(passage, matches!(ended, Ended::Done)).await;
        self.wire.write.send(&last, self.wire.idle).await?;
        match ended {
            Ended::Done => set.into_iter().for_each(|set| self.keep_settings(set)),
            Ended::Failed { .. } => self.is_changed = was_changed || self.is_changed && may_leave_something,
            Ended::Unreadable => return self.splice().await,
        }
        Ok(())
    }

    /// Passes an answer on up to its last packet, which is returned. The client may ping and cancel meanwhile.
    async fn pass_its_answer(&mut self) -> Result<Answered, Closed> {
        let form = Form { revision: self.client.revision, is_compressed: self.is_compressed };
        let Session { wire, client, .. } = self;
        let Upstream { wire: back, .. } = client.upstream.as_mut().ok_or(Closed)?;
        let meanwhile = async {
            loop {
                match first_byte(&mut wire.read, &mut wire.input).await.map(u64::from) {
                    Some(kind @ (client::PING | client::CANCEL)) => {
                        wire.input.remove(0);
                        back.write.send(&[kind as u8], back.idle).await?;
                    }
                    Some(_) => std::future::pending().await,
                    None => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        };
        let answered = tokio::select! {
            biased;
            answered = pass_answer(&mut back.read, &mut back.input, &mut wire.write, form, AnsweredPart::default()) => answered,
            gone = meanwhile => gone,
        };
        Ok(answered?)
    }

    /// Keeps the settings of a plain SET. If they are too many, the session with all that follows is left to
    /// the backend.
    fn keep_settings(&mut self, set: Vec<(String, String)>) {
        self.settings.retain(|(name, _)| set.iter().all(|(other, _)| other != name));
        self.settings.extend(set);
        self.latest = None;
        if self.settings.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MAX_SET_BYTES {
            (self.is_changed, self.settings) = (true, Vec::new());
        }
    }
}
