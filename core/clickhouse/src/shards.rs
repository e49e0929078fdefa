//! The shards of a cluster, as `system.clusters` names them, and a client for each.
//!
//! A shard is known by its replicas. Rows that were cut for a shard go to these replicas, or to the shard
//! that one of them belongs to by now: a number may pass to another shard when the cluster changes.
//!
//! Former topologies are kept in a file: if a client repeats an insert that was cut by one of them, it is to
//! be cut in the same way.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::call::{Call, CallError, Credentials};
use crate::endpoint::Endpoint;
use crate::pool::{Client, ClientOptions};
use crate::replicas::{Choice, Replicas};

/// Pause between two queries for the cluster.
const ASK_INTERVAL: Duration = Duration::from_secs(2);
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// The most shards of a cluster, more than any user has.
const MAX_SHARDS: usize = 4096;

/// A cluster of ClickHouse, known by its name there.
pub struct Cluster {
    name: String,
    /// The server whose clusters and Distributed tables are meant.
    client: Arc<Client>,
    choice: Choice,
    options: ClientOptions,
    /// The replicas of each shard, if they are not at the addresses that `system.clusters` has.
    addresses: Vec<Vec<Endpoint>>,
    /// The file that topologies are kept in.
    file: Option<PathBuf>,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    topology: Option<Arc<Topology>>,
    /// The error of the last query for the topology.
    trouble: Option<String>,
    /// The topologies before this one, the latest first.
    former: Vec<Arc<Topology>>,
    /// Clients, by the addresses of their replicas.
    clients: HashMap<Arc<[String]>, Arc<Client>>,
}

/// The shards of a cluster at one time.
pub struct Topology {
    /// A hash of the whole topology.
    pub version: u64,
    /// A hash of what decides on which shard a row is: numbers and weights.
    pub cut: u64,
    /// The shards in the order of their numbers. Empty: there is no such cluster.
    pub shards: Vec<Shard>,
}

pub struct Shard {
    /// Number of the shard, from 1 on, as in `_shard_num`.
    pub number: u32,
    pub weight: u32,
    pub replicas: Arc<[String]>,
    pub client: Arc<Client>,
}

impl Topology {
    pub fn weights(&self) -> Vec<u32> {
        self.shards.iter().map(|shard| shard.weight).collect()
    }
}

/// A row of `system.clusters` about a replica: number and weight of its shard, host and native port.
type Row = (u32, u32, String, u16);
/// A shard's number, its weight and its replicas.
type FoundShard = (u32, u32, Vec<Endpoint>);
/// A shard as the file keeps it: number, weight, and addresses of the replicas.
type KeptShard = (u32, u32, Vec<String>);
/// The most former topologies that are kept.
const MAX_FORMER: usize = 16;

impl Cluster {
    pub fn new(
        name: &str,
        client: Arc<Client>,
        choice: Choice,
        options: ClientOptions,
        addresses: Vec<Vec<Endpoint>>,
        file: Option<PathBuf>,
    ) -> Cluster {
        let cluster =
            Cluster { name: name.to_owned(), client, choice, options, addresses, file, state: RwLock::default() };
        if let Err(error) = cluster.read_former() {
            let file = cluster.file.as_deref().map(Path::display).map(|file| file.to_string()).unwrap_or_default();
            tracing::error!(
                file,
                error,
                "former shards can't be read: an insert from then that is repeated may be stored twice"
            );
        }
        cluster
    }

    fn read_former(&self) -> Result<(), String> {
        let Some(file) = self.file.as_ref().filter(|file| file.exists()) else { return Ok(()) };
        let text = std::fs::read(file).map_err(|error| error.to_string())?;
        let kept: Vec<Vec<KeptShard>> = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for shards in kept.into_iter().take(MAX_FORMER) {
            let credentials = &self.client.endpoint().credentials;
            let found = shards.into_iter().map(|(number, weight, replicas)| {
                let replicas = replicas.iter().map(|address| of_address(address, credentials));
                Ok((number, weight, replicas.collect::<Result<_, String>>()?))
            });
            let topology = self.topology_of(&mut state, found.collect::<Result<_, String>>()?)?;
            state.former.push(Arc::new(topology));
        }
        Ok(())
    }

    /// Writes the topologies to the file. It is replaced as a whole, so the old one stays if the disk fails.
    fn write(&self, state: &State) {
        let Some(file) = &self.file else { return };
        let kept = |topology: &Arc<Topology>| -> Vec<KeptShard> {
            topology.shards.iter().map(|shard| (shard.number, shard.weight, shard.replicas.to_vec())).collect()
        };
        let all: Vec<Vec<KeptShard>> = state.topology.iter().chain(&state.former).map(kept).collect();
        let write = || -> std::io::Result<()> {
            let new = file.with_extension("new");
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut written = options.open(&new)?;
            written.write_all(&serde_json::to_vec(&all)?)?;
            written.sync_all()?;
            std::fs::rename(&new, file)
        };
        if let Err(error) = write() {
            tracing::error!(file = %file.display(), %error, "the shards can't be written down: an insert that is repeated after a change of shards and a restart may be stored twice");
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the topology, or `None` if ClickHouse has not told it so far.
    pub fn topology(&self) -> Option<Arc<Topology>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).topology.clone()
    }

