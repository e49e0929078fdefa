//! The tables of a check: they belong to the backend itself, or, where a gateway has the backend to itself,
//! that gateway is asked.

use windrow_gateway::{BackendTables, ClickHouse, TablesThroughGateway};
use windrow_kafka::pipeline::Tables;
use windrow_settings::{Backend, DuckDbPlace, Settings};

use super::running_gateway;
use crate::backend::RunningBackend;
use crate::data_dir_lock::{DataDirLock, LockError};

pub(super) struct CheckTables {
    pub(super) tables: Box<dyn Tables>,
    /// The backend that had to be started to ask it, and the lock of its directory.
    started: Option<(RunningBackend, DataDirLock)>,
}

impl CheckTables {
    pub(super) async fn open(settings: &Settings) -> Result<CheckTables, String> {
        if let Backend::ClickHouse(_) | Backend::Adbc(_) = &settings.backend {
            let backend = RunningBackend::start(settings).await?;
            return Ok(CheckTables {
                tables: Box::new(BackendTables::alone(backend.gateway, settings)),
                started: None,
            });
        }
        // A check is not to make one: there would be no table in it.
        if !settings.data_dir.is_dir() {
            let directory = settings.data_dir.display();
            return Err(format!(
                "there is no data directory {directory}, and so no table: run windrow serve, and make it there"
            ));
        }
        let lock = match DataDirLock::acquire(&settings.data_dir) {
            Ok(lock) => lock,
            Err(LockError::Held { .. }) => return Self::through_gateway(settings),
            Err(error) => return Err(error.to_string()),
        };
        match &settings.backend {
            Backend::DuckDb(DuckDbPlace::Memory) => {
                return Err("a database in memory has tables only while windrow serve runs".to_owned());
            }
            Backend::DuckDb(DuckDbPlace::File(path)) if !path.exists() => {
                return Err(format!("there is no database {}, and so no table", path.display()));
            }
            _ => {}
        }
        let backend = RunningBackend::start(settings).await?;
        let tables = BackendTables::alone(backend.gateway.clone(), settings);
        Ok(CheckTables { tables: Box::new(tables), started: Some((backend, lock)) })
    }

    fn through_gateway(settings: &Settings) -> Result<CheckTables, String> {
        let client = running_gateway::client(settings)?;
        let tables: Box<dyn Tables> = match settings.backend {
            Backend::DuckDb(_) | Backend::Adbc(_) => Box::new(TablesThroughGateway::new(client)),
            Backend::Embedded | Backend::ClickHouse(_) => {
                let clickhouse = ClickHouse { client: client.clone(), relay: client, cluster: None, native: None };
                Box::new(BackendTables::alone(windrow_gateway::Backend::ClickHouse(clickhouse), settings))
            }
        };
        Ok(CheckTables { tables, started: None })
    }

    pub(super) async fn close(self) {
        let CheckTables { tables, started } = self;
        drop(tables);
        if let Some((backend, _lock)) = started {
            backend.stop().await;
        }
    }
}
