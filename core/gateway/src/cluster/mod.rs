//! Several gateways in front of one ClickHouse: which gateway owns an insert, how an insert comes to its
//! owner, and the gateways' health.
//!
//! An insert that Windrow deduplicates is known by its keys in the deduplication index of *one* gateway, its **owner**:
//! a function of the keys and of the list of gateways (`owner.rs`), so that every gateway comes to the same one without
//! asking. At another gateway the insert is not taken but makes one **hop**: the whole request goes to the owner, with
//! the client's own credentials and a field that says that it is a hop and shows the gateways' secret (`hop.rs`). What
//! the owner answers is the answer.
//!
//! - A request that came by a hop makes no other, whatever this gateway's list says: there are no loops.
//! - An insert that came by a hop is like any other: the owner asks for its account, reads it, and gathers it.
//! - The owner knows the insert again, so a hop whose answer was lost is made again (`attempts.rs`), to the same owner.
//! - While the owner is away, its inserts wait; after their time they are refused. No other gateway takes them,
//!   because no other would know the repeat of an insert that the owner has in its journal.
//!
//! Inserts without keys never come here. The gateways ping each other (`health.rs`), for people and alerts, and to know
//! among how many they share the backend (`engine/policy/stretch.rs`).

mod attempts;
mod changes;
mod health;
mod hop;
mod metrics;
mod other;
mod owner;

use std::sync::{Arc, OnceLock};

use prometheus_client::registry::Registry;
use serde_json::{json, Value};
use windrow_clickhouse::{ClientOptions, Endpoint};
use windrow_engine::DedupKeys;
use windrow_http::RequestHead;
use windrow_settings::{ClusterSecret, Settings};

pub(crate) use self::attempts::{patience, Attempts};
pub(crate) use self::changes::{Change, Gone};
pub(crate) use self::hop::{is_hop_field, Hop, CHANGED, FIELD, PING_PATH};
pub(crate) use self::other::OtherGateway;

use self::health::Pong;
use self::metrics::ClusterMetrics;
use self::owner::Owners;
use crate::error::Refusal;

/// A gateway's index in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GatewayId(usize);

/// The key that the deduplication index has for a whole insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InsertKey {
    table: u128,
    key: u128,
    /// Says whether the key comes from a token that the insert itself has, not from its rows.
    has_token: bool,
}

impl InsertKey {
    pub(crate) fn new(keys: &DedupKeys, has_token: bool) -> InsertKey {
        InsertKey { table: keys.table, key: keys.key, has_token }
    }
}

/// All gateways of the cluster, as this one sees them.
pub struct Cluster {
    own: usize,
    names: Vec<String>,
    owners: Owners,
    /// The other gateways by their index; this gateway is `None`.
    others: Vec<Option<Arc<OtherGateway>>>,
    secret: String,
    stretches_holds: bool,
    /// Says whether inserts that are known by their rows have an owner, too.
    rows_hop: bool,
    metrics: ClusterMetrics,
    /// A function that is told how many gateways share the holds, this one included, when that changes.
    on_change: OnceLock<Box<dyn Fn(usize) + Send + Sync>>,
}

impl Cluster {
    /// Makes the cluster of the settings; `None` if this gateway is alone.
    ///
    /// # Errors
    /// Fails where the secret can't be read or is not fit, a gateway's address is no URL, or the CA file
    /// can't be used.
    pub fn of(settings: &Settings, registry: &mut Registry) -> Result<Option<Arc<Cluster>>, String> {
        let Some(of) = &settings.cluster else { return Ok(None) };
        let secret = secret(&of.secret)?;
        let options = ClientOptions {
            // No more requests than these can be under way here.
            max_connections: settings.http.max_connections,
            ca_file: of.ca_file.clone(),
            ..ClientOptions::default()
        };
        let metrics = ClusterMetrics::register(registry);
        let mut others = Vec::new();
        for (at, name) in of.gateways.iter().enumerate() {
            if at == of.own {
                others.push(None);
                continue;
            }
            let endpoint = Endpoint::parse(name).map_err(|error| format!("`cluster.gateways`: {name}: {error}"))?;
            warn_of_plain_text(&endpoint);
            let field = hop::value(name, &secret);
            let other = OtherGateway::new(name, endpoint, options.clone(), field, &metrics);
            others.push(Some(Arc::new(other.map_err(|error| format!("{error}; see `cluster.ca_file`"))?)));
        }
        Ok(Some(Arc::new(Cluster {
            own: of.own,
            owners: Owners::of(&of.gateways),
            names: of.gateways.clone(),
            others,
            secret,
            stretches_holds: of.stretch_holds,
            rows_hop: of.rows_hop,
            metrics,
            on_change: OnceLock::new(),
        })))
    }

    /// Says whether another gateway may own an insert, and thus the next one of the same writer.
    pub(crate) fn shares(&self, insert: InsertKey) -> bool {
        (insert.has_token || self.rows_hop) && self.names.len() > 1
    }

