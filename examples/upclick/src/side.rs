//! One way for rows to go, with all that is known about it: through Windrow, or straight into the database.

use std::time::Duration;

use tokio::time::Instant;
use windrow_clickhouse::{CallError, Client, ErrorCode};

use crate::errors::DemoError;
use crate::options::{Destination, Inserts, PidSource};
use crate::probe_results::ProbeResults;
use crate::store::{Row, RunId, Store};
use crate::watch::Watched;

const BETWEEN_TRIES: Duration = Duration::from_secs(1);
const MAX_TRIES: usize = 30;

pub(crate) struct Side {
    pub name: String,
    pub is_straight: bool,
    pub store: Store,
    /// Client for queries; probes have clients of their own.
    pub client: Client,
    pub results: ProbeResults,
    pub watched: Watched,
    pub database_pid: PidSource,
}

impl Side {
    /// Opens a side and makes its table. `recent` is the length of the recent past.
    pub async fn open(destination: &Destination, run: RunId, recent: Duration) -> Result<Self, DemoError> {
        let store = Store::new(destination, run)?;
        let client = store.client(1)?;
        let is_straight = destination.inserts == Inserts::Synchronous;
        let name = match is_straight {
            true => format!("straight to {}", destination.engine.name()),
            false => "through Windrow".to_owned(),
        };
        let unusable = |what| {
            let whose = format!("{name} at {}", destination.address());
            move |error: CallError| DemoError::Unusable { whose, what, reason: error.to_string() }
        };
        store.create_table(&client).await.map_err(unusable("create the demo's table"))?;
        let before = store.part_counts(&client).await.map_err(unusable("read system.parts"))?;
        Ok(Self {
            name,
            is_straight,
            store,
            client,
            results: ProbeResults::new(recent),
            watched: Watched::since(before),
            database_pid: destination.database_pid.clone(),
        })
    }

    pub async fn insert(&self, client: &Client, row: &Row<'_>) {
        self.results.sent();
        let sent = Instant::now();
        for _ in 0..MAX_TRIES {
            match self.store.insert(client, row).await {
                Ok(()) => return self.results.acknowledged(row.number, sent.elapsed()),
                Err(CallError::Exception(exception)) if exception.code == ErrorCode::TOO_MANY_PARTS => {
                    // Merges don't keep up: whoever inserts has to come back later.
                    self.results.refused(exception.to_string());
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
                Err(error) => return self.results.failed(error.to_string()),
            }
        }
        self.results.failed(format!("refused {MAX_TRIES} times for too many parts"));
    }
}
