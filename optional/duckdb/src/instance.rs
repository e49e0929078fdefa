//! The database as it is open now, and how it is opened again after DuckDB gave it up.
//!
//! When a disk is full at the wrong moment, DuckDB says that its database is *invalidated*: nothing works any
//! more until it is opened again, which brings back everything that was committed. A file must not be opened
//! twice in one process, where its lock does not keep others out. So it is opened again when the last
//! connection to the old instance is gone; until then, requests are told to come again. A database in memory
//! is lost with its instance, and stays as it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adbc_core::Database;
use adbc_driver_manager::{ManagedConnection, ManagedDatabase};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::connection::Connection;
use crate::errors::{self, OpenError};
use crate::open::{self, Opened};
use crate::options::DuckDbOptions;

/// State that an instance shares with its connections: whether it still works, and by its count who is left.
#[derive(Default)]
pub(crate) struct Health {
    given_up: AtomicBool,
}

impl Health {
    /// Notes an error of this instance.
    pub(crate) fn note(&self, exception: &Exception) {
        if errors::is_fatal(exception) && !self.given_up.swap(true, Ordering::SeqCst) {
            tracing::error!(%exception, "DuckDB has given its database up; it is opened again");
        }
    }
}

struct Current {
    database: ManagedDatabase,
    health: Arc<Health>,
}

pub(crate) struct Instance {
    options: DuckDbOptions,
    /// The open database. `None`: it is closed, or it could not be opened again so far.
    current: Mutex<Option<Current>>,
    is_closed: AtomicBool,
    version: String,
    catalog: Arc<str>,
}

impl Instance {
    pub(crate) fn open(options: DuckDbOptions) -> Result<Instance, OpenError> {
        let Opened { database, version, catalog } = open::open(&options)?;
        let current = Mutex::new(Some(Current { database, health: Arc::default() }));
        let version = format!("(DuckDB {version})");
        Ok(Instance { options, current, is_closed: AtomicBool::new(false), version, catalog })
    }

    /// Returns the suffix of errors' texts.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Opens a connection for the caller alone. Blocks for a moment, or for as long as opening the database takes.
    pub(crate) fn connect(&self) -> Result<Connection, Exception> {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|current| current.health.given_up.load(Ordering::SeqCst)) {
            self.give_up(&mut current)?;
        }
        let open: &Current = match current.as_ref() {
            Some(open) => open,
            None => current.insert(self.open_again()?),
        };
        let connection = open.database.new_connection();
        let connection = connection.map_err(|error| errors::exception(&error, &self.version))?;
        Ok(self.connection(connection, open.health.clone()))
    }

    fn connection(&self, inner: ManagedConnection, health: Arc<Health>) -> Connection {
        Connection::new(inner, self.version.clone(), self.catalog.clone(), health)
    }

    /// Returns DuckDB's name for the database.
    pub(crate) fn catalog(&self) -> &str {
        &self.catalog
    }

    pub(crate) fn closed(&self) -> Exception {
        Exception::new(ErrorCode::ABORTED, "The database is being closed", &self.version)
    }

    /// Writes everything into the file and closes it, when no connection is open any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let Some(Current { database, health }) = self.lock().take() else { return };
        let Ok(connection) = database.new_connection() else { return };
        let checkpoint = self.connection(connection, health).execute("CHECKPOINT");
        if let Err(exception) = checkpoint {
            tracing::warn!(%exception, "the database was closed without a checkpoint");
        }
    }

    /// Drops the old instance, if no connection holds on to it.
    fn give_up(&self, current: &mut Option<Current>) -> Result<(), Exception> {
        let is_alone = current.as_ref().is_some_and(|current| Arc::strong_count(&current.health) == 1);
        if !is_alone || self.options.path.is_none() {
            let text = "DuckDB has given its database up, which is opened again when all have left it";
            return Err(Exception::new(ErrorCode::ABORTED, text, &self.version));
        }
        *current = None;
        Ok(())
    }

    fn open_again(&self) -> Result<Current, Exception> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(self.closed());
        }
        match open::open(&self.options) {
            Ok(Opened { database, .. }) => {
                tracing::info!("the database was opened again");
                Ok(Current { database, health: Arc::default() })
            }
            Err(error) => Err(Exception::new(ErrorCode::ABORTED, &error.to_string(), &self.version)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
