//! State that all connections share, whatever protocol they speak.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use windrow_clickhouse::Strangers;
use windrow_columns::ReadPlans;
use windrow_engine::{dead_letters::DeadLetters, Gatherer};

use crate::admission::Admission;
use crate::backend::{Backend, BackendSink};
use crate::cluster::Cluster;
use crate::data::appends::Appends;
use crate::data::{BodyRoom, KnownHeads, Sessions};
use crate::insert::{InflightAdmissions, PreparedInserts, Questions};
use crate::metrics::Metrics;
use crate::native::KnownDatabases;
use crate::options::GatewayOptions;
use crate::pipelines::ShownPipelines;
use crate::protocol::SignalCounts;
use crate::statement::QueryIds;

pub(crate) struct State {
    /// Limit of the bytes that are held on their way to one table.
    pub(crate) max_table_bytes: u64,
    pub(crate) options: GatewayOptions,
    pub(crate) backend: Backend,
    /// The cluster of gateways; `None` if this gateway is alone.
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) prepared: PreparedInserts,
    pub(crate) asking: InflightAdmissions,
    pub(crate) questions: Questions,
    /// Plans for reading rows, which tables with the same columns share.
    pub(crate) read_plans: ReadPlans,
    pub(crate) gatherer: Gatherer<BackendSink>,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) sessions: Sessions,
    pub(crate) query_ids: QueryIds,
    pub(crate) strangers: Strangers,
    pub(crate) known_heads: KnownHeads,
    pub(crate) body_room: BodyRoom,
    pub(crate) metrics: Metrics,
    /// The ordered appends, set by [`DataServer::serve_appends`].
    pub(crate) appends: OnceLock<Appends>,
    pub(crate) pipelines: ShownPipelines,
    pub(crate) known_databases: KnownDatabases,
    /// The port for HTTP, known once the gateway listens on it.
    pub(crate) http_port: OnceLock<u16>,
    pub(crate) closing: AtomicBool,
}

impl State {
    /// Returns how long an insert waits to be stored: the given seconds, or the setting's, but a day at the longest.
    pub(crate) fn patience(&self, seconds: Option<&str>) -> Duration {
        const LONGEST: Duration = Duration::from_secs(86_400);
        let said = seconds.and_then(|seconds| seconds.parse().ok()).and_then(|s| Duration::try_from_secs_f64(s).ok());
        let default = || Duration::from_millis(self.options.settings.get().gather.wait_for_async_insert_timeout_ms);
        said.unwrap_or_else(default).min(LONGEST)
    }

    /// Forgets what was worked out for inserts that have not come for a while, and their tables. If they come
    /// again, it is worked out anew.
    pub(crate) fn forget_unused(&self) {
        // While nobody can be asked, what was known goes on to serve whoever comes back.
        if self.admission.is_failing() {
            return;
        }
        self.prepared.age();
        self.known_heads.age();
        if let Some(otlp) = &self.options.otlp {
            otlp.forget_unused();
        }
    }

    /// Returns how long admissions that were kept on disk are believed.
    pub(crate) fn kept_ttl(&self) -> Duration {
        let gather = &self.options.settings.get().gather;
        Duration::from_millis(gather.admission_kept_ttl_ms.min(gather.admission_away_ttl_ms))
    }

    /// Returns the counts of each kind of request of OTLP.
    pub(crate) fn otlp_counts(&self) -> Vec<SignalCounts> {
        self.options.otlp.as_ref().map(|otlp| otlp.counts()).unwrap_or_default()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Makes the gateway ask the backend again, because tables or privileges may have changed.
    pub(crate) fn forget_what_was_learnt(&self) {
        self.admission.doubt();
        self.prepared.has_changed();
    }
}