    /// Returns the error of the last query for the shards, if it failed.
    pub fn trouble(&self) -> Option<String> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }

    /// Returns former topologies, the latest first: each one that cut rows in another way than all after it.
    pub fn former(&self) -> Vec<Arc<Topology>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let mut cuts: Vec<u64> = state.topology.iter().map(|topology| topology.cut).collect();
        let mut is_new = |cut: u64| {
            !cuts.contains(&cut) && {
                cuts.push(cut);
                true
            }
        };
        state.former.iter().filter(|former| is_new(former.cut)).cloned().collect()
    }

    /// Queries the topology again and again, as long as the cluster is in use.
    pub fn follow(self: &Arc<Self>) {
        let cluster = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(cluster) = cluster.upgrade() {
                // Who can't be asked now has not changed, as far as anybody knows.
                let trouble = cluster.ask().await.err();
                if let Some(error) = trouble.as_ref().filter(|trouble| cluster.trouble().as_ref() != Some(*trouble)) {
                    tracing::warn!(cluster = cluster.name, %error, "the shards are not known, or not as they are now: see `backend.cluster`");
                }
                cluster.state.write().unwrap_or_else(PoisonError::into_inner).trouble = trouble;
                drop(cluster);
                tokio::time::sleep(ASK_INTERVAL).await;
            }
        });
    }

    /// Reads the topology anew.
    ///
    /// # Errors
    /// Fails where ClickHouse does not answer or its answer is not understood, there are too many shards, or
    /// `backend.shards` names another number of them.
    pub async fn ask(&self) -> Result<(), String> {
        let question = "SELECT shard_num, shard_weight, host_name, port FROM system.clusters WHERE cluster = \
                        {cluster:String} ORDER BY shard_num, replica_num FORMAT JSONCompactEachRow";
        let call = Call::new(&self.client.endpoint().credentials, question).param("param_cluster", &self.name);
        let answer = self.client.call(call.timeout(ASK_TIMEOUT)).await.map_err(|error: CallError| error.to_string())?;
        let rows: Option<Vec<Row>> = answer.text().lines().map(|line| serde_json::from_str(line).ok()).collect();
        let rows = rows.ok_or_else(|| format!("the answer is not understood: {}", answer.text()))?;
        self.take(&rows)
    }

    fn take(&self, rows: &[Row]) -> Result<(), String> {
        let mut found: Vec<FoundShard> = Vec::new();
        for (number, weight, host, port) in rows {
            match found.last_mut() {
                Some((last, _, replicas)) if last == number => replicas.push(self.endpoint(host, *port)),
                _ => found.push((*number, *weight, vec![self.endpoint(host, *port)])),
            }
        }
        if found.len() > MAX_SHARDS {
            return Err(format!("{} shards, and {MAX_SHARDS} are the most", found.len()));
        }
        if !self.addresses.is_empty() && !found.is_empty() {
            if self.addresses.len() != found.len() {
                let (named, there) = (self.addresses.len(), found.len());
                return Err(format!(
                    "`backend.shards` names {named} shards, and the cluster {} has {there}",
                    self.name
                ));
            }
            found.iter_mut().zip(&self.addresses).for_each(|((_, _, replicas), named)| replicas.clone_from(named));
        }
        let version = version(&found);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &state.topology {
            // Whoever reloads its configuration has no clusters for a moment.
            if known.version == version || (found.is_empty() && !known.shards.is_empty()) {
                return Ok(());
            }
        }
        let topology = Arc::new(self.topology_of(&mut state, found)?);
        let shards = topology.shards.len();
        let before = state.topology.replace(topology.clone());
        let is_first = before.is_none();
        match shards == 0 {
            true => tracing::warn!(
                cluster = self.name,
                "ClickHouse has no such cluster (see `backend.cluster` and system.clusters): no table is cut by shards"
            ),
            false if is_first => tracing::info!(cluster = self.name, shards, "the shards are known"),
            false => tracing::info!(cluster = self.name, shards, version, "the shards have changed"),
        }
        state.former.splice(0..0, before.filter(|before| !before.shards.is_empty()));
        state.former.retain(|former| former.version != topology.version);
        state.former.truncate(MAX_FORMER);
        self.write(&state);
        // What is on its way to a former shard has its client, and whoever needs it again makes it again.
        state.clients.retain(|_, client| Arc::strong_count(client) > 1);
        Ok(())
    }

    fn topology_of(&self, state: &mut State, found: Vec<FoundShard>) -> Result<Topology, String> {
        let (version, cut) = (version(&found), cut(&found));
        let mut shards = Vec::with_capacity(found.len());
        for (number, weight, endpoints) in found {
            let (replicas, client) = self.client_at(state, endpoints)?;
            shards.push(Shard { number, weight, replicas, client });
        }
        Ok(Topology { version, cut, shards })
    }

    fn endpoint(&self, host: &str, native_port: u16) -> Endpoint {
        let Endpoint { tls, credentials, .. } = self.client.endpoint();
        of_native_port(host, native_port, *tls, credentials)
    }

    fn client_at(&self, state: &mut State, endpoints: Vec<Endpoint>) -> Result<(Arc<[String]>, Arc<Client>), String> {
        let replicas: Arc<[String]> = endpoints.iter().map(Endpoint::to_string).collect();
        if let Some((replicas, client)) = state.clients.get_key_value(&replicas) {
            return Ok((replicas.clone(), client.clone()));
        }
        let of = Replicas::new(endpoints, self.choice, &self.options).map_err(|error| error.to_string())?;
        let of = Arc::new(of);
        of.watch();
        let client = Arc::new(Client::of(of, &self.options));
        state.clients.insert(replicas.clone(), client.clone());
        Ok((replicas, client))
    }

    /// Returns the client of the shard that had these replicas in the topology of that version, for its
    /// replicas of now. If no such shard is left, the client is one of the given replicas. A shard stays the
    /// same as long as one of its replicas stays from one topology to the next.
    ///
    /// # Errors
    /// Fails where an address can't be read, or no client can be made for it.
    pub fn client_of(&self, topology: u64, replicas: &[String]) -> Result<Arc<Client>, String> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let latest = state.topology.iter().chain(&state.former);
        let since: Vec<_> = latest.take_while(|known| known.version != topology).collect();
        let (mut now, mut client) = (replicas, None);
        for known in since.into_iter().rev().chain(&state.topology) {
            let shared = |shard: &&Shard| shard.replicas.iter().filter(|known| now.contains(known)).count();
            client = known.shards.iter().max_by_key(shared).filter(|shard| shared(shard) > 0).map(|shard| {
                now = &shard.replicas;
                shard.client.clone()
            });
        }
        if let Some(client) = client {
            return Ok(client);
        }
        let credentials = &self.client.endpoint().credentials;
        let endpoints = replicas.iter().map(|address| of_address(address, credentials)).collect::<Result<_, _>>()?;
        Ok(self.client_at(&mut state, endpoints)?.1)
    }

    /// Closes the idle connections of all shards, and keeps none from now on.
    pub fn close(&self) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.clients.values().for_each(|client| client.close());
    }
}

