use std::fmt;

use crate::call::Credentials;
use crate::url::percent_decode;

/// The address of a ClickHouse server, with the account for requests of our own.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub host: String,
    /// The HTTP port.
    pub port: u16,
    /// The native port, if the address names it. Without TLS the server is asked there for its HTTP port.
    pub native_port: Option<u16>,
    pub tls: bool,
    pub credentials: Credentials,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text of an endpoint for logs. The password is left out.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, port) = match self.native_port {
            Some(port) => ("tcp", port),
            None => ("http", self.port),
        };
        write!(f, "{scheme}{}://{}", if self.tls { "s" } else { "" }, authority(&self.host, port))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointError {
    Scheme,
    Host,
    Port,
    PathOrQuery,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndpointError::Scheme => "the address begins with http:// or https://, as in http://host:8123",
            EndpointError::Host => "the address has no host; write http://user:password@host:8123",
            EndpointError::Port => "the port is not a number from 1 to 65535",
            EndpointError::PathOrQuery => "the address ends after the port: no path, no query",
        })
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint {
    /// Parses `http[s]://[user[:password]@]host[:port][/]`; ports default to ClickHouse's 8123 and 8443.
    ///
    /// # Errors
    /// Fails where the scheme is another, the host is missing, the port is no number, or a path or a query follows.
    pub fn parse(url: &str) -> Result<Endpoint, EndpointError> {
        let (tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(EndpointError::Scheme),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(EndpointError::PathOrQuery);
        }
        let (userinfo, authority) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (host, port) = split_port(authority)?;
        if host.is_empty() {
            return Err(EndpointError::Host);
        }
        let decode = |text: &str| String::from_utf8_lossy(&percent_decode(&text.replace('+', "%2B"))).into_owned();
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        let user = if user.is_empty() { "default".to_owned() } else { decode(user) };
        Ok(Endpoint {
            host: host.to_owned(),
            port: port.unwrap_or(if tls { 8443 } else { 8123 }),
            native_port: None,
            tls,
            credentials: Credentials { user, password: decode(password) },
        })
    }

    /// Returns `host:port`, for the `Host` field.
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), EndpointError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(EndpointError::Host)?;
            (host, after.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    match port.map(str::parse::<u16>) {
        None => Ok((host, None)),
        Some(Ok(port)) if port > 0 => Ok((host, Some(port))),
        Some(_) => Err(EndpointError::Port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        let full = Endpoint::parse("https://jo%40e:p%3A@db.example:9443/").unwrap();
        assert_eq!((full.host.as_str(), full.port, full.tls), ("db.example", 9443, true));
        assert_eq!((full.credentials.user.as_str(), full.credentials.password.as_str()), ("jo@e", "p:"));
        let short = Endpoint::parse("http://localhost").unwrap();
        assert_eq!((short.port, short.credentials.user.as_str()), (8123, "default"));
        assert_eq!(Endpoint::parse("http://[::1]:8124").unwrap().authority(), "[::1]:8124");
        assert_eq!(Endpoint::parse("http://u:a+b@h").unwrap().credentials.password, "a+b");
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        for (url, error) in [
            ("localhost:8123", EndpointError::Scheme),
            ("tcp://localhost", EndpointError::Scheme),
            ("http://:8123", EndpointError::Host),
            ("http://h:0", EndpointError::Port),
            ("http://h:http", EndpointError::Port),
            ("http://h/?database=x", EndpointError::PathOrQuery),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap_err(), error, "{url}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let endpoint = Endpoint::parse("http://u:secret@h").unwrap();
        assert!(!format!("{endpoint} {endpoint:?} {:?}", endpoint.credentials).contains("secret"));
    }
}
