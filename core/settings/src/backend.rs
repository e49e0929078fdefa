//! The setting `backend`: the embedded ClickHouse, the address of a server, a DuckDB, or any database that there is an
//! ADBC driver for.

use std::fmt;
use std::path::PathBuf;

use crate::secret::Secret;

/// The database that Windrow stores rows into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// A ClickHouse that Windrow starts for itself.
    Embedded,
    /// A ClickHouse server reached over HTTP, or several that are replicas of each other: at least one, all with the same
    /// account.
    ClickHouse(Vec<ClickHouseUrl>),
    /// A DuckDB in Windrow's own process.
    DuckDb(DuckDbPlace),
    /// A database behind an ADBC driver.
    Adbc(AdbcUrl),
}

/// The rule that chooses one of several replicas, among those that can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaChoice {
    InOrder,
    Nearest,
    RoundRobin,
    LeastLoaded,
}

impl ReplicaChoice {
    /// Returns the choice that has this name in the table of settings.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "nearest" => Self::Nearest,
            "round_robin" => Self::RoundRobin,
            "least_loaded" => Self::LeastLoaded,
            _ => Self::InOrder,
        }
    }
}

/// The place where a DuckDB keeps its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DuckDbPlace {
    /// The memory of the process: the rows are gone when the process ends.
    Memory,
    File(PathBuf),
}

/// The address of a database behind an ADBC driver: the text after `adbc:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdbcUrl {
    /// The kind of the database, in small letters, such as `postgresql`.
    pub scheme: String,
    /// The whole address, with the password that may be in it.
    pub url: Secret,
}

impl AdbcUrl {
    fn parse(url: &str) -> Result<Self, String> {
        let is_scheme =
            |scheme: &str| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-_".contains(c));
        match url.split_once(':').filter(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty()) {
            Some((scheme, _)) => Ok(Self { scheme: scheme.to_ascii_lowercase(), url: Secret::new(url) }),
            None => Err("adbc: must be followed by the database's address, as in \
                         \"adbc:postgresql://user@host/database\" or \"adbc:sqlite:///path/file.db\""
                .to_owned()),
        }
    }
}

impl fmt::Display for AdbcUrl {
    /// Writes the address without the parts that may be secret: the password and the parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.url.expose().split(['?', ';']).next().unwrap_or_default();
        let Some((scheme, rest)) = plain.split_once("://") else { return write!(f, "adbc:{plain}") };
        let (credentials, address) = rest.rsplit_once('@').map_or((None, rest), |(who, at)| (Some(who), at));
        write!(f, "adbc:{scheme}://")?;
        match credentials.map(|who| who.split_once(':').unwrap_or((who, ""))) {
            Some((user, "")) => write!(f, "{user}@{address}"),
            Some((user, _)) => write!(f, "{user}:(set)@{address}"),
            None => f.write_str(address),
        }
    }
}

/// The parts of `http[s]://user:password@host:port` or `tcp[s]://user:password@host:port`; or of the same behind `srv+`
/// and without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClickHouseUrl {
    pub tls: bool,
    /// Says whether the host is the name of an SRV record, whose targets are the servers, with their ports.
    pub is_srv_record: bool,
    /// The host, without the brackets of an IPv6 address.
    pub host: String,
    /// The port of the HTTP interface.
    pub port: u16,
    /// The port of the native protocol, set where the address begins with `tcp[s]://`.
    pub native_port: Option<u16>,
    /// Windrow's own user on the server: for schemas, part counts and its dictionary of privileges.
    pub user: String,
    pub password: Secret,
}

/// The largest number of replicas: more than anybody has of one shard.
const MAX_REPLICAS: usize = 64;

/// The text before the scheme of an SRV record.
const SRV: &str = "srv+";

const USE_INSTEAD: &str =
    "use \"embedded\", \"http[s]://user:password@host:port\", \"tcp[s]://user:password@host:port\", \
     \"duckdb:///path/file.db\" or \"adbc:postgresql://user@host/database\"";

