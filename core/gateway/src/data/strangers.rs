//! The sender of a request, and the little that is done for strangers.
//!
//! A stranger is a sender of whom ClickHouse has not said that he is a user. Whole small requests are sent on all the
//! same: they cost little, and ClickHouse refuses them in its own words. For everything else, the sender must be known
//! first: before more of a body is read than came with its head, before anything is unpacked, before a connection to
//! ClickHouse is held for as long as the client likes to send. ClickHouse is asked about few strangers at a time, and
//! about fewer of one network: an attacker who tries names and passwords makes only himself wait.

use std::net::IpAddr;
use std::time::Duration;

use windrow_http::ConnectionPermit;

use super::classify::Plan;
use super::exchange::Exchange;
use crate::admission::{NotAdmitted, UserKey};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::NotGathered;
use crate::state::State;

/// Time that a sender waits until ClickHouse is asked about him, and for its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The client of a connection, as far as it is known.
pub struct Peer {
    pub(crate) address: IpAddr,
    pub permit: ConnectionPermit,
}

/// The sender of a request, as far as ClickHouse knows.
#[derive(Clone)]
pub(crate) enum Sender {
    User,
    /// ClickHouse refuses the name or the password.
    Nobody,
    /// ClickHouse can't be asked now.
    Away(String),
    /// ClickHouse is to be asked about too many others first.
    Behind,
    /// The sender is known to ClickHouse alone, from the request itself.
    Unclear,
}

/// Asks ClickHouse whether the sender is a user, if it has to be asked.
pub(crate) async fn find_sender(state: &State, peer: &Peer, key: &UserKey) -> Sender {
    let admission = &state.admission;
    if state.backend.knows_users() || admission.known_user(key).is_some() {
        peer.permit.is_of_user();
        return Sender::User;
    }
    let asked = async {
        let _turn = state.strangers.turn(peer.address).await;
        match admission.was_let_in(key, state.kept_ttl()).await {
            true => Ok(()),
            false => admission.unless_away(admission.account(key)).await.map(drop),
        }
    };
    match tokio::time::timeout(PATIENCE, asked).await {
        Err(_) => Sender::Behind,
        Ok(Err(NotAdmitted::Forward(ForwardReason::UnknownUser))) => Sender::Nobody,
        Ok(Err(NotAdmitted::Unreachable(cause))) => Sender::Away(cause),
        // Known, or known well enough to be refused something.
        Ok(_) => {
            peer.permit.is_of_user();
            Sender::User
        }
    }
}

impl Exchange<'_> {
    /// Returns the sender of the request. ClickHouse is asked once, if it has to be.
    pub(super) async fn sender(&self) -> &Sender {
        let sender = self.sender.get_or_init(|| self.find_sender()).await;
        if let (Sender::User, Some(trace)) = (sender, self.origin.trace) {
            trace.is_of_user();
        }
        sender
    }

    async fn find_sender(&self) -> Sender {
        match self.credentials() {
            Some(credentials) => find_sender(self.state, self.peer, &self.request.user_key(credentials)).await,
            None => Sender::Unclear,
        }
    }

    /// Returns why an insert of a stranger is not gathered: ClickHouse refuses him, or is to be asked about
    /// others first. While ClickHouse is away, nobody is a stranger: its last answers hold then.
    pub(super) async fn plan_for_strange_insert(&self) -> Option<NotGathered> {
        let (backend, admission) = (&self.state.backend, &self.state.admission);
        if backend.knows_users() || self.credentials().is_none() {
            return None;
        }
        if !admission.backend_has_answered() && !admission.goes_by_what_was_kept(self.state.kept_ttl()) {
            return None;
        }
        match self.sender().await {
            // It is forwarded, and refused.
            Sender::Nobody => Some(ForwardReason::UnknownUser.into()),
            Sender::Behind => Some(NotGathered::Refused(behind())),
            Sender::User | Sender::Away(_) | Sender::Unclear => None,
        }
    }

    /// Decides about a request of which more has to be read or done than for a stranger. Returns `None` if
    /// its sender is a user.
    pub(super) async fn plan_for_stranger(&self, reason: ForwardReason) -> Option<Plan> {
        match self.sender().await {
            Sender::User => None,
            Sender::Nobody => {
                let user = self.credentials().map_or("", |credentials| credentials.user.as_str());
                Some(Plan::Refuse(Refusal::wrong_password(user)))
            }
            Sender::Away(cause) => Some(Plan::Refuse(Refusal::unreachable(cause))),
            Sender::Behind => Some(Plan::Refuse(behind())),
            Sender::Unclear => Some(self.by_its_url(reason)),
        }
    }
}

pub(crate) fn behind() -> Refusal {
    Refusal::too_busy(
        "ClickHouse is asked about too many other users first. Nothing was stored; try again later".into(),
    )
}
