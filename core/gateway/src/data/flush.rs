//! The statement `SYSTEM FLUSH ASYNC INSERT QUEUE`, answered here.

use windrow_http::Connection;

use super::answer::{After, Answering};
use super::body::Read;
use super::exchange::{send, Exchange};
use super::forwarding::Cause;
use super::strangers::Sender;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::{query_id, Summary};

impl Exchange<'_> {
    /// Stores what has been gathered. A backend with a queue of its own gets the statement as well.
    pub(super) async fn flush(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        tables: Vec<windrow_sql::TableName>,
        read: Read,
    ) -> After {
        let Some(credentials) = self.credentials() else {
            return self.forward(connection, out, Cause::plain(ForwardReason::Credentials), read).await;
        };
        if let Sender::Nobody = self.sender().await {
            return self.forward(connection, out, Cause::plain(ForwardReason::UnknownUser), read).await;
        }
        match self.context().flush_gathered(tables).await {
            Ok(true) => {}
            Ok(false) if self.state.backend.takes_requests() => {
                return self.forward(connection, out, Cause::plain(ForwardReason::Refused), read).await
            }
            Ok(false) => return self.refuse(connection, out, &Refusal::readonly(&credentials.user)).await,
            Err(refusal) => return self.refuse(connection, out, &refusal).await,
        }
        if self.state.options.default_user.is_none() && self.state.backend.takes_requests() {
            return self.forward(connection, out, Cause::plain(ForwardReason::OtherStatement), read).await;
        }
        let facts = self.state.admission.facts.get();
        let id = query_id(self.request.query_id());
        let form = self.form();
        let answering = Answering { head: self.request.head, connection, facts: &facts, form, head_begun: false };
        let after = answering.success(out, &id, Summary::default());
        send(connection, out, after).await
    }
}
