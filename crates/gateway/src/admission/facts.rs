use std::sync::{Arc, PoisonError, RwLock};

use windrow_client::{Call, CallError, Client};

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

    /// Takes the facts from an answer of the backend. The version stands in errors only, so one is provoked when needed.
    pub(crate) async fn learn(&self, client: &Client, head: &windrow_http::ResponseHead) {
        let field = |name: &str| head.field_str(name).unwrap_or("").to_owned();
        let known = self.get();
        let mut facts = BackendFacts {
            version_suffix: known.version_suffix.clone(),
            display_name: field("x-clickhouse-server-display-name"),
            timezone: field("x-clickhouse-timezone"),
        };
        if facts.version_suffix.is_empty() {
            let call = Call::new(&client.endpoint().credentials, "SELECT throwIf(1)");
            if let Err(CallError::Exception(exception)) = client.call(call).await {
                facts.version_suffix = exception.version_suffix().to_owned();
            }
        }
        if facts.display_name != known.display_name
            || facts.timezone != known.timezone
            || facts.version_suffix != known.version_suffix
        {
            self.set(facts);
        }
    }
}
