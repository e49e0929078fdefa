//! Statements of native clients where a DuckDB, or a database behind ADBC, is the backend: it runs them in this process.

use windrow_clickhouse::ErrorCode;

use super::ask::{Question, Statement, Who};
use super::run::{Elsewhere, Failure as NotRun, Run};
use super::text::statement_text;
use super::SqlBackend;
use crate::error::Refusal;
use crate::native::{wait_for, Blocks, Failure, Posted, Session};
use crate::statement::Changes;

/// As much of a result is gathered before it is sent.
const BUFFER_BYTES: usize = 256 * 1024;

impl From<NotRun> for Failure {
    fn from(failure: NotRun) -> Failure {
        match failure {
            NotRun::Refused(refusal) => Failure::Refused(refusal),
            NotRun::Gone => Failure::Closed,
        }
    }
}

impl Session<'_> {
    /// Runs a statement, and sends its rows.
    pub(crate) async fn run_on_sql(
        &mut self,
        backend: &SqlBackend,
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
        let statement = Statement {
            text: &text,
            who: Who { user, readonly: access.readonly },
            options: &posted.context.options,
            database: key.database.as_deref(),
            format: Some("Native"),
            native_revision: self.client.revision,
            by_get: false,
        };
        let question = Question::of(self.state, &backend.database, &statement).map_err(Failure::Refused)?;
        let run = Run::new(&backend.database, &question);
        // What has been begun to be written goes on when the one who asked has gone.
        let has_to_be_known = has_to_be_known || !question.only_reads();
        let ran = match question.has_rows() {
            true if question.is_native() => {
                self.send_rows(&run, Blocks::new(self.client.revision, posted.query.is_compressed), has_to_be_known)
                    .await
            }
            true => {
                let text = "Native clients get results in the format Native alone: leave FORMAT out";
                Err(Failure::Refused(Refusal::statement(ErrorCode::NOT_IMPLEMENTED, text.to_owned())))
            }
            false => match wait_for(&mut self.wire, has_to_be_known, run.change(&mut Elsewhere)).await {
                Ok(changed) => changed.map(drop).map_err(Failure::from),
                Err(stopped) => Err(stopped.into()),
            },
        };
        // One that is out of time may just have been done.
        let is_refused = matches!(&ran, Err(Failure::Refused(refusal)) if refusal.code != ErrorCode::TIMEOUT_EXCEEDED);
        if !is_refused {
            self.state.forget_rows(changes.gone.as_ref()).await;
        }
        ran
    }

    async fn send_rows(&mut self, run: &Run<'_>, mut blocks: Blocks, has_to_be_known: bool) -> Result<(), Failure> {
        let mut body = Vec::new();
        let mut rows = wait_for(&mut self.wire, has_to_be_known, run.rows(&mut Elsewhere, &mut body)).await??;
        let mut goes_on = true;
        while goes_on {
            goes_on =
                wait_for(&mut self.wire, has_to_be_known, run.more(&mut Elsewhere, &mut rows, &mut body)).await??;
            if body.len() >= BUFFER_BYTES || !goes_on {
                blocks.take(&std::mem::take(&mut body)).map_err(Failure::Refused)?;
                self.wire.send(&std::mem::take(&mut blocks.out)).await.map_err(|_| Failure::Closed)?;
            }
        }
        Ok(())
    }
}
