//! A site to measure: the time from a request to the first byte of its answer.

use std::time::{Duration, Instant};

use windrow_clickhouse::{push_percent_encoded, Client, ClientOptions, Endpoint};

use crate::cities::City;
use crate::errors::DemoError;

const SITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a page that are read. Its rest is read so that its connection can be used again; beyond
/// this it is cheaper to open another.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// The parts of a site's URL.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub url: String,
    endpoint: Endpoint,
    path: String,
    /// Says whether it is one of the demo's own sites: such a site is told the city, to answer as late as
    /// distance would make it.
    simulated: bool,
}

impl Target {
    pub fn parse(url: &str, simulated: bool) -> Result<Self, DemoError> {
        let url = url.trim();
        let refused = |reason: String| DemoError::Options(format!("the URL {url:?} can't be measured: {reason}"));
        if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(refused("it has a space or a control character in it".to_owned()));
        }
        let after_scheme = url.find("://").map_or(0, |at| at + 3);
        let path_at = url[after_scheme..].find(['/', '?', '#']).map_or(url.len(), |at| after_scheme + at);
        let (base, rest) = url.split_at(path_at);
        let rest = rest.split('#').next().unwrap_or_default();
        let path = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
        let has_port = base[after_scheme..].rsplit(['@', ']']).next().is_some_and(|end| end.contains(':'));
        let mut endpoint = Endpoint::parse(base).map_err(|error| refused(error.to_string()))?;
        if !has_port {
            // The parser's own defaults are ClickHouse's.
            endpoint.port = if endpoint.tls { 443 } else { 80 };
        }
        Ok(Self { url: without_credentials(url), endpoint, path, simulated })
    }

    pub fn client(&self) -> Result<Client, DemoError> {
        let options = ClientOptions { max_connections: 1, connect_timeout: SITE_TIMEOUT, ..ClientOptions::default() };
        Client::new(self.endpoint.clone(), options).map_err(|error| DemoError::Options(error.to_string()))
    }

    fn request(&self, city: &City) -> String {
        let mut target = self.path.clone();
        if self.simulated {
            target.push_str("?from=");
            push_percent_encoded(&mut target, city.name);
        }
        let host = self.endpoint.authority();
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: windrow-upclick\r\nAccept: */*\r\n\r\n")
    }

    /// Measures the time to the first byte on an open connection. Any answer counts: the measurement is only
    /// about whether a site is up and how fast it is.
    pub async fn measure(&self, client: &Client, city: &City) -> Result<Duration, String> {
        let request = self.request(city);
        let mut lease = client.connection().await.map_err(|error| error.to_string())?;
        let connection = lease.connection();
        let began = Instant::now();
        connection.send(request.as_bytes(), SITE_TIMEOUT).await.map_err(|error| error.to_string())?;
        let head = connection.read_head(false, SITE_TIMEOUT).await.map_err(|error| error.to_string())?;
        let latency = began.elapsed();
        let mut body = connection.body(&head);
        let mut read_bytes = 0;
        while let Ok(Some(bytes)) = body.next(SITE_TIMEOUT).await {
            read_bytes += bytes.len();
            if read_bytes > MAX_PAGE_BYTES {
                return Ok(latency);
            }
        }
        lease.give_back(&head);
        Ok(latency)
    }
}

/// Returns a URL without user and password, as it may be shown.
pub(crate) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let address = rest[..end].rsplit_once('@').map_or(&rest[..end], |(_, address)| address);
    format!("{scheme}://{address}{}", &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, authority, path) in [
            ("http://example.com", "example.com:80", "/"),
            ("https://example.com/a?b=c#d", "example.com:443", "/a?b=c"),
            ("http://[::1]:81?x", "[::1]:81", "/?x"),
            ("http://[::1]/x", "[::1]:80", "/x"),
            ("http://u:p@h/x", "h:80", "/x"),
        ] {
            let target = Target::parse(url, false).expect(url);
            assert_eq!((target.endpoint.authority().as_str(), target.path.as_str()), (authority, path), "{url}");
        }
        for url in ["", "example.com", "ftp://x/", "http://x/\r\nHost: y", "http://x/a b", "http://"] {
            assert!(Target::parse(url, false).is_err(), "{url:?}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("http://u:p@h:1/a?b=@c", "http://h:1/a?b=@c"),
            ("http://u:p@@h", "http://h"),
            ("http://h/x@y", "http://h/x@y"),
            ("h", "h"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
        assert_eq!(Target::parse("http://u:p@h/x", false).expect("a URL").url, "http://h/x");
    }

    #[test]
    fn only_the_demos_own_sites_are_told_the_city() {
        let city = &crate::cities::CITIES[15];
        let request = |simulated| Target::parse("http://h/frankfurt", simulated).expect("a URL").request(city);
        assert!(
            request(true).starts_with("GET /frankfurt?from=S%C3%A3o%20Paulo HTTP/1.1\r\nHost: h:80\r\n"),
            "{}",
            request(true)
        );
        assert!(request(false).starts_with("GET /frankfurt HTTP/1.1\r\n"));
    }
}