impl Backend {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "embedded" {
            return Ok(Self::Embedded);
        }
        if let Some(place) = text.strip_prefix("duckdb:") {
            return parse_place(place).map(Self::DuckDb);
        }
        if let Some(url) = text.strip_prefix("adbc:") {
            return AdbcUrl::parse(url).map(Self::Adbc);
        }
        Self::of_replicas(&split_addresses(text))
    }

    /// Reads the addresses of replicas. An address without an account takes the account of the first one.
    pub(crate) fn of_replicas(addresses: &[&str]) -> Result<Self, String> {
        if let [alone] = addresses {
            if *alone == "embedded" || alone.starts_with("duckdb:") || alone.starts_with("adbc:") {
                return Self::parse(alone);
            }
        }
        let mut replicas = Vec::new();
        for address in addresses {
            let names_account = address.contains('@');
            let mut url = parse_address(address)?;
            if let (Some(first), false) = (replicas.first(), names_account) {
                let ClickHouseUrl { user, password, .. } = first;
                (url.user, url.password) = (user.clone(), password.clone());
            }
            replicas.push(url);
        }
        check_replicas(&replicas)?;
        Ok(Self::ClickHouse(replicas))
    }
}

/// Reads the replicas of each shard. All of them are spoken to with the user and password of `backend`.
pub(crate) fn parse_shards(shards: &[String], backend: &Backend) -> Result<Vec<Vec<ClickHouseUrl>>, String> {
    let Backend::ClickHouse(servers) = backend else { return Ok(Vec::new()) };
    let Some(ClickHouseUrl { user, password, .. }) = servers.first() else { return Ok(Vec::new()) };
    let parse = |address: &str| match address.contains('@') {
        true => Err("user and password are those of `backend`; leave them out".to_owned()),
        false if address.starts_with(SRV) => Err("shards are named by addresses, not by an SRV record".to_owned()),
        false => {
            let url = parse_address(address)?;
            Ok(ClickHouseUrl { user: user.clone(), password: password.clone(), ..url })
        }
    };
    let shard = |text: &String| match text.split_whitespace().map(parse).collect::<Result<Vec<_>, _>>()? {
        replicas if replicas.is_empty() => Err("a shard has no address".to_owned()),
        replicas => check_replicas(&replicas).map(|()| replicas),
    };
    shards.iter().map(shard).collect()
}

/// Splits a list of addresses at its commas. Only a comma that a scheme follows separates addresses: a
/// password may have others in it.
fn split_addresses(text: &str) -> Vec<&str> {
    let is_begin = |rest: &str| {
        let scheme = rest.strip_prefix(SRV).unwrap_or(rest);
        ["http://", "https://", "tcp://", "tcps://"].iter().any(|known| scheme.starts_with(known))
    };
    let (mut addresses, mut start) = (Vec::new(), 0);
    for (comma, _) in text.match_indices(',') {
        if is_begin(text[comma + 1..].trim_start()) {
            addresses.push(text[start..comma].trim());
            start = comma + 1;
        }
    }
    addresses.push(text[start..].trim());
    addresses
}

fn parse_address(text: &str) -> Result<ClickHouseUrl, String> {
    if let Some(address) = text.strip_prefix(SRV) {
        return parse_srv_record(address);
    }
    match text.split_once("://") {
        Some(("http", rest)) => parse_url(rest, false),
        Some(("https", rest)) => parse_url(rest, true),
        Some(("tcp", rest)) => parse_native_url(rest, false),
        Some(("tcps", rest)) => parse_native_url(rest, true),
        Some(("clickhouse" | "native", rest)) => Err(spoken_to_by_http(rest)),
        None if text.contains(':') => Err(spoken_to_by_http(text)),
        _ => Err(format!("this kind of backend is not known; {USE_INSTEAD}")),
    }
}

/// Reads an address that has the name of an SRV record in place of host and port.
fn parse_srv_record(address: &str) -> Result<ClickHouseUrl, String> {
    const FORM: &str = "an SRV record is named as in srv+http://user:password@_clickhouse._tcp.example.org";
    let url = parse_address(address)?;
    let named = address.rsplit_once(['@', '/']).map_or(address, |(_, named)| named);
    let is_name =
        |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if named.contains(':') {
        return Err(format!("{FORM}, without a port: the record has those of the servers"));
    }
    match url.host.trim_end_matches('.').split('.').all(is_name) {
        true => Ok(ClickHouseUrl { is_srv_record: true, ..url }),
        false => Err(FORM.to_owned()),
    }
}

