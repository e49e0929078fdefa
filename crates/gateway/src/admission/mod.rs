//! What the backend says of an insert before it is taken, and for how long that is believed.
//!
//! Three questions, each with its own memory:
//! - who is this user: its settings, its database (`user.rs`), for the time that credentials are believed;
//! - what is this table: columns, engine (`schema.rs`), for the time that schemas are believed;
//! - may this user insert into these columns with these settings: an INSERT of no rows, under the user's own credentials,
//!   which ClickHouse checks like any other and which leaves no trace (`probe.rs`).
//!
//! A refusal of ClickHouse's is not worded here: the caller forwards the insert and ClickHouse refuses it itself. For a DuckDB,
//! the gateway answers all three (`duckdb.rs`), and words its refusals. While the backend is away,
//! what it said last goes on to hold: an insert that it would refuse by then is refused at the flush.

mod duckdb;
mod facts;
mod probe;
mod remembered;
mod schema;
mod user;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use windrow_client::{CallError, Credentials};

pub(crate) use duckdb::SETTINGS as DUCKDB_SETTINGS;
pub(crate) use facts::{BackendFacts, Facts};
pub(crate) use probe::Probe;
pub(crate) use remembered::Remembered;
pub(crate) use schema::{Column, TableKey, TableSchema, Target};
pub(crate) use user::{ServerVersion, UserContext, UserKey};
#[cfg(test)]
pub(crate) use windows::Bounds;
use windows::Settled;
pub use windows::MARKED_WINDOW;
pub(crate) use windows::{Window, Windows};

use crate::backend::Backend;
use crate::error::Refusal;

/// Why an insert can't be taken.
#[derive(Debug, Clone)]
pub(crate) enum NotAdmitted {
    /// To be forwarded: ClickHouse will refuse it, or deal with it in a way of its own. With the label of a metric.
    Forward(&'static str),
    /// It is refused, and there is nobody else to say so.
    Refused(Arc<Refusal>),
    /// The backend is too busy to say. Who has no earlier answer forwards, and hears it from ClickHouse.
    Busy,
    /// The backend can't be asked now.
    Unreachable(String),
}

impl NotAdmitted {
    fn refused(refusal: Refusal) -> NotAdmitted {
        NotAdmitted::Refused(Arc::new(refusal))
    }

    /// A refusal that says nothing of the insert: the backend has too much to do, or too little memory, at this moment.
    fn is_about_this_moment(error: &CallError) -> bool {
        matches!(error, CallError::Exception(exception) if exception.is_passing() && exception.code != 164)
    }
}

impl From<CallError> for NotAdmitted {
    fn from(error: CallError) -> Self {
        match error {
            error if Self::is_about_this_moment(&error) => NotAdmitted::Busy,
            CallError::Exception(_) => NotAdmitted::Forward("refused"),
            CallError::NotSent(error) => NotAdmitted::Unreachable(error.to_string()),
            CallError::Unknown(text) => NotAdmitted::Unreachable(text),
        }
    }
}

/// How long a question may take. The backend may be busy, but a client waits.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Admission {
    backend: Backend,
    pub(crate) facts: Facts,
    users: Remembered<UserKey, UserContext>,
    tables: Remembered<TableKey, TableSchema>,
    pub(crate) windows: Windows,
}

impl Admission {
    pub(crate) fn new(backend: Backend, admission_ttl: Duration, schema_ttl: Duration, windows: Windows) -> Admission {
        Admission {
            facts: Facts::of(&backend),
            backend,
            users: Remembered::new(admission_ttl),
            tables: Remembered::new(schema_ttl),
            windows,
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    pub(crate) async fn user(&self, key: UserKey) -> Result<Arc<UserContext>, NotAdmitted> {
        match &self.backend {
            Backend::ClickHouse(it) => self.users.get(&key, || user::ask(&it.client, &self.facts, key.clone())).await,
            Backend::DuckDb(it) => self.users.get(&key, async || duckdb::user(it, &key)).await,
        }
    }

    /// The user as far as it is known, without asking.
    pub(crate) fn known_user(&self, key: &UserKey) -> Option<Arc<UserContext>> {
        self.users.known(key)
    }

    /// The table as it is for everyone: asked with the gateway's own credentials, which usually see more, or else with the
    /// client's.
    pub(crate) async fn table(&self, key: TableKey, asker: &Credentials) -> Result<Arc<TableSchema>, NotAdmitted> {
        match &self.backend {
            Backend::ClickHouse(it) => {
                self.tables.get(&key, || schema::ask(&it.client, key.clone(), asker.clone())).await
            }
            Backend::DuckDb(it) => self.tables.get(&key, || duckdb::table(it, &key)).await,
        }
    }

    /// The table as it is at this moment, for the gateway's own account; in the backend's words if it can't be had.
    pub(crate) async fn table_anew(&self, key: &TableKey) -> Result<TableSchema, CallError> {
        match &self.backend {
            Backend::ClickHouse(it) => schema::ask_as(&it.client, key, &it.client.endpoint().credentials).await,
            Backend::DuckDb(it) => duckdb::table_anew(it, key).await.map_err(CallError::Exception),
        }
    }

    /// The table may have changed: whoever asks next gets a new answer, unless there is one that is younger than `age`.
    pub(crate) fn doubt_table(&self, key: &TableKey, age: Duration) {
        self.tables.doubt(key, age);
    }

    /// Gives the table a window if it is to have one; true: it has one now, or had one before.
    pub(crate) async fn settle_window(&self, key: &TableKey, window: Window) -> bool {
        let Backend::ClickHouse(clickhouse) = &self.backend else { return true };
        let settled = self.windows.settle(&clickhouse.client, key, window).await;
        if let Ok(Settled::Given) = settled {
            self.doubt_table(key, Duration::ZERO);
        }
        settled.is_ok()
    }

    /// The same for whoever wants to know why it has none.
    pub(crate) async fn give_window(&self, key: &TableKey, window: Window) -> Result<(), String> {
        let Backend::ClickHouse(clickhouse) = &self.backend else { return Ok(()) };
        match self.windows.settle(&clickhouse.client, key, window).await? {
            Settled::Given => self.doubt_table(key, Duration::ZERO),
            Settled::Had => {}
        }
        Ok(())
    }

    pub(crate) async fn probe(&self, probe: Probe<'_>) -> Result<(), NotAdmitted> {
        match &self.backend {
            Backend::ClickHouse(clickhouse) => Ok(probe.ask(&clickhouse.client).await?),
            Backend::DuckDb(backend) => duckdb::probe(backend, &probe.destination.credentials),
        }
    }

    /// Schemas and privileges may have changed.
    pub(crate) fn forget(&self) {
        self.users.clear();
        self.tables.clear();
    }

    /// Whether the backend grants `privilege` to the user.
    pub(crate) async fn is_granted(&self, credentials: &Credentials, privilege: &str) -> Result<bool, CallError> {
        let clickhouse = match &self.backend {
            Backend::ClickHouse(clickhouse) => clickhouse,
            Backend::DuckDb(backend) => {
                return Ok(backend.users.check(credentials).is_some_and(|access| !access.readonly))
            }
        };
        let call = windrow_client::Call::new(credentials, &format!("CHECK GRANT {privilege}"));
        Ok(clickhouse.client.call(call.timeout(QUESTION_TIMEOUT)).await?.text().trim() == "1")
    }
}
