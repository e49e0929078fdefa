use std::sync::{Arc, PoisonError, RwLock};

use windrow_clickhouse::{Call, Client};

use super::admissions_file::KeptServer;

/// Header fields that a browser's scripts may read, as ClickHouse lists them.
const EXPOSED: &str =
    "X-ClickHouse-Query-Id,X-ClickHouse-Summary,X-ClickHouse-Server-Display-Name,X-ClickHouse-Format,\
    X-ClickHouse-Timezone,X-ClickHouse-Exception-Code,X-ClickHouse-Exception-Tag";

/// Facts that the backend tells about itself, for answers that are to look like its own.
#[derive(Debug, Clone)]
pub struct BackendFacts {
    version_suffix: String,
    display_name: String,
    timezone: String,
    timezone_field: Vec<u8>,
    fixed_fields: Vec<u8>,
}

/// Empty facts, before the backend has been asked.
impl Default for BackendFacts {
    fn default() -> Self {
        BackendFacts::new(String::new(), String::new(), String::new())
    }
}

impl BackendFacts {
    pub(crate) fn new(version_suffix: String, display_name: String, timezone: String) -> BackendFacts {
        let fixed_fields = format!(
            "Content-Type: text/plain; charset=UTF-8\r\nAccess-Control-Expose-Headers: {EXPOSED}\r\n\
             X-ClickHouse-Server-Display-Name: {display_name}\r\n"
        );
        let timezone_field = format!("X-ClickHouse-Timezone: {timezone}\r\n").into_bytes();
        let fixed_fields = fixed_fields.into_bytes();
        BackendFacts { version_suffix, display_name, timezone, timezone_field, fixed_fields }
    }

    pub(super) fn kept(&self) -> KeptServer {
        let (version_suffix, display_name) = (self.version_suffix.clone(), self.display_name.clone());
        KeptServer { version_suffix, display_name, timezone: self.timezone.clone() }
    }

    /// Returns the version as it stands behind every error, such as `(version 26.7.2.1)`.
    pub fn version_suffix(&self) -> &str {
        &self.version_suffix
    }

    pub(crate) fn display_name(&self) -> &str {
        &self.display_name
    }

    /// Returns the server's time zone as a header field that ends in CR LF.
    pub fn timezone_field(&self) -> &[u8] {
        &self.timezone_field
    }

    /// Returns the header fields that are the same in every answer, each with CR LF at its end.
    pub fn fixed_fields(&self) -> &[u8] {
        &self.fixed_fields
    }
}

#[derive(Default)]
pub(crate) struct Facts {
    known: RwLock<Arc<BackendFacts>>,
}

impl Facts {
    pub(super) fn new(known: BackendFacts) -> Facts {
        Facts { known: RwLock::new(Arc::new(known)) }
    }

    pub(crate) fn get(&self) -> Arc<BackendFacts> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_if_unknown(&self, facts: BackendFacts) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.version_suffix.is_empty() {
            *known = Arc::new(facts);
        }
    }

    fn set(&self, facts: BackendFacts) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(facts);
    }

    /// Takes the facts from an answer of the backend.
    pub(crate) async fn learn(&self, client: &Client, head: &windrow_http::ResponseHead) {
        let field = |name: &str| head.field_str(name).unwrap_or("").to_owned();
        let mut version = self.get().version_suffix.clone();
        if version.is_empty() {
            version = version_suffix(client).await.unwrap_or_default();
        }
        self.set(BackendFacts::new(version, field("x-clickhouse-server-display-name"), field("x-clickhouse-timezone")));
    }
}

/// Returns the host's name, which ClickHouse takes as its display name. `None`: it can't be read, or may not
/// stand in a header field.
pub(crate) fn hostname() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())).then(|| name.to_owned())
}

/// Asks for the version suffix. Official builds say so behind their version.
async fn version_suffix(client: &Client) -> Option<String> {
    let query = "SELECT concat('(version ', version(), \
                 (SELECT any(value) FROM system.build_options WHERE name = 'VERSION_OFFICIAL'), ')') FORMAT TSVRaw";
    let answer = client.call(Call::new(&client.endpoint().credentials, query)).await.ok()?;
    Some(answer.text().trim_end().to_owned())
}
