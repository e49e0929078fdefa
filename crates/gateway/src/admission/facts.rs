use std::sync::{Arc, PoisonError, RwLock};

use windrow_client::{Call, Client};

/// What the backend says of itself, for answers that are to look like its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackendFacts {
    /// `(version 26.7.2.1)`, as it stands behind every error.
    pub(crate) version_suffix: String,
    pub(crate) display_name: String,
    pub(crate) timezone: String,
}

#[derive(Default)]
pub(crate) struct Facts {
    known: RwLock<Arc<BackendFacts>>,
}

impl Facts {
    pub(crate) fn get(&self) -> Arc<BackendFacts> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, facts: BackendFacts) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(facts);
    }

    /// Takes the facts from an answer of the backend.
    pub(crate) async fn learn(&self, client: &Client, head: &windrow_http::ResponseHead) {
        let field = |name: &str| head.field_str(name).unwrap_or("").to_owned();
        let known = self.get();
        let mut facts = BackendFacts {
            version_suffix: known.version_suffix.clone(),
            display_name: field("x-clickhouse-server-display-name"),
            timezone: field("x-clickhouse-timezone"),
        };
        if facts.version_suffix.is_empty() {
            facts.version_suffix = version_suffix(client).await.unwrap_or_default();
        }
        self.set(facts);
    }
}

/// Official builds say so behind their version.
async fn version_suffix(client: &Client) -> Option<String> {
    let query = "SELECT concat('(version ', version(), \
                 (SELECT any(value) FROM system.build_options WHERE name = 'VERSION_OFFICIAL'), ')') FORMAT TSVRaw";
    let answer = client.call(Call::new(&client.endpoint().credentials, query)).await.ok()?;
    Some(answer.text().trim_end().to_owned())
}
