//! Where a server listens and as whom to speak to it.

use std::fmt::Write;

use crate::error::BenchError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `host:port`, as connect() and the Host header want it.
    pub address: String,
    pub user: String,
    pub password: String,
}

impl Endpoint {
    pub fn without_user(address: impl Into<String>) -> Self {
        Endpoint { address: address.into(), user: String::new(), password: String::new() }
    }

    /// Reads `http://[user[:password]@]host:port`.
    pub fn parse(url: &str) -> Result<Self, BenchError> {
        let wrong = || BenchError::Setup(format!("{url:?} is not of the form http://user:password@host:port"));
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
        let (login, address) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let port = address.rsplit_once(':').ok_or_else(wrong)?.1;
        port.parse::<u16>().map_err(|_| wrong())?;
        Ok(Endpoint { address: address.into(), user: user.into(), password: password.into() })
    }

    pub fn to_url(&self) -> String {
        match (self.user.as_str(), self.password.as_str()) {
            ("", _) => format!("http://{}", self.address),
            (user, password) => format!("http://{}:{}@{}", url_encode(user), url_encode(password), self.address),
        }
    }

    /// Everything of a POST's head up to the value of Content-Length.
    pub fn request_prefix(&self, query: &str) -> String {
        let mut prefix = format!("POST /?{query} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if !self.user.is_empty() {
            let _ = write!(prefix, "X-ClickHouse-User: {}\r\nX-ClickHouse-Key: {}\r\n", self.user, self.password);
        }
        prefix.push_str("Content-Length: ");
        prefix
    }
}

/// Percent-encodes a value for a URL's query.
pub fn url_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte as char),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls_with_and_without_login() {
        let full = Endpoint::parse("http://windrow:p:w@127.0.0.1:8123/").unwrap();
        assert_eq!(
            (full.address.as_str(), full.user.as_str(), full.password.as_str()),
            ("127.0.0.1:8123", "windrow", "p:w")
        );
        assert_eq!(Endpoint::parse("http://127.0.0.1:9").unwrap(), Endpoint::without_user("127.0.0.1:9"));
        for wrong in ["127.0.0.1:1", "http://host", "http://host:port", "https://a:1"] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn encodes_what_a_query_may_not_hold() {
        assert_eq!(url_encode("INSERT INTO a.b é"), "INSERT%20INTO%20a.b%20%C3%A9");
    }
}