fn of_native_port(host: &str, port: u16, tls: bool, credentials: &Credentials) -> Endpoint {
    let http = if tls { 8443 } else { 8123 };
    Endpoint { host: host.to_owned(), port: http, native_port: Some(port), tls, credentials: credentials.clone() }
}

/// Reads the address of an endpoint as `Display` writes it.
fn of_address(address: &str, credentials: &Credentials) -> Result<Endpoint, String> {
    let is_native = address.starts_with("tcp");
    let as_http = if is_native { address.replacen("tcp", "http", 1) } else { address.to_owned() };
    let endpoint = Endpoint::parse(&as_http).map_err(|error| format!("the replica {address}: {error}"))?;
    Ok(match is_native {
        true => of_native_port(&endpoint.host, endpoint.port, endpoint.tls, credentials),
        false => Endpoint { credentials: credentials.clone(), ..endpoint },
    })
}

fn version(shards: &[FoundShard]) -> u64 {
    let of_shard = |(number, weight, replicas): &FoundShard| {
        let replicas = replicas.iter().flat_map(|replica| [replica.to_string().into_bytes(), vec![0]].concat());
        number.to_le_bytes().into_iter().chain(weight.to_le_bytes()).chain(replicas).collect::<Vec<_>>()
    };
    fnv(shards.iter().flat_map(of_shard))
}

fn cut(shards: &[FoundShard]) -> u64 {
    fnv(shards.iter().flat_map(|(number, weight, _)| [number.to_le_bytes(), weight.to_le_bytes()].concat()))
}

