//! Requests over HTTP that are not gathered, where the backend is a database that takes SQL: a ClickHouse would get them
//! forwarded; here they are answered.
//!
//! An insert with data is taken or refused, here and with a reason: nobody behind the gateway reads more formats than the
//! gateway does. Everything else is SQL, and the database's to run; so are VALUES in which expressions stand.

use std::sync::Arc;

use windrow_http::Connection;

use super::{rows_for, Access, BackendFacts, OwnRows, SqlBackend};
use crate::data::{After, Cause, Exchange, Read};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::too_large;
use crate::statement::RowRemoval;

/// The facts about a statement that are known before it is taken apart.
#[derive(Clone, Copy)]
pub struct StatementTerms<'a> {
    pub access: Access,
    /// The tables that the statement takes rows away from, if it is done.
    gone: Option<&'a RowRemoval>,
}

impl Exchange<'_> {
    /// Answers a request that anybody may make, without a user.
    pub(crate) async fn answer_anyone(
        &self,
        backend: &dyn SqlBackend,
        connection: &mut Connection,
        out: &mut Vec<u8>,
    ) -> After {
        self.state.metrics.forwarded(ForwardReason::NotAQuery);
        let terms = StatementTerms { access: Access { readonly: true }, gone: None };
        backend.answer(self, terms, connection, out, Read::nothing()).await
    }

    /// Runs a statement.
    pub(crate) async fn run_sql(
        &self,
        backend: &dyn SqlBackend,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        cause: Cause<'_>,
        read: Read,
    ) -> After {
        self.takes(backend.kind());
        let Cause { reason, statement, text, .. } = cause;
        let credentials = self.credentials();
        let Some(access) = credentials.and_then(|credentials| backend.access(credentials)) else {
            let user = credentials.map_or("default", |credentials| &credentials.user);
            return self.refuse(connection, out, &Refusal::wrong_password(user)).await;
        };
        if reason == ForwardReason::TooLarge {
            return self.refuse(connection, out, &too_large(self.state.max_table_bytes)).await;
        }
        let _claim = match self.context().claim_for_forwarded().await {
            Ok(claim) => claim,
            Err(refusal) => return self.refuse(connection, out, &refusal).await,
        };
        self.state.metrics.forwarded(reason);
        let gone = match statement.zip(text.as_ref()) {
            Some((statement, text)) => self.context().row_removal(statement, &text.joined()).await,
            None => None,
        };
        let terms = StatementTerms { access, gone: gone.as_ref() };
        backend.answer(self, terms, connection, out, read).await
    }

    /// Returns the fixed parts of answers.
    pub fn facts(&self) -> Arc<BackendFacts> {
        self.state.admission.facts.get()
    }

    /// Counts an error that the client is told behind the head of an answer.
    pub fn count_refusal(&self, refusal: &Refusal) {
        self.state.metrics.refused(refusal);
    }

    /// Forgets which inserts are stored in the tables that a statement has, or may have, taken rows away from.
    pub async fn rows_are_gone(&self, terms: &StatementTerms<'_>) {
        self.state.forget_rows(terms.gone).await;
    }

    /// Returns the rows of a table of `system` that the gateway keeps itself, as far as a user may see them.
    pub fn own_rows(&self, user: &str, access: Access, table: &str) -> Option<OwnRows> {
        rows_for(self.state, user, access, table)
    }
}