fn check_replicas(replicas: &[ClickHouseUrl]) -> Result<(), String> {
    let Some(first) = replicas.first() else { return Err(format!("no address is named; {USE_INSTEAD}")) };
    if replicas.len() > 1 && replicas.iter().any(|replica| replica.is_srv_record) {
        return Err("an SRV record names all replicas; name nothing beside it".to_owned());
    }
    if replicas.len() > MAX_REPLICAS {
        return Err(format!("{} replicas are named, and {MAX_REPLICAS} are the most", replicas.len()));
    }
    for (number, replica) in replicas.iter().enumerate() {
        if (&replica.user, &replica.password) != (&first.user, &first.password) {
            let address = replica.authority();
            return Err(format!("all replicas must have the same user and password; those of {address} differ"));
        }
        if replicas[..number]
            .iter()
            .any(|before| (&before.host, before.named_port()) == (&replica.host, replica.named_port()))
        {
            return Err(format!("the replica {} is named twice", replica.authority()));
        }
    }
    Ok(())
}

/// Suggests what was meant by an address without http://. Only its host and port are repeated: there may be a
/// password before them.
fn spoken_to_by_http(text: &str) -> String {
    let authority = text.split(['/', '?', '#']).next().unwrap_or(text);
    let (credentials, address) = match authority.rsplit_once('@') {
        Some((_, address)) => ("user:password@", address),
        None => ("", authority),
    };
    let is_plain =
        |host: &str| !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
    let Ok((host, port)) = split_port(address) else { return format!("the URL lacks its http://; {USE_INSTEAD}") };
    if !is_plain(host) {
        return format!("the URL lacks its http://; {USE_INSTEAD}");
    }
    let (native, meant) = match port {
        Some(9000) => ("; 9000 is the port of the native protocol", format!("http://{credentials}{host}:8123")),
        Some(9440) => ("; 9440 is the port of the native protocol", format!("https://{credentials}{host}:8443")),
        Some(8443) => ("", format!("https://{credentials}{host}:8443")),
        port => ("", format!("http://{credentials}{host}:{}", port.unwrap_or(8123))),
    };
    format!("Windrow speaks to ClickHouse's HTTP interface{native}: did you mean {meant}?")
}

/// Reads the path behind `duckdb:`, or behind `duckdb://` as other programs write it.
fn parse_place(text: &str) -> Result<DuckDbPlace, String> {
    let path = text.strip_prefix("//").unwrap_or(text);
    if path == ":memory:" {
        return Ok(DuckDbPlace::Memory);
    }
    if path.is_empty() || path.ends_with('/') {
        return Err("duckdb: must be followed by a file, as in \"duckdb:///path/file.db\", or by :memory:".to_owned());
    }
    if text.starts_with("//") && !path.starts_with('/') {
        let advice = "write three slashes, or \"duckdb:file.db\" for a path relative to where Windrow runs";
        return Err(format!("duckdb:// must be followed by an absolute path; {advice}"));
    }
    if path.contains(['?', '\0']) {
        return Err("the file of duckdb: must be a plain path, without parameters".to_owned());
    }
    Ok(DuckDbPlace::File(path.into()))
}

pub(crate) fn parse_url(rest: &str, tls: bool) -> Result<ClickHouseUrl, String> {
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    // The last @ ends the credentials: passwords with a bare @ are common.
    let (credentials, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    if address.contains(['/', '?', '#']) {
        return Err("the URL must end after host and port, without path or parameters".to_owned());
    }
    if address.contains(',') {
        return Err(
            "each of several addresses must begin with its scheme, as in http://a:8123,http://b:8123".to_owned()
        );
    }
    let (host, port) = split_port(address)?;
    if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!("the URL names no host; {USE_INSTEAD}"));
    }
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let user = percent_decoded(if user.is_empty() { "default" } else { user })?;
    let port = port.unwrap_or(if tls { 8443 } else { 8123 });
    let password = Secret::new(percent_decoded(password)?);
    Ok(ClickHouseUrl { tls, is_srv_record: false, host: host.to_owned(), port, native_port: None, user, password })
}

