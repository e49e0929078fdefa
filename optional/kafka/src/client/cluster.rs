//! A cluster: the addresses of its brokers, and connections to them that are made when they are needed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::client::backoff::Retry;
use crate::client::connection::Connection;
use crate::client::dial::{Address, Dialer};
use crate::client::options::ClientOptions;
use crate::error::Error;
use crate::wire::{BrokerAddress, FindCoordinatorRequest, MetadataRequest, MetadataResponse};

/// The longest time that one broker is asked about the cluster. A broker that has lost contact with the
/// others still answers what it knew.
const ASK_ANOTHER_AFTER: Duration = Duration::from_secs(60);

/// The use of a connection. Brokers answer a connection's requests in turn, so a request that waits must not
/// share a connection with one that doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Requests that are answered at once.
    Control,
    Fetch,
    /// Requests that can't wait until a fetch is answered.
    FetchBeside,
    /// Fetches of records that are known to be there: nothing holds up their answers.
    Read,
    /// Joining a group, and heartbeats.
    Group,
    /// Reading and committing offsets.
    Commit,
}

/// A client of one cluster. Cloning is cheap; the last clone to be dropped closes the connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    options: Arc<ClientOptions>,
    dialer: Dialer,
    seeds: Vec<Address>,
    brokers: Mutex<BTreeMap<i32, Address>>,
    slots: Mutex<HashMap<(i32, Purpose), SharedConnection>>,
    /// A connection to any broker, for requests that all brokers can answer.
    any: tokio::sync::Mutex<Option<Any>>,
}

struct Any {
    connection: Connection,
    until: Instant,
}

impl Any {
    fn new(connection: Connection) -> Self {
        Self { connection, until: Instant::now() + ASK_ANOTHER_AFTER }
    }
}

/// A connection that is locked while it is made, so that only one is made.
type SharedConnection = Arc<tokio::sync::Mutex<Option<Connection>>>;

impl Client {
    /// Connects to a first broker and learns the others from it.
    ///
    /// # Errors
    /// Fails where no broker is named, an address or a TLS option can't be used, or no broker answers as it should.
    pub async fn connect(options: ClientOptions) -> Result<Client, Error> {
        let seeds: Result<Vec<Address>, Error> = options.brokers.iter().map(|text| Address::parse(text)).collect();
        let seeds = seeds?;
        if seeds.is_empty() {
            return Err(Error::Options("No broker is named".to_owned()));
        }
        let options = Arc::new(options);
        let dialer = Dialer::new(options.clone())?;
        let inner = Inner {
            options,
            dialer,
            seeds,
            brokers: Mutex::default(),
            slots: Mutex::default(),
            any: Default::default(),
        };
        let client = Client { inner: Arc::new(inner) };
        client.metadata(Some(Vec::new())).await?;
        Ok(client)
    }

    pub fn options(&self) -> &ClientOptions {
        &self.inner.options
    }

    /// Returns the connection to a broker for this purpose, a new one if there is none that can be used.
    ///
    /// # Errors
    /// Fails where neither metadata nor a coordinator's address has named the broker, or connecting to it fails.
    pub async fn connection(&self, node_id: i32, purpose: Purpose) -> Result<Connection, Error> {
        let address = self.brokers().get(&node_id).cloned();
        let address = address.ok_or_else(|| Error::Network {
            broker: node_id.to_string(),
            doing: "connect".to_owned(),
            reason: "the cluster doesn't name it any more".to_owned(),
        })?;
        let slot = lock(&self.inner.slots).entry((node_id, purpose)).or_default().clone();
        let mut kept = slot.lock().await;
        if let Some(connection) = kept.as_ref().filter(|connection| is_usable(connection)) {
            return Ok(connection.clone());
        }
        let broker = format!("{node_id} ({}:{})", address.host, address.port);
        let connection = self.inner.dialer.dial(&address, &broker).await?;
        Ok(kept.insert(connection).clone())
    }

    /// Reads the metadata of these topics, or of all. An error of one topic is in the answer, beside that topic.
    ///
    /// # Errors
    /// Fails where the error is not retriable, or no broker has answered within the time for retries.
    pub async fn metadata(&self, topics: Option<Vec<Arc<str>>>) -> Result<MetadataResponse, Error> {
        let request = MetadataRequest { topics };
        let mut retry = Retry::new(&self.inner.options);
        loop {
            match self.ask_for_metadata(&request).await {
                Ok(metadata) => return Ok(metadata),
                Err(error) => retry.after(error).await?,
            }
        }
    }

