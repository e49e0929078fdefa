//! One connection to Redis, by the library `redis`, spoken to in pipelines. An error ends it; the caller opens the next.
//!
//! A bucket's keys all lie on one server. Each time that a connection is opened, a Sentinel or a node of a
//! cluster is asked which server that is. If the bucket has moved, the connection ends with an error
//! (`MOVED`, `READONLY`), and the next one goes to the right place.

use std::fmt;
use std::net::ToSocketAddrs;
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{
    Client, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisConnectionInfo, RedisError, TlsCertificates, Value,
};

use super::address::{Host, RedisAddress, Topology};

/// The reason why a conversation with Redis ended.
#[derive(Debug)]
pub(super) struct ConnectionError(pub(super) String);

impl fmt::Display for ConnectionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<RedisError> for ConnectionError {
    fn from(error: RedisError) -> ConnectionError {
        ConnectionError(match error.is_timeout() {
            true => "Redis does not answer".to_owned(),
            false => error.to_string(),
        })
    }
}

pub(super) struct Connection {
    inner: redis::Connection,
}

impl Connection {
    /// Connects to the server that has `key`, by way of the first of the address's hosts that answers.
    pub(super) fn open(address: &RedisAddress, key: &str) -> Result<Connection, ConnectionError> {
        let mut last = ConnectionError("the address names no host".to_owned());
        for host in &address.hosts {
            match open_through(address, host, key) {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Sends a pipeline and reads its replies, `count` of them. Errors of single commands are among the replies.
    pub(super) fn exchange(&mut self, commands: &[u8], count: usize) -> Result<Vec<Value>, ConnectionError> {
        self.inner.send_packed_command(commands)?;
        // The library's own way reads on after an error: for each reply that is left it would wait once more.
        (0..count).map(|_| Ok(self.inner.recv_response()?)).collect()
    }
}

fn open_through(address: &RedisAddress, host: &Host, key: &str) -> Result<Connection, ConnectionError> {
    match &address.topology {
        Topology::Single => log_in(address, connect(address, host)?),
        Topology::Sentinel { master } => {
            let mut sentinel = connect(address, host)?;
            let mut question = redis::cmd("SENTINEL");
            let found: Option<Host> = question.arg("get-master-addr-by-name").arg(master).query(&mut sentinel)?;
            let host = found.ok_or_else(|| ConnectionError(format!("Sentinel knows no master called {master}")))?;
            let mut connection = log_in(address, connect(address, &host)?)?;
            // One that was the master a moment ago still answers.
            let role: Vec<Value> = redis::cmd("ROLE").query(&mut connection.inner)?;
            match role.first().and_then(text) {
                Some("master") => Ok(connection),
                _ => Err(ConnectionError(format!("{}:{} is no master any more", host.0, host.1))),
            }
        }
        Topology::Cluster => {
            let mut node = log_in(address, connect(address, host)?)?.inner;
            let slot: u16 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query(&mut node)?;
            let slots: Vec<Vec<Value>> = redis::cmd("CLUSTER").arg("SLOTS").query(&mut node)?;
            let owner = slots.into_iter().find_map(|range| owner_of(range, slot));
            let (owner, port) =
                owner.ok_or_else(|| ConnectionError(format!("the cluster has no node for slot {slot}")))?;
            // A node that does not know its own name is the one that was asked.
            let owner = if owner.is_empty() { host.0.clone() } else { owner };
            log_in(address, connect(address, &(owner, port))?)
        }
    }
}

/// Returns the master of a range `[first slot, last slot, [host, port, ...], ...]`, if the slot is in it.
fn owner_of(range: Vec<Value>, slot: u16) -> Option<Host> {
    let mut range = range.into_iter();
    let mut number = || u16::from_redis_value(range.next()?).ok();
    let (first, last) = (number()?, number()?);
    let node = Vec::<Value>::from_redis_value(range.next()?).ok().filter(|_| (first..=last).contains(&slot))?;
    let host = node.first().and_then(text).unwrap_or_default().to_owned();
    Some((host, u16::from_redis_value(node.into_iter().nth(1)?).ok()?))
}

/// Logs in as the account, to the database that the address names. A refusal is told in Redis's own words.
fn log_in(address: &RedisAddress, inner: redis::Connection) -> Result<Connection, ConnectionError> {
    let mut connection = Connection { inner };
    let mut out = Vec::new();
    let mut commands = 1;
    if let Some(password) = &address.password {
        redis::cmd("AUTH").arg(address.user.as_deref()).arg(password).write_packed_command(&mut out);
        commands += 1;
    }
    redis::cmd("SELECT").arg(address.database).write_packed_command(&mut out);
    for reply in connection.exchange(&out, commands)? {
        if let Value::ServerError(error) = reply {
            return Err(ConnectionError(error_text(&error)));
        }
    }
    Ok(connection)
}

fn connect(address: &RedisAddress, (host, port): &Host) -> Result<redis::Connection, ConnectionError> {
    if address.tls {
        // The name is needed for the certificate.
        return connect_to(address, host, *port);
    }
    let addresses =
        (host.as_str(), *port).to_socket_addrs().map_err(|error| ConnectionError(format!("{host}: {error}")))?;
    let mut last = ConnectionError(format!("{host} has no address"));
    for at in addresses {
        match connect_to(address, &at.ip().to_string(), at.port()) {
            Ok(connection) => return Ok(connection),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_to(address: &RedisAddress, host: &str, port: u16) -> Result<redis::Connection, ConnectionError> {
    let at = match address.tls {
        false => ConnectionAddr::Tcp(host.to_owned(), port),
        true => ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure: false, tls_params: None },
    };
    let info = at.into_connection_info()?.set_redis_settings(RedisConnectionInfo::default().set_skip_set_lib_name());
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let client = match &address.ca_file {
        None => Client::open(info)?,
        Some(path) => {
            let wrong = |what: &dyn fmt::Display| ConnectionError(format!("{}: {what}", path.display()));
            let root_cert = std::fs::read(path).map_err(|error| wrong(&error))?;
            if memchr::memmem::find(&root_cert, b"BEGIN CERTIFICATE").is_none() {
                return Err(wrong(&"there is no certificate in it"));
            }
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(root_cert) })?
        }
    };
    let connection = client.get_connection_with_timeout(address.answer_limit)?;
    // The limit is on silence: a large answer may take its time.
    let limit: Option<Duration> = Some(address.answer_limit);
    connection.set_read_timeout(limit)?;
    connection.set_write_timeout(limit)?;
    Ok(connection)
}

pub(super) fn text(reply: &Value) -> Option<&str> {
    match reply {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        Value::Okay => Some("OK"),
        _ => None,
    }
}

/// Returns an error as Redis writes it.
pub(super) fn error_text(error: &redis::ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}
