//! `redis://[user:password@]host[:port][/db][?bucket=name&...]`: where a buffer lives, and its options.

use std::fmt;
use std::time::Duration;

/// Where a Redis buffer is. Made by [`RedisAddress::parse`].
#[derive(Clone, PartialEq)]
pub struct RedisAddress {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// Writers that name the same bucket look after each other's rows.
    pub bucket: String,
    /// How long a process may be silent before another takes over what it left.
    pub lease: Duration,
    /// How long a write waits for a Redis that is away, or has no room, before it fails.
    pub patience: Duration,
    /// How long Redis may take to answer before the connection is given up and made again.
    pub answer_limit: Duration,
    /// Bytes of rows that all writers of the bucket together may have in Redis.
    pub max_bytes: u64,
}

/// What is wrong with an address, in words for its author.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for AddressError {}

/// Without the password: an address is logged and shown.
impl fmt::Debug for RedisAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "redis://{}:{}/{}?bucket={}", self.host, self.port, self.database, self.bucket)
    }
}

impl RedisAddress {
    /// Reads an address. Options behind the question mark: `bucket` (default `windrow`), `lease`, `patience` and
    /// `answer_limit` in seconds, `max_bytes`. `rediss://` is refused: this buffer speaks no TLS.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let rest = url.strip_prefix("redis://").ok_or_else(|| AddressError(wrong_scheme(url)))?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, place) = match authority.rsplit_once('@') {
            Some((account, place)) => (Some(account), place),
            None => (None, authority),
        };
        let mut address = Self::of_place(place)?;
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
        Ok(address)
    }

    fn of_place(place: &str) -> Result<Self, AddressError> {
        let bracketed = place.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (host, port) = match bracketed {
            Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or("")),
            None => place.split_once(':').unwrap_or((place, "")),
        };
        Ok(Self {
            host: if host.is_empty() { "127.0.0.1".into() } else { host.into() },
            port: if port.is_empty() { 6379 } else { number(port, "the port")? },
            user: None,
            password: None,
            database: 0,
            bucket: "windrow".into(),
            lease: Duration::from_secs(15),
            patience: Duration::from_secs(10),
            answer_limit: Duration::from_secs(5),
            max_bytes: 256 * 1024 * 1024,
        })
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
            _ => {
                let known = "bucket, lease, patience, answer_limit, max_bytes";
                let shown = if option.contains('@') { "of this name" } else { name };
                return Err(AddressError(format!("a Redis buffer has no option {shown}; it has {known}")));
            }
        }
        Ok(())
    }
}

fn wrong_scheme(url: &str) -> String {
    if url.starts_with("rediss://") {
        "rediss:// is not supported: put a TLS proxy (stunnel, for one) beside the program and name it with redis://"
            .into()
    } else {
        "a Redis buffer is named as redis://host:port/db?bucket=name".into()
    }
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
        assert_eq!((address.host.as_str(), address.port, address.database), ("cache", 7000, 3));
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("joe"), Some("p@ss")));
        assert_eq!((address.bucket.as_str(), address.max_bytes), ("a b", 77));
        assert_eq!(address.lease, Duration::from_millis(2500));
        assert!(!format!("{address:?}").contains("p@ss"));
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let address = RedisAddress::parse("redis://").unwrap();
        assert_eq!((address.host.as_str(), address.port, address.database), ("127.0.0.1", 6379, 0));
        assert_eq!(address.bucket, "windrow");
        let address = RedisAddress::parse("redis://:secret@[::1]:1").unwrap();
        assert_eq!((address.host.as_str(), address.port, address.user), ("::1", 1, None));
        assert_eq!(address.password.as_deref(), Some("secret"));
    }

    #[test]
    fn mistakes_are_named() {
        for (url, word) in [
            ("rediss://h", "TLS"),
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