/// Reads an address of the native protocol. The server's HTTP interface is taken to be at its usual port.
fn parse_native_url(rest: &str, tls: bool) -> Result<ClickHouseUrl, String> {
    let mut url = parse_url(rest, tls)?;
    let named = rest.rsplit_once('@').map_or(rest, |(_, address)| address).trim_end_matches('/');
    let (_, port) = split_port(named)?;
    (url.native_port, url.port) = match tls {
        true => (Some(port.unwrap_or(9440)), 8443),
        false => (Some(port.unwrap_or(9000)), 8123),
    };
    Ok(url)
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
    /// Writes the backend as the settings have it, with the password hidden.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replicas = match self {
            Self::Embedded => return f.write_str("embedded"),
            Self::DuckDb(place) => return place.fmt(f),
            Self::Adbc(url) => return url.fmt(f),
            Self::ClickHouse(replicas) => replicas,
        };
        for (number, url) in replicas.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let password = if url.password.is_empty() { "" } else { ":(set)" };
            let scheme = if url.native_port.is_some() { "tcp" } else { "http" };
            let tls = if url.tls { "s" } else { "" };
            let srv = if url.is_srv_record { SRV } else { "" };
            write!(f, "{comma}{srv}{scheme}{tls}://{}{password}@{}", url.user, url.authority())?;
        }
        Ok(())
    }
}

impl fmt::Display for DuckDbPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("duckdb::memory:"),
            Self::File(path) if path.is_absolute() => write!(f, "duckdb://{}", path.display()),
            Self::File(path) => write!(f, "duckdb:{}", path.display()),
        }
    }
}

impl ClickHouseUrl {
    fn named_port(&self) -> u16 {
        self.native_port.unwrap_or(self.port)
    }