    async fn ask_for_metadata(&self, request: &MetadataRequest) -> Result<MetadataResponse, Error> {
        let metadata = self.any_connection().await?.call(request).await?;
        // A broker that has only just started knows of nobody, itself included.
        if !metadata.brokers.is_empty() {
            let named: BTreeMap<i32, Address> =
                metadata.brokers.iter().map(|broker| (broker.node_id, address_of(broker))).collect();
            lock(&self.inner.slots).retain(|(node_id, _), _| named.contains_key(node_id));
            *self.brokers() = named;
        }
        Ok(metadata)
    }

    /// Returns the id of the broker that coordinates a group.
    ///
    /// # Errors
    /// Fails where the error is not retriable, or the coordinator isn't found within the time for retries.
    pub async fn coordinator(&self, group: &str) -> Result<i32, Error> {
        let request = FindCoordinatorRequest { group: group.to_owned() };
        let mut retry = Retry::new(&self.inner.options);
        loop {
            match self.ask_for_coordinator(&request).await {
                Ok(node_id) => return Ok(node_id),
                Err(error) => retry.after(error).await?,
            }
        }
    }

    /// Finds the coordinator like [`coordinator`](Self::coordinator), but tries only once.
    pub(crate) async fn coordinator_once(&self, group: &str) -> Result<i32, Error> {
        self.ask_for_coordinator(&FindCoordinatorRequest { group: group.to_owned() }).await
    }

    /// Reads metadata like [`metadata`](Self::metadata), but tries only once.
    pub(crate) async fn metadata_once(&self, topics: Option<Vec<Arc<str>>>) -> Result<MetadataResponse, Error> {
        self.ask_for_metadata(&MetadataRequest { topics }).await
    }

    async fn ask_for_coordinator(&self, request: &FindCoordinatorRequest) -> Result<i32, Error> {
        let found = self.any_connection().await?.call(request).await?;
        if found.error.is_error() {
            let doing = format!("find the coordinator of the group '{}'", request.group);
            return Err(Error::Refused { doing, code: found.error, reason: found.error_message });
        }
        let node_id = found.coordinator.node_id;
        self.brokers().insert(node_id, address_of(&found.coordinator));
        Ok(node_id)
    }

    async fn any_connection(&self) -> Result<Connection, Error> {
        let mut kept = self.inner.any.lock().await;
        let known = kept.as_ref().filter(|known| is_usable(&known.connection));
        if let Some(known) = known.filter(|known| Instant::now() < known.until) {
            return Ok(known.connection.clone());
        }
        let known = known.map(|known| known.connection.clone());
        let mut last_error = None;
        for address in self.everyone() {
            let dialled = self.inner.dialer.dial(&address, &format!("{}:{}", address.host, address.port)).await;
            match dialled.or_else(|error| known.clone().ok_or(error)) {
                Ok(connection) => return Ok(kept.insert(Any::new(connection)).connection.clone()),
                // Who we are is the same to all of them.
                Err(error) if !error.is_retriable() => return Err(error),
                Err(error) => last_error = Some(error),
            }
        }
        Err(last_error.unwrap_or_else(|| Error::Options("No broker is named".to_owned())))
    }

    /// Returns all addresses that may know of the cluster: the brokers that it names, in any order, then
    /// those of the options.
    fn everyone(&self) -> Vec<Address> {
        let mut addresses: Vec<Address> = self.brokers().values().cloned().collect();
        fastrand::shuffle(&mut addresses);
        let missing = self.inner.seeds.iter().filter(|seed| !addresses.contains(seed)).cloned().collect::<Vec<_>>();
        addresses.extend(missing);
        addresses
    }

    fn brokers(&self) -> MutexGuard<'_, BTreeMap<i32, Address>> {
        lock(&self.inner.brokers)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.inner.options.brokers.join(","))
    }
}

fn is_usable(connection: &Connection) -> bool {
    !connection.is_closed() && !connection.is_expired()
}

fn address_of(broker: &BrokerAddress) -> Address {
    Address { host: broker.host.clone(), port: broker.port }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
