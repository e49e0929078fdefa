//! Requests that are not gathered, where DuckDB or another database that takes SQL is the backend: what would be
//! forwarded to a ClickHouse is answered here.
//!
//! An insert with data is taken or refused, here and with a reason: there is nobody behind who reads more formats than
//! the gateway does. Everything else is SQL, and the database's to run; so are VALUES in which expressions stand.

use windrow_http::Connection;

use super::answering::StatementTerms;
use super::users::Access;
use super::SqlBackend;
use crate::data::{After, Cause, Exchange, Read};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::too_large;

impl Exchange<'_> {
    /// A request that anybody may make: it needs no user.
    pub(crate) async fn answer_anyone(
        &self,
        backend: &SqlBackend,
        connection: &mut Connection,
        out: &mut Vec<u8>,
    ) -> After {
        self.state.metrics.forwarded(ForwardReason::NotAQuery);
        let asking = StatementTerms { access: Access { readonly: true }, gone: None };
        self.answer_by_sql(backend, asking, connection, out, Read::nothing()).await
    }

    /// Runs a statement.
    pub(crate) async fn run_sql(
        &self,
        backend: &SqlBackend,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        cause: Cause<'_>,
        read: Read,
    ) -> After {
        self.takes(backend.database.kind());
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
        let asking = StatementTerms { access, gone: gone.as_ref() };
        self.answer_by_sql(backend, asking, connection, out, read).await
    }
}
