//! `redis[s]://[user:password@]host[:port][,host...][/db][?bucket=name&...]`: the address of a buffer, and
//! its options.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The name or address of a machine, and a port.
pub type Host = (String, u16);

/// The role of an address's hosts.
#[derive(Debug, Clone, PartialEq)]
pub enum Topology {
    Single,
    /// Sentinels, which say where the master of this name is.
    Sentinel {
        master: String,
    },
    /// Nodes of a cluster, each of which knows the node that has a bucket.
    Cluster,
}

/// The address of a Redis buffer. Made by [`RedisAddress::parse`].
#[derive(Clone, PartialEq)]
pub struct RedisAddress {
    /// The server; or Sentinels, or nodes of a cluster, of which one has to answer.
    pub hosts: Vec<Host>,
    pub topology: Topology,
    pub tls: bool,
    /// Certificates (PEM) that a server's has to come from. `None` stands for those that the system trusts.
    pub ca_file: Option<PathBuf>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// The bucket's name. Writers that name the same bucket look after each other's rows.
    pub bucket: String,
    /// The time for which a process may be silent before another takes over what it left.
    pub lease: Duration,
    /// The time for which a write waits for a Redis that is away, or has no room, before it fails.
    pub patience: Duration,
    /// The time that Redis may take to answer before the connection is given up and made again.
    pub answer_limit: Duration,
    /// The most bytes of rows that all writers of the bucket together may have in Redis.
    pub max_bytes: u64,
}

/// The mistake in an address, in words for its author.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for AddressError {}

/// Shows the address without the password: an address is logged and shown.
impl fmt::Debug for RedisAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let hosts: Vec<String> = self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        write!(formatter, "{scheme}://{}/{}?bucket={}", hosts.join(","), self.database, self.bucket)
    }
}

impl RedisAddress {
    /// Reads an address. Options behind the question mark: `bucket` (default `windrow`), `lease`, `patience`
    /// and `answer_limit` in seconds, `max_bytes`; `sentinel=<name of the master>` or `cluster=true` where
    /// the hosts are Sentinels or nodes of a cluster; `ca_file` for `rediss://`.
    ///
    /// # Errors
    /// Fails where the address is wrong. The error says what is wrong, without a password that stands in the
    /// address.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let wrong_scheme = || AddressError("a Redis buffer is named as redis://host:port/db?bucket=name".into());
        let plain = url.strip_prefix("redis://").map(|rest| (rest, false));
        let (rest, tls) = plain.or(url.strip_prefix("rediss://").map(|rest| (rest, true))).ok_or_else(wrong_scheme)?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, places) = match authority.rsplit_once('@') {
            Some((account, places)) => (Some(account), places),
            None => (None, authority),
        };
        let mut address = Self { tls, ..Self::default() };
        if let Some(account) = account {
            let (user, password) = account.split_once(':').unwrap_or(("", account));
            address.user = Some(decoded(user)?).filter(|user| !user.is_empty());
            address.password = Some(decoded(password)?);
        }
        if !database.is_empty() {
            address.database = number(database, "the database's number")?;
        }
        for option in options.split('&').filter(|option| !option.is_empty()) {
            address.set(option)?;
        }
        let usual_port = if let Topology::Sentinel { .. } = address.topology { 26_379 } else { 6_379 };
        address.hosts = places.split(',').map(|place| host_of(place, usual_port)).collect::<Result<_, _>>()?;
        address.check()?;
        Ok(address)
    }

    fn check(&self) -> Result<(), AddressError> {
        let wrong = match self {
            _ if self.hosts.len() > 1 && self.topology == Topology::Single => {
                "several hosts are Sentinels (&sentinel=<name of the master>) or nodes of a cluster (&cluster=true)"
            }
            _ if self.topology == Topology::Cluster && self.database != 0 => "a cluster has database 0 alone",
            _ if self.ca_file.is_some() && !self.tls => "ca_file is for rediss://",
            _ => return Ok(()),
        };
        Err(AddressError(format!("the Redis buffer's address: {wrong}")))
    }

    fn set(&mut self, option: &str) -> Result<(), AddressError> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decoded(value)?;
        match name {
            "bucket" if value.is_empty() => return Err(AddressError("the bucket needs a name: ?bucket=name".into())),
            // Braces would cut the part of the keys that Redis Cluster places them by.
            "bucket" if value.contains(['{', '}']) => return Err(AddressError("a bucket's name has no braces".into())),
            "bucket" => self.bucket = value,
            "lease" => self.lease = seconds(&value, "lease")?,
            "patience" => self.patience = seconds(&value, "patience")?,
            "answer_limit" => self.answer_limit = seconds(&value, "answer_limit")?,
            "max_bytes" => self.max_bytes = number(&value, "max_bytes")?,
            "sentinel" | "cluster" if self.topology != Topology::Single => {
                return Err(AddressError("the hosts of a Redis buffer are Sentinels or a cluster, once".into()))
            }
            "sentinel" if value.is_empty() => {
                return Err(AddressError("Sentinel wants the name of a master: ?sentinel=mymaster".into()))
            }
            "sentinel" => self.topology = Topology::Sentinel { master: value },
            "cluster" if value == "true" => self.topology = Topology::Cluster,
            "cluster" => return Err(AddressError("cluster is true, or left out".into())),
            "ca_file" => self.ca_file = Some(value.into()),
            _ => {
                let known = "bucket, lease, patience, answer_limit, max_bytes, sentinel, cluster, ca_file";
                let shown = if option.contains('@') { "of this name" } else { name };
                return Err(AddressError(format!("a Redis buffer has no option {shown}; it has {known}")));
            }
        }
        Ok(())
    }
}

