//! The hop of an insert that another gateway owns: the insert goes there as it came; see [`crate::cluster`].

use std::sync::Arc;

use bytes::Bytes;
use windrow_clickhouse::Purpose;
use windrow_http::{Connection, ResponseBuilder};

use super::answer::{self, After};
use super::exchange::{send, Exchange};
use super::forward::{relay, ForwardError, Forwarded, ForwardedBody, Relayed, ToClient};
use super::forwarding::connection_fields;
use crate::cluster::{patience, Attempts, Change, Cluster, GatewayId, OtherGateway, CHANGED, FIELD};
use crate::error::Refusal;

impl Exchange<'_> {
    /// Says whether an insert is handled here, whichever gateway owns it: it has made its hop, or its session
    /// was changed here, of which another gateway knows nothing.
    pub(super) fn stays_here(&self) -> bool {
        self.came_by_hop || self.session().is_some_and(|session| self.state.sessions.is_changed(session))
    }

    fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.state.cluster.as_ref().filter(|_| !self.came_by_hop)
    }

    /// Sends the request to the gateway that owns it, and that gateway's answer back. `start` is the part of
    /// the body that was read.
    pub(super) async fn hop(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        owner: GatewayId,
        start: Bytes,
    ) -> After {
        let Some(gateway) = self.cluster().map(|cluster| cluster.gateway(owner)) else { return After::Close };
        self.takes("hop");
        // What has been read whole can be sent again.
        let is_whole = connection.body_is_done();
        let mut attempts = Attempts::new(self.state, patience(self.state, &self.request.options()));
        loop {
            let cause = match self.hop_once(connection, gateway, start.clone()).await {
                Ok(after) => {
                    gateway.answered();
                    self.origin.is_of_user(self.peer);
                    self.origin.mark("hop");
                    return after;
                }
                Err(ForwardError::Broken | ForwardError::HalfAnswer) => return After::Close,
                Err(ForwardError::NotSent(error)) => error.cause.to_string(),
                Err(ForwardError::NoAnswer(cause)) if is_whole => {
                    attempts.may_have_arrived();
                    cause
                }
                Err(ForwardError::NoAnswer(cause)) => {
                    self.refuse(connection, out, &Refusal::owner_lost(gateway.name(), &cause)).await;
                    return After::Close;
                }
            };
            if let Err(refusal) = attempts.again(gateway, &cause).await {
                return self.refuse(connection, out, &refusal).await;
            }
        }
    }

    async fn hop_once(
        &self,
        connection: &mut Connection,
        gateway: &OtherGateway,
        start: Bytes,
    ) -> Result<After, ForwardError> {
        let after = answer::after(self.request.head, connection);
        let write_idle = connection.limits().write_idle_timeout;
        let fields = connection_fields(after, connection);
        let lease = gateway.client().connection_for(Purpose::Statement).await.map_err(ForwardError::NotSent)?;
        let head = self.request.head;
        let mut forwarded = Forwarded {
            head,
            method: head.method().clone(),
            target: head.target().to_owned(),
            without: Vec::new(),
            with: vec![(FIELD, gateway.hop_value(self.origin.back_after))],
            body: ForwardedBody::Clients { start },
            cancel_on_close: false,
            hedge_after: None,
        };
        if let Some(trace) = self.origin.trace {
            trace.name("hop");
            forwarded.without.push("traceparent");
            forwarded.with.push(("traceparent", trace.context().traceparent()));
        }
        let (body, client) = connection.body().await.map_err(|_| ForwardError::Broken)?;
        let to_client = ToClient {
            client,
            connection_fields: &fields,
            write_idle,
            has_to_be_known: false,
            when_done: &|| Box::pin(std::future::ready(())),
            of: Some(gateway),
        };
        let Relayed { keep_alive, .. } = relay(lease, forwarded, body, to_client).await?;
        Ok(if keep_alive { after } else { After::Close })
    }

    /// Answers a ping of another gateway, and takes note of the change that the ping may tell of.
    pub(super) async fn pong(&self, cluster: &Cluster, connection: &mut Connection, out: &mut Vec<u8>) -> After {
        self.takes("ping");
        let changed = self.request.params.iter().find(|param| param.name() == CHANGED);
        if let Some(change) = changed.and_then(|param| Change::read(param.text()?)) {
            self.state.has_changed_somewhere(&change).await;
        }
        let after = match connection.body_is_done() {
            true => answer::after(self.request.head, connection),
            false => After::Close,
        };
        let fields = connection_fields(after, connection);
        let response =
            ResponseBuilder::new(out, 200).date().prepared(&fields).field("Content-Type", "application/json");
        response.body(cluster.pong().as_bytes());
        send(connection, out, after).await
    }
}
