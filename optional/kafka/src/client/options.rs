//! What a client has to know of a cluster. Secrets are in no debug output.

use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// `host:port` of some brokers; the others are learned from them.
    pub brokers: Vec<String>,
    /// How the brokers' logs and quotas know this program.
    pub client_id: String,
    /// Without it nothing is encrypted.
    pub tls: Option<TlsOptions>,
    pub sasl: Option<Sasl>,
    pub connect_timeout_ms: u64,
    /// On top of the time that a request allows the broker to let it wait.
    pub request_timeout_ms: u64,
    /// A larger answer ends the connection.
    pub max_answer_bytes: usize,
    /// How long questions about the cluster are repeated while it can't answer, before whoever asks is told.
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

/// All files in PEM form.
#[derive(Debug, Clone, Default)]
pub struct TlsOptions {
    /// Whom to trust; without it, whom the system trusts.
    pub ca_file: Option<PathBuf>,
    /// What the broker is shown of us, and its key, if it asks for a certificate.
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

/// How we say who we are.
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

/// Where a token is found. It is read again for every connection, so that whoever renews it need not tell us.
#[derive(Clone)]
pub enum TokenSource {
    /// One that never changes.
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
