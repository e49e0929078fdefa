//! The health of the other gateways. Each is pinged once a second, on the port that hops go to and with a
//! hop's field, so that an answered ping says that a hop would be taken.

use std::sync::Weak;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use windrow_http::ClientError;

use super::changes::Change;
use super::{Cluster, OtherGateway, CHANGED, FIELD, PING_PATH};

const INTERVAL: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(2);
/// Time without an answer after which a gateway is not waited for any more. A sender that waits for its
/// answer asks again, which does no harm if the gateway comes back after all.
const GONE_AFTER: Duration = Duration::from_secs(10);
const MAX_PONG_BYTES: usize = 4096;

/// The health of one other gateway. Nothing is known at first.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    pong: Option<Pong>,
    has_same_list: bool,
    /// The time since when the gateway has not answered, and the reason.
    down: Option<(Instant, String)>,
    is_gone: bool,
}

impl Health {
    pub(super) fn is_up(&self) -> bool {
        self.pong.is_some() && self.down.is_none()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(super) fn reason(&self) -> Option<&str> {
        match &self.down {
            Some((_, why)) => Some(why),
            None if self.pong.is_none() => Some("it has not been asked yet"),
            None => None,
        }
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.pong.as_ref().map(|pong| pong.version.as_str())
    }

    pub(super) fn has_same_list(&self) -> Option<bool> {
        self.pong.as_ref().map(|_| self.has_same_list)
    }

    fn note(&mut self, answer: Result<Pong, String>, fingerprint: &str) {
        match answer {
            Ok(pong) => {
                self.has_same_list = pong.gateways == fingerprint;
                (self.pong, self.down, self.is_gone) = (Some(pong), None, false);
            }
            Err(why) => {
                let (since, reason) = self.down.get_or_insert_with(|| (Instant::now(), String::new()));
                *reason = why;
                self.is_gone = since.elapsed() >= GONE_AFTER;
            }
        }
    }
}

/// A gateway's answer to a ping, about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pong {
    /// The fingerprint of its list of gateways.
    pub(super) gateways: String,
    pub(super) version: String,
}

impl Pong {
    pub(super) fn text(&self) -> String {
        json!({ "gateways": self.gateways, "version": self.version }).to_string()
    }

    fn read(text: &[u8]) -> Option<Pong> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(Pong { gateways: text("gateways")?, version: text("version")? })
    }
}

/// Pings a gateway for as long as the cluster is in use.
pub(super) async fn watch(cluster: Weak<Cluster>, other: Weak<OtherGateway>, fingerprint: String) {
    let mut interval = tokio::time::interval(INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let Some(gateway) = other.upgrade() else { return };
        tokio::select! {
            _ = interval.tick() => {}
            () = gateway.untold.news.notified() => {}
        }
        let answer = tokio::time::timeout(TIMEOUT, ping(&gateway)).await;
        let answer =
            answer.unwrap_or_else(|_| Err(format!("it has not answered a ping within {} s", TIMEOUT.as_secs())));
        let before = gateway.health();
        gateway.health.send_modify(|health| health.note(answer, &fingerprint));
        let now = gateway.health();
        tell(gateway.name(), &before, &now);
        gateway.gauges.up.set(i64::from(now.is_up()));
        gateway.gauges.lists_differ.set(i64::from(now.has_same_list() == Some(false)));
        drop(gateway);
        let Some(cluster) = cluster.upgrade() else { return };
        if before.is_up() != now.is_up() {
            cluster.has_changed();
        }
    }
}

fn tell(gateway: &str, before: &Health, now: &Health) {
    match (before.is_up(), now.is_up()) {
        (false, true) => tracing::info!(gateway, version = now.version(), "another gateway of the cluster answers"),
        (_, false) if before.down.is_none() => tracing::warn!(
            gateway,
            reason = now.reason(),
            "another gateway of the cluster does not answer: inserts that it owns wait for it"
        ),
        _ => {}
    }
    if now.has_same_list() == Some(false) && before.has_same_list() != Some(false) {
        tracing::warn!(
            gateway,
            "another gateway has other cluster.gateways than this one: until all have the same, a repeat that comes to \
             another gateway may be stored twice"
        );
    }
}

async fn ping(gateway: &OtherGateway) -> Result<Pong, String> {
    let Some((change, count)) = gateway.untold.take() else { return ping_with(gateway, "").await };
    let parameters = format!("?{CHANGED}={}", change.text());
    let mut telling = Telling { gateway, change: Some(change) };
    let answer = ping_with(gateway, &parameters).await;
    if answer.is_ok() {
        telling.change = None;
        gateway.untold.heard(count);
    }
    answer
}

/// A change that a ping carries. A ping may be given up at any time: the change is then told again.
struct Telling<'a> {
    gateway: &'a OtherGateway,
    change: Option<Change>,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if let Some(change) = self.change.take() {
            self.gateway.untold.not_heard(change);
        }
    }
}

async fn ping_with(gateway: &OtherGateway, parameters: &str) -> Result<Pong, String> {
    let lost = |error: ClientError| error.to_string();
    let mut lease = gateway.client().connection().await.map_err(|error| error.cause.to_string())?;
    let authority = lease.endpoint().authority();
    let request = format!(
        "GET {PING_PATH}{parameters} HTTP/1.1\r\nHost: {authority}\r\n{FIELD}: {}\r\n\r\n",
        gateway.ping_value()
    );
    let connection = lease.connection();
    connection.send(request.as_bytes(), TIMEOUT).await.map_err(|error| error.to_string())?;
    let head = connection.read_head(false, TIMEOUT).await.map_err(lost)?;
    let body = connection.body(&head).collect(MAX_PONG_BYTES, TIMEOUT).await.map_err(lost)?;
    lease.give_back(&head);
    match (head.status(), Pong::read(&body)) {
        (200, Some(pong)) => Ok(pong),
        (status, _) => {
            let said = String::from_utf8_lossy(&body);
            Err(format!("it does not answer as a gateway of this cluster: status {status}: {}", said.trim()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pong() -> Pong {
        Pong { gateways: "f".into(), version: "1".into() }
    }

    #[test]
    fn a_pong_is_read_as_it_is_written() {
        assert_eq!(Pong::read(pong().text().as_bytes()), Some(pong()));
        assert_eq!(Pong::read(b"Ok.\n"), None);
        assert_eq!(Pong::read(b"{\"gateways\": 1}"), None);
    }

    #[test]
    fn nobody_is_up_before_its_first_answer() {
        let mut health = Health::default();
        assert!(!health.is_up() && !health.is_gone() && health.reason().is_some());
        health.note(Ok(pong()), "f");
        assert!(health.is_up() && health.has_same_list() == Some(true) && health.reason().is_none());
        health.note(Err("gone".into()), "f");
        assert!(!health.is_up() && !health.is_gone());
        health.down = Some((Instant::now() - GONE_AFTER, String::new()));
        health.note(Err("gone still".into()), "f");
        assert_eq!((health.is_gone(), health.reason()), (true, Some("gone still")));
        health.note(Ok(pong()), "g");
        assert!(health.is_up() && !health.is_gone() && health.has_same_list() == Some(false));
    }
}
