//! Options of a client: the cluster's brokers, and how to connect to them. Secrets are in no debug output.

use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Addresses of some brokers, each as `host:port`. The other brokers are learned from them.
    pub brokers: Vec<String>,
    /// Name of this program in the brokers' logs and quotas.
    pub client_id: String,
    /// Options of TLS. Without them, connections are not encrypted.
    pub tls: Option<TlsOptions>,
    pub sasl: Option<Sasl>,
    pub connect_timeout_ms: u64,
    /// Time to wait for an answer, on top of the time for which a request lets the broker wait.
    pub request_timeout_ms: u64,
    /// Largest answer. A larger one ends the connection.
    pub max_answer_bytes: usize,
    /// Time for which requests about the cluster are repeated, before the caller gets the error.
    pub retry_for_ms: u64,
    pub min_backoff_ms: u64,
    pub max_backoff_ms: u64,
}

impl ClientOptions {
    pub fn new(brokers: Vec<String>) -> Self {
        Self {
            brokers,
            client_id: "windrow".to_owned(),
            tls: None,
            sasl: None,
            connect_timeout_ms: 10_000,
            request_timeout_ms: 30_000,
            max_answer_bytes: 128 << 20,
            retry_for_ms: 10_000,
            min_backoff_ms: 50,
            max_backoff_ms: 2_000,
        }
    }
}

/// Files for TLS, all in PEM form.
#[derive(Debug, Clone, Default)]
pub struct TlsOptions {
    /// Certificates of the authorities to trust. Without the file, the system's own are trusted.
    pub ca_file: Option<PathBuf>,
    /// Certificate that is shown to a broker that asks for one. `key_file` has its key.
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

/// The mechanism by which the client proves its identity, with the credentials.
#[derive(Clone)]
pub enum Sasl {
    Plain { user: String, password: String },
    Scram { hash: ScramHash, user: String, password: String },
    OauthBearer { token: TokenSource, extensions: Vec<(String, String)> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScramHash {
    Sha256,
    Sha512,
}

/// The source of a token. It is read again for every connection, so a renewed token is used without any notice.
#[derive(Clone)]
pub enum TokenSource {
    /// A token that never changes.
    Text(String),
    File(PathBuf),
    /// A program with its arguments, which prints the token.
    Command(Vec<String>),
}

impl Sasl {
    pub fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain { .. } => "PLAIN",
            Self::Scram { hash: ScramHash::Sha256, .. } => "SCRAM-SHA-256",
            Self::Scram { hash: ScramHash::Sha512, .. } => "SCRAM-SHA-512",
            Self::OauthBearer { .. } => "OAUTHBEARER",
        }
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("the settings"),
            Self::File(path) => write!(f, "{}", path.display()),
            // Its arguments may be secret.
            Self::Command(words) => write!(f, "the command {}", words.first().map_or("", String::as_str)),
        }
    }
}

impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { user, .. } | Self::Scram { user, .. } => write!(f, "{} as {user}", self.mechanism()),
            Self::OauthBearer { token, .. } => write!(f, "{} with the token of {token:?}", self.mechanism()),
        }
    }
}