    /// Returns the insert's owner, if that is another gateway.
    pub(crate) fn elsewhere(&self, insert: InsertKey) -> Option<GatewayId> {
        if !self.shares(insert) {
            return None;
        }
        let owner = self.owners.owner(insert);
        (owner != self.own).then_some(GatewayId(owner))
    }

    pub(crate) fn gateway(&self, id: GatewayId) -> &Arc<OtherGateway> {
        self.others[id.0].as_ref().expect("a gateway is elsewhere only if it is not this one")
    }

    /// Returns the hop that a request came by, if it has a hop's field. Fails if the field is not valid.
    pub(crate) fn came_by_hop(cluster: Option<&Arc<Cluster>>, head: &RequestHead) -> Result<Option<Hop>, Refusal> {
        let given = head.fields().filter(|(name, _)| is_hop_field(name)).map(|(_, value)| value);
        let mut given = given.peekable();
        if given.peek().is_none() {
            return Ok(None);
        }
        let refused = |refusal: Refusal| {
            if let Some(cluster) = cluster {
                cluster.metrics.refused.inc();
            }
            Err(refusal)
        };
        let Some(here) = cluster else { return refused(hop::without_cluster()) };
        // Of two nobody knows which one is meant.
        let only = given.next().filter(|_| given.next().is_none());
        match hop::check(only, &here.names[here.own], &here.secret) {
            Ok(hop) => Ok(Some(hop)),
            Err(refusal) => refused(refusal),
        }
    }

    /// Counts a request that came by a hop and is served.
    pub(crate) fn takes(&self) {
        self.metrics.taken.inc();
    }

    /// Returns the answer to another gateway's ping.
    pub(crate) fn pong(&self) -> String {
        Pong { gateways: self.owners.fingerprint(), version: env!("CARGO_PKG_VERSION").to_owned() }.text()
    }

    /// Pings the other gateways from now on. `on_change` is told how many gateways share the holds.
    pub(crate) fn watch(self: &Arc<Self>, on_change: impl Fn(usize) + Send + Sync + 'static) {
        // Who comes second has nothing else to say.
        let _ = self.on_change.set(Box::new(on_change));
        self.has_changed();
        for other in self.others.iter().flatten() {
            tokio::spawn(health::watch(Arc::downgrade(self), Arc::downgrade(other), self.owners.fingerprint()));
        }
    }

    /// Tells all other gateways of a change. Those that answer have heard of it when this returns.
    pub(crate) async fn tell(&self, change: &Change) {
        let telling = self.others.iter().flatten().map(|other| other.tell(change.clone()));
        futures::future::join_all(telling).await;
    }

    fn has_changed(&self) {
        let up = 1 + self.others.iter().flatten().filter(|other| other.health().is_up()).count();
        let shares = if self.stretches_holds { up } else { 1 };
        self.metrics.gateways_up.set(up as i64);
        self.metrics.stretch.set(windrow_engine::policy::Stretch::among(shares).factor());
        if let Some(on_change) = self.on_change.get() {
            on_change(shares);
        }
    }

    /// Returns the cluster as JSON, for the admin port.
    pub(crate) fn shown(cluster: Option<&Arc<Cluster>>) -> Value {
        let Some(here) = cluster else { return json!({ "self": null, "hold_factor": 1.0, "gateways": [] }) };
        let gateways = here.names.iter().zip(&here.others).map(|(name, other)| match other {
            None => json!({
                "address": name, "is_self": true, "up": true, "reason": null, "version": env!("CARGO_PKG_VERSION"),
                "same_list": true, "hops": 0,
            }),
            Some(other) => other.shown(),
        });
        json!({
            "self": here.names[here.own],
            "hold_factor": here.metrics.stretch.get(),
            "gateways": gateways.collect::<Vec<_>>(),
        })
    }
}

fn secret(given: &ClusterSecret) -> Result<String, String> {
    match given {
        ClusterSecret::Given(secret) => Ok(secret.expose().to_owned()),
        ClusterSecret::InFile(path) => {
            let problem = |why: &dyn std::fmt::Display| format!("`cluster.secret_file`: {}: {why}", path.display());
            let text = std::fs::read_to_string(path).map_err(|error| problem(&error))?;
            let secret = text.trim().to_owned();
            match ClusterSecret::problem(&secret) {
                Some(why) => Err(problem(&why)),
                None => Ok(secret),
            }
        }
    }
}

fn warn_of_plain_text(endpoint: &Endpoint) {
    let is_loopback = endpoint.host == "localhost"
        || endpoint.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if !endpoint.tls && !is_loopback {
        tracing::warn!(
            gateway = %endpoint,
            "hops to this gateway, with the gateways' secret and clients' passwords, go over the network in plain text: \
             give it a certificate (http.tls_certificate) and name it https:// in cluster.gateways"
        );
    }
}