impl Default for RedisAddress {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            topology: Topology::Single,
            tls: false,
            ca_file: None,
            user: None,
            password: None,
            database: 0,
            bucket: "windrow".into(),
            lease: Duration::from_secs(15),
            patience: Duration::from_secs(10),
            answer_limit: Duration::from_secs(5),
            max_bytes: 256 * 1024 * 1024,
        }
    }
}

fn host_of(place: &str, usual_port: u16) -> Result<Host, AddressError> {
    let bracketed = place.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or("")),
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok((host.to_owned(), if port.is_empty() { usual_port } else { number(port, "the port")? }))
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, AddressError> {
    // Without the text: where a password isn't written as an address wants it, a part of it stands here.
    text.parse().map_err(|_| {
        AddressError(format!(
            "{what} of the Redis buffer is not a number (in a password, write /, ?, # and @ as %2F ...)"
        ))
    })
}

fn seconds(text: &str, what: &str) -> Result<Duration, AddressError> {
    let seconds: f64 = number(text, what)?;
    if !(0.05..=86_400.0).contains(&seconds) {
        return Err(AddressError(format!(
            "{what} of the Redis buffer has to lie between 0.05 and 86400 seconds: {text}"
        )));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn decoded(text: &str) -> Result<String, AddressError> {
    let broken = || AddressError("a percent sign in the Redis buffer's address is not followed by two digits".into());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (rest.next().and_then(digit), rest.next().and_then(digit)) else {
            return Err(broken());
        };
        bytes.push(high * 16 + low);
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_its_options() {
        let address =
            RedisAddress::parse("redis://joe:p%40ss@cache:7000/3?bucket=a%20b&lease=2.5&max_bytes=77").unwrap();
        assert_eq!((&address.hosts, address.database), (&vec![("cache".to_owned(), 7000)], 3));
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("joe"), Some("p@ss")));
        assert_eq!((address.bucket.as_str(), address.max_bytes), ("a b", 77));
        assert_eq!(address.lease, Duration::from_millis(2500));
        assert!(!format!("{address:?}").contains("p@ss"));
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let address = RedisAddress::parse("redis://").unwrap();
        assert_eq!((&address.hosts, address.database), (&vec![("127.0.0.1".to_owned(), 6379)], 0));
        assert_eq!(address.bucket, "windrow");
        let address = RedisAddress::parse("redis://:secret@[::1]:1").unwrap();
        assert_eq!((&address.hosts, &address.user), (&vec![("::1".to_owned(), 1)], &None));
        assert_eq!(address.password.as_deref(), Some("secret"));
    }

    #[test]
    fn hosts_are_a_server_sentinels_or_a_cluster() {
        let read = |url| RedisAddress::parse(url).unwrap();
        let sentinels = read("rediss://a,b:1,[::2]/2?sentinel=main&ca_file=/ca.pem");
        let named = |host: &str, port| (host.to_owned(), port);
        assert_eq!(sentinels.hosts, [named("a", 26_379), named("b", 1), named("::2", 26_379)]);
        assert_eq!(sentinels.topology, Topology::Sentinel { master: "main".into() });
        assert!(sentinels.tls && sentinels.ca_file == Some("/ca.pem".into()));
        let cluster = read("redis://joe:x@a,b/?cluster=true");
        assert_eq!((cluster.hosts.len(), cluster.topology, cluster.tls), (2, Topology::Cluster, false));
    }

    #[test]
    fn mistakes_are_named() {
        for (url, word) in [
            ("rediss:/h", "redis://host"),
            ("redis://a,b", "several hosts"),
            ("redis://a?sentinel=", "name of a master"),
            ("redis://a?sentinel=m&cluster=true", "once"),
            ("redis://a/1?cluster=true", "database 0"),
            ("redis://a?cluster=yes", "true"),
            ("redis://a?ca_file=x", "rediss"),
            ("http://h", "redis://host"),
            ("redis://h:x", "the port"),
            ("redis://h/x", "database"),
            ("redis://h?bucket=", "needs a name"),
            ("redis://h?bucket=a{b", "braces"),
            ("redis://h?lease=0", "lease"),
            ("redis://h?leese=1", "it has bucket"),
            ("redis://h?bucket=%zz", "percent"),
        ] {
            let error = RedisAddress::parse(url).unwrap_err().to_string();
            assert!(error.contains(word), "{url}: {error}");
        }
    }

    #[test]
    fn a_password_that_is_not_escaped_is_not_shown() {
        for url in ["redis://:se/cret@h", "redis://:se?cret@h/0", "redis://joe:secret", "redis://:se?lease=cret@h"] {
            let error = RedisAddress::parse(url).unwrap_err().to_string();
            assert!(!error.contains("cret"), "{url}: {error}");
        }
    }
}
