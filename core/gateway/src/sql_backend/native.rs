//! Statements of native clients, where the backend is a database that takes SQL.

use windrow_clickhouse::ErrorCode;

use super::{rows_for, statement_text, SqlBackend, SqlRun, SqlStatement};
use crate::error::Refusal;
use crate::native::{wait_for, Blocks, Failure, Posted, Session};
use crate::statement::Changes;

/// The bytes of a result that are gathered before they are sent.
const BUFFER_BYTES: usize = 256 * 1024;

impl Session<'_> {
    /// Runs a statement, and sends its rows.
    pub(crate) async fn run_on_sql(
        &mut self,
        backend: &dyn SqlBackend,
        posted: Posted<'_>,
        text: &[u8],
        changes: &Changes,
        has_to_be_known: bool,
    ) -> Result<(), Failure> {
        let key = &posted.context.user_key;
        let user = key.credentials.user.as_str();
        let access = backend.access(&key.credentials);
        let access = access.ok_or_else(|| Failure::Refused(Refusal::wrong_password(user)))?;
        let text = statement_text(text.to_vec()).map_err(Failure::Refused)?;
        let state = self.state;
        let mut run = backend
            .prepare(&SqlStatement {
                text: &text,
                user,
                readonly: access.readonly,
                options: &posted.context.options,
                database: key.database.as_deref(),
                format: Some("Native"),
                native_revision: self.client.revision,
                by_get: false,
                own_tables: &|table| rows_for(state, user, access, table),
            })
            .map_err(Failure::Refused)?;
        // A statement that has begun to write goes on when its client has gone.
        let has_to_be_known = has_to_be_known || !run.only_reads();
        let ran = match run.has_rows() && !run.is_native() {
            true => {
                let text = "Native clients get results in the format Native alone: leave FORMAT out";
                Err(Failure::Refused(Refusal::statement(ErrorCode::NOT_IMPLEMENTED, text.to_owned())))
            }
            false => {
                let blocks = Blocks::new(self.client.revision, posted.query.is_compressed);
                self.send_rows(&mut *run, blocks, has_to_be_known).await
            }
        };
        // One that is stopped may still take rows away until then: what is stored in its tables is forgotten behind it.
        drop(run);
        // A statement that is out of time may just have been done.
        let is_refused = matches!(&ran, Err(Failure::Refused(refusal)) if refusal.code != ErrorCode::TIMEOUT_EXCEEDED);
        if !is_refused {
            self.state.forget_rows(changes.gone.as_ref()).await;
        }
        ran
    }

    async fn send_rows(
        &mut self,
        run: &mut dyn SqlRun,
        mut blocks: Blocks,
        has_to_be_known: bool,
    ) -> Result<(), Failure> {
        let mut body = Vec::new();
        let mut goes_on = true;
        while goes_on {
            goes_on =
                wait_for(&mut self.wire, has_to_be_known, run.advance(&mut body)).await?.map_err(Failure::Refused)?;
            if run.has_rows() && (body.len() >= BUFFER_BYTES || !goes_on) {
                blocks.take(&std::mem::take(&mut body)).map_err(Failure::Refused)?;
                self.wire.send(&std::mem::take(&mut blocks.out)).await.map_err(|_| Failure::Closed)?;
            }
        }
        Ok(())
    }
}
