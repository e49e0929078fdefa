//! One way for rows to go, with all that is known of it: through Windrow, or straight into the database.

use std::time::Duration;

use tokio::time::Instant;
use windrow_clickhouse::Client;

use crate::errors::DemoError;
use crate::options::{Destination, Inserts, PidSource};
use crate::probe_results::ProbeResults;
use crate::store::{Row, RunId, Store};
use crate::watch::Watched;

pub(crate) struct Side {
    pub name: String,
    pub is_straight: bool,
    pub store: Store,
    /// For questions; probes have clients of their own.
    pub client: Client,
    pub results: ProbeResults,
    pub watched: Watched,
    pub database_pid: PidSource,
}

impl Side {
    /// Makes its table. `recent` is what counts as the recent past.
    pub async fn open(destination: &Destination, run: RunId, recent: Duration) -> Result<Self, DemoError> {
        let store = Store::new(destination, run)?;
        let client = store.client(1)?;
        store.create_table(&client).await?;
        let asked = store.part_counts(&client).await;
        let before =
            asked.map_err(|error| DemoError::Gateway { what: "read system.parts", reason: error.to_string() })?;
        let is_straight = destination.inserts == Inserts::Synchronous;
        let name = match is_straight {
            true => format!("straight to {}", destination.engine.name()),
            false => "through Windrow".to_owned(),
        };
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
        match self.store.insert(client, row).await {
            Ok(()) => self.results.acknowledged(row.number, sent.elapsed()),
            Err(error) => self.results.failed(error.to_string()),
        }
    }
}