/// Hashes with FNV-1a. The hash has to be the same in every version of Windrow, since journals and the
/// deduplication index have it.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        let endpoint = Endpoint::parse("http://u:p@main:8123").unwrap();
        let client = Arc::new(Client::new(endpoint, ClientOptions::default()).unwrap());
        Cluster::new("c", client, Choice::InOrder, ClientOptions::default(), Vec::new(), None)
    }

    fn row(shard: u32, host: &str) -> Row {
        (shard, 1, host.to_owned(), 9000)
    }

    #[tokio::test]
    async fn a_shard_is_known_by_its_replicas_whatever_its_number_is() {
        let cluster = cluster();
        cluster.take(&[row(1, "a"), row(1, "b"), row(2, "c")]).unwrap();
        let first = cluster.topology().unwrap();
        assert_eq!(first.shards.len(), 2);
        assert_eq!(first.shards[0].replicas.as_ref(), ["tcp://a:9000", "tcp://b:9000"]);
        // A replica is replaced, and a shard comes before the others.
        cluster.take(&[row(1, "x"), row(2, "a"), row(2, "n"), row(3, "c")]).unwrap();
        let second = cluster.topology().unwrap();
        assert_ne!(first.version, second.version);
        let now_at = cluster.client_of(first.version, &first.shards[0].replicas).unwrap();
        assert!(Arc::ptr_eq(&now_at, &second.shards[1].client));
        assert!(Arc::ptr_eq(
            &cluster.client_of(first.version, &first.shards[1].replicas).unwrap(),
            &first.shards[1].client
        ));
        // It is the same, though none of its first replicas is left, also for who does not know what came in between.
        cluster.take(&[row(1, "x"), row(2, "n"), row(3, "c")]).unwrap();
        let third = cluster.topology().unwrap();
        for version in [first.version, 0] {
            let now_at = cluster.client_of(version, &first.shards[0].replicas).unwrap();
            assert!(Arc::ptr_eq(&now_at, &third.shards[1].client));
        }
        // One that is none of the cluster's any more is spoken to as it was.
        cluster.take(&[row(1, "x")]).unwrap();
        let gone = cluster.client_of(first.version, &first.shards[0].replicas).unwrap();
        assert_eq!(gone.replicas().to_string(), first.shards[0].client.replicas().to_string());
    }

    #[tokio::test]
    async fn a_cluster_that_is_not_there_for_a_moment_stays_as_it_was() {
        let cluster = cluster();
        assert!(cluster.topology().is_none());
        cluster.take(&[row(1, "a")]).unwrap();
        cluster.take(&[]).unwrap();
        assert_eq!(cluster.topology().unwrap().shards.len(), 1);
    }

    #[tokio::test]
    async fn former_topologies_are_known_after_a_restart() {
        let folder = std::env::temp_dir().join(format!("windrow-shards-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let open = || Cluster { file: None, ..cluster() };
        let file = Some(folder.join("shards.json"));
        let begin = || {
            let cluster = Cluster { file: file.clone(), ..open() };
            cluster.read_former().unwrap();
            cluster
        };
        let cuts = |cluster: &Cluster| cluster.former().iter().map(|former| former.shards.len()).collect::<Vec<_>>();
        let cluster = begin();
        cluster.take(&[row(1, "a")]).unwrap();
        cluster.take(&[row(1, "a"), row(2, "b")]).unwrap();
        // This cuts as the last one did.
        cluster.take(&[row(1, "x"), row(2, "b")]).unwrap();
        assert_eq!(cuts(&cluster), [1]);
        let again = begin();
        again.take(&[row(1, "a"), row(2, "b"), row(3, "c")]).unwrap();
        assert_eq!(cuts(&again), [2, 1]);
        // What comes back is no former one.
        again.take(&[row(1, "a")]).unwrap();
        assert_eq!(cuts(&again), [3, 2]);
        std::fs::write(file.as_ref().unwrap(), "[[").unwrap();
        assert!(Cluster { file: file.clone(), ..open() }.read_former().is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn addresses_of_the_settings_come_first_and_have_to_be_as_many() {
        let named = |text: &str| vec![Endpoint::parse(text).unwrap()];
        let cluster = Cluster { addresses: vec![named("http://one:1"), named("http://two:2")], ..cluster() };
        assert!(cluster.take(&[row(1, "a")]).unwrap_err().contains("names 2 shards"));
        cluster.take(&[row(1, "a"), row(2, "b")]).unwrap();
        assert_eq!(cluster.topology().unwrap().shards[1].replicas.as_ref(), ["http://two:2"]);
    }

    #[test]
    fn addresses_are_read_as_they_are_shown() {
        let credentials = Credentials { user: "u".into(), password: "p".into() };
        for address in ["http://a:8123", "https://a:8443", "tcp://a:9000", "tcps://a:9440", "tcp://[::1]:9000"] {
            let endpoint = of_address(address, &credentials).unwrap();
            assert_eq!((endpoint.to_string().as_str(), &endpoint.credentials), (address, &credentials));
        }
        assert!(of_address("a:9000", &credentials).is_err());
    }
}
