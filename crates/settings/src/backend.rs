//! The setting `backend`: the embedded ClickHouse, or the address of a server.

use std::fmt;

use crate::secret::Secret;

/// What Windrow stores into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// A ClickHouse that Windrow starts for itself.
    Embedded,
    /// A ClickHouse server reached over HTTP.
    ClickHouse(ClickHouseUrl),
}

/// The parts of `http[s]://user:password@host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClickHouseUrl {
    pub tls: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// Windrow's own user on the server: for schemas, part counts and its dictionary of privileges.
    pub user: String,
    pub password: Secret,
}

const USE_INSTEAD: &str = "use \"embedded\" or \"http[s]://user:password@host:port\"";

impl Backend {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "embedded" {
            return Ok(Self::Embedded);
        }
        if text.starts_with("duckdb:") {
            return Err(format!("DuckDB backends come with a later version; {USE_INSTEAD}"));
        }
        match text.split_once("://") {
            Some(("http", rest)) => parse_url(rest, false).map(Self::ClickHouse),
            Some(("https", rest)) => parse_url(rest, true).map(Self::ClickHouse),
            // The text itself isn't repeated in any error here: it may hold a password.
            _ => Err(format!("this kind of backend is not known; {USE_INSTEAD}")),
        }
    }
}

fn parse_url(rest: &str, tls: bool) -> Result<ClickHouseUrl, String> {
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    // The last @ ends the credentials: passwords with a bare @ are common.
    let (credentials, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    if address.contains(['/', '?', '#']) {
        return Err("the URL must end after host and port, without path or parameters".to_owned());
    }
    let (host, port) = split_port(address)?;
    if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!("the URL names no host; {USE_INSTEAD}"));
    }
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let user = percent_decoded(if user.is_empty() { "default" } else { user })?;
    let port = port.unwrap_or(if tls { 8443 } else { 8123 });
    Ok(ClickHouseUrl { tls, host: host.to_owned(), port, user, password: Secret::new(percent_decoded(password)?) })
}

fn split_port(address: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("the URL's IPv6 address lacks its closing bracket")?;
            let port = if after.is_empty() { None } else { Some(after.strip_prefix(':').unwrap_or("?")) };
            (host, port)
        }
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    match port.map(str::parse::<u16>) {
        None => Ok((host, None)),
        Some(Ok(port)) if port > 0 => Ok((host, Some(port))),
        Some(_) => Err("the URL's port must be a number from 1 to 65535".to_owned()),
    }
}

fn percent_decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => {
                return Err(
                    "a % in the URL's user or password must be followed by two hex digits (write %25)".to_owned()
                )
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| "the URL's user or password isn't UTF-8".to_owned())
}

impl fmt::Display for Backend {
    /// As in the settings, with the password hidden.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = match self {
            Self::Embedded => return f.write_str("embedded"),
            Self::ClickHouse(url) => url,
        };
        let password = if url.password.is_empty() { "" } else { ":(set)" };
        write!(f, "{}://{}{password}@{}", if url.tls { "https" } else { "http" }, url.user, url.authority())
    }
}

impl ClickHouseUrl {
    /// `host:port` as in a `Host` header.
    pub fn authority(&self) -> String {
        let brackets = self.host.contains(':');
        match brackets {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ClickHouseUrl {
        match Backend::parse(text) {
            Ok(Backend::ClickHouse(url)) => url,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn reads_urls() {
        let full = url("http://ann:p%40ss%2Fword@db.example:9123/");
        assert_eq!((full.tls, full.host.as_str(), full.port, full.user.as_str()), (false, "db.example", 9123, "ann"));
        assert_eq!(full.password.expose(), "p@ss/word");
        let short = url("https://db");
        assert_eq!((short.tls, short.port, short.user.as_str()), (true, 8443, "default"));
        assert_eq!(url("http://a:b@c@[::1]:1").password.expose(), "b@c");
        assert_eq!(url("http://[::1]").authority(), "[::1]:8123");
    }

    #[test]
    fn hides_passwords() {
        let backend = Backend::parse("http://ann:geheim@db:1").expect("a valid URL");
        assert_eq!(backend.to_string(), "http://ann:(set)@db:1");
        assert!(!format!("{backend:?}").contains("geheim"));
    }

    #[test]
    fn refuses_with_advice_and_without_the_password() {
        for text in [
            "",
            "Embedded",
            "db:8123",
            "ftp://geheim@x",
            "http://",
            "http://u:geheim@",
            "http://u:geheim@h:0",
            "http://u:geheim@h:x",
            "http://u:geheim@h/path",
            "http://u:geheim@h?a=1",
            "http://u:geheim%4@h",
            "http://u:geheim%ff@h",
            "http://u:geheim@[::1",
            "http://u:geheim@[::1]x",
            "http://h h",
            "duckdb:///file.db",
        ] {
            let error = Backend::parse(text).expect_err(text);
            assert!(error.len() > 20 && !error.contains("geheim"), "{text}: {error}");
        }
    }

    #[test]
    fn no_mutation_of_a_url_panics() {
        let mut random = fastrand::Rng::with_seed(7);
        let seed = "https://us%41er:pa%20ss@[2001:db8::1]:8443/";
        for _ in 0..20_000 {
            let mut bytes = seed.as_bytes().to_vec();
            bytes.truncate(random.usize(..=bytes.len()));
            for _ in 0..random.usize(..4) {
                if !bytes.is_empty() {
                    let at = random.usize(..bytes.len());
                    bytes[at] = random.u8(..);
                }
            }
            let _ = Backend::parse(&String::from_utf8_lossy(&bytes));
        }
    }
}