    /// Returns `host:port` as it was written; for an SRV record, its name alone.
    pub fn authority(&self) -> String {
        if self.is_srv_record {
            return self.host.clone();
        }
        let port = self.named_port();
        match self.host.contains(':') {
            true => format!("[{}]:{port}", self.host),
            false => format!("{}:{port}", self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ClickHouseUrl {
        match Backend::parse(text) {
            Ok(Backend::ClickHouse(mut replicas)) if replicas.len() == 1 => replicas.remove(0),
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
        let native = url("tcp://ann:p@db:9001/");
        assert_eq!((native.tls, native.port, native.native_port), (false, 8123, Some(9001)));
        assert_eq!(Backend::ClickHouse(vec![native]).to_string(), "tcp://ann:(set)@db:9001");
        let native = url("tcps://[::1]");
        assert_eq!((native.tls, native.port, native.native_port), (true, 8443, Some(9440)));
        assert_eq!(Backend::ClickHouse(vec![native]).to_string(), "tcps://default@[::1]:9440");
    }

    #[test]
    fn reads_srv_records() {
        let record = url("srv+http://ann:p@_clickhouse._tcp.example.org.");
        assert!(record.is_srv_record && !record.tls && record.native_port.is_none());
        assert_eq!((record.host.as_str(), record.user.as_str()), ("_clickhouse._tcp.example.org.", "ann"));
        let shown = |text: &str| Backend::parse(text).map(|backend| backend.to_string());
        assert_eq!(shown("srv+tcps://ann:p@_a._tcp.b").as_deref(), Ok("srv+tcps://ann:(set)@_a._tcp.b"));
        for (wrong, said) in [
            ("srv+http://_a._tcp.b:8123", "without a port"),
            ("srv+http://[::1]", "without a port"),
            ("srv+http://a..b", "is named as in"),
            ("srv+http://a,b", "begin with its scheme"),
            ("srv+ftp://a", "not known"),
            ("srv+http://a,srv+http://b", "names all replicas"),
            ("http://a,srv+https://b", "names all replicas"),
        ] {
            let error = shown(wrong).expect_err(wrong);
            assert!(error.contains(said), "{wrong}: {error}");
        }
        let backend = Backend::parse("http://a").expect("an address");
        assert!(parse_shards(&["srv+http://a".to_owned()], &backend).is_err_and(|error| error.contains("shards")));
    }

    #[test]
    fn other_databases_are_shown_without_their_secrets() {
        let shown = |text: &str| Backend::parse(text).map(|backend| backend.to_string());
        let pairs = [
            ("adbc:postgresql://ann:p@ss@db:5432/events?password=x", "adbc:postgresql://ann:(set)@db:5432/events"),
            ("adbc:postgresql://ann@db/events", "adbc:postgresql://ann@db/events"),
            ("adbc:sqlite:///var/lib/a.db", "adbc:sqlite:///var/lib/a.db"),
            ("adbc:sqlite:a.db", "adbc:sqlite:a.db"),
            ("adbc:flightsql://db:8815", "adbc:flightsql://db:8815"),
        ];
        for (given, wanted) in pairs {
            assert_eq!(shown(given).as_deref(), Ok(wanted));
        }
        for wrong in ["adbc:", "adbc:postgresql", "adbc:://x", "adbc:postgresql:"] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reads_replicas() {
        let shown = |text: &str| Backend::parse(text).map(|backend| backend.to_string());
        assert_eq!(
            shown("http://ann:a,b@a:8123, https://b,tcp://ann:a,b@c").as_deref(),
            Ok("http://ann:(set)@a:8123,https://ann:(set)@b:8443,tcp://ann:(set)@c:9000"),
            "who names no account has the first one's, and a comma in a password is none between addresses"
        );
        for (text, said) in [
            ("http://ann:geheim@a,http://joe:geheim@b", "those of b:8123 differ"),
            ("http://ann:geheim@a,http://ann:other@b", "those of b:8123 differ"),
            ("http://a,http://b,http://a:8123/", "a:8123 is named twice"),
            ("http://a,", "must begin with its scheme"),
            ("http://a,,http://b", "must begin with its scheme"),
            ("http://ann:geheim@a:8123,b:8123", "must begin with its scheme"),
            ("embedded,http://a", "not known"),
        ] {
            let error = shown(text).expect_err(text);
            assert!(error.contains(said) && !error.contains("geheim"), "{text}: {error}");
        }
        let many: Vec<String> = (1..=65).map(|port| format!("http://a:{port}")).collect();
        assert!(shown(&many.join(",")).expect_err("too many").contains("64 are the most"));
        assert!(Backend::of_replicas(&[]).is_err());
    }

    #[test]
    fn reads_places_of_duckdb_and_shows_them_as_they_are_read() {
        for (text, place, shown) in [
            ("duckdb:///var/lib/a b.db", DuckDbPlace::File("/var/lib/a b.db".into()), "duckdb:///var/lib/a b.db"),
            ("duckdb:/var/x.db", DuckDbPlace::File("/var/x.db".into()), "duckdb:///var/x.db"),
            ("duckdb:x/y.db", DuckDbPlace::File("x/y.db".into()), "duckdb:x/y.db"),
            ("duckdb::memory:", DuckDbPlace::Memory, "duckdb::memory:"),
            ("duckdb://:memory:", DuckDbPlace::Memory, "duckdb::memory:"),
        ] {
            let backend = Backend::parse(text).expect(text);
            assert_eq!(backend, Backend::DuckDb(place), "{text}");
            assert_eq!(backend.to_string(), shown);
            assert_eq!(Backend::parse(shown), Ok(backend));
        }
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
            "tcp://u:geheim@h:0",
            "tcps://u:geheim@h:9440/database",
            "duckdb:",
            "duckdb:///",
            "duckdb://geheim.db",
            "duckdb:///folder/",
            "duckdb:///geheim.db?access_mode=read_only",
        ] {
            let error = Backend::parse(text).expect_err(text);
            assert!(error.len() > 20 && !error.contains("geheim"), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_without_its_scheme_is_understood_and_refused() {
        for (text, meant) in [
            ("db:8123", "did you mean http://db:8123?"),
            ("u:geheim@db:8124", "did you mean http://user:password@db:8124?"),
            ("db:8443", "did you mean https://db:8443?"),
            ("localhost:9000", "9000 is the port of the native protocol: did you mean http://localhost:8123?"),
            ("clickhouse://u:geheim@db:9440/d?a=geheim", "did you mean https://user:password@db:8443?"),
            ("native://db", "did you mean http://db:8123?"),
            ("u:geheim", "the URL lacks its http://"),
            ("u:geheim@", "the URL lacks its http://"),
        ] {
            let error = Backend::parse(text).expect_err(text);
            assert!(error.contains(meant) && !error.contains("geheim"), "{text}: {error}");
        }
    }

    #[test]
    fn no_mutation_of_a_url_panics() {
        let mut random = fastrand::Rng::with_seed(7);
        let seeds = [
            "https://us%41er:pa%20ss@[2001:db8::1]:8443/",
            "duckdb:///var/lib/file.db",
            "http://u:p@a:1,tcp://b:2, https://c",
        ];
        for round in 0..20_000 {
            let mut bytes = seeds[round % seeds.len()].as_bytes().to_vec();
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
