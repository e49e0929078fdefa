//! The tables of the backend as pipelines of Kafka ask for them, and the pipelines that the gateway shows.

mod ask_format;
mod describe;
pub(crate) mod own_table;
mod shown;
mod through_gateway;

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::{CallError, Client};
use windrow_columns::Block;
use windrow_kafka::pipeline::{AskError, Asking, FormatQuestion, TableDescription, TableError, Tables};
use windrow_settings::Settings;

use crate::admission::{Admission, Windows};
use crate::backend::Backend;

#[cfg(test)]
pub(crate) use shown::example;
pub(crate) use shown::ShownPipelines;
pub use shown::{pipelines_json, PipelineSource};
pub use through_gateway::TablesThroughGateway;

/// The tables of the gateway's backend, as its own account sees them.
pub struct BackendTables {
    admission: Arc<Admission>,
}

impl BackendTables {
    pub(crate) fn new(admission: Arc<Admission>) -> BackendTables {
        BackendTables { admission }
    }

    /// Makes the tables without a gateway, to look at a table and perhaps to give it a deduplication window.
    pub fn alone(backend: Backend, settings: &Settings) -> BackendTables {
        let windows = Windows::new(settings.manage_deduplication_window);
        BackendTables::new(Arc::new(Admission::new(backend, Duration::ZERO, Duration::ZERO, windows)))
    }
}

impl Tables for BackendTables {
    fn describe<'a>(
        &'a self,
        database: &'a str,
        table: &'a str,
        exactly_once: bool,
    ) -> Asking<'a, Result<TableDescription, TableError>> {
        Box::pin(describe::describe(&self.admission, database, table, exactly_once))
    }

    fn ask_format<'a>(&'a self, question: FormatQuestion<'a>) -> Asking<'a, Result<Block, AskError>> {
        Box::pin(async move {
            match self.admission.backend().clickhouse() {
                Some(clickhouse) => ask_format::ask(&clickhouse.client, question).await,
                None => Err(AskError::Nobody),
            }
        })
    }
}

fn table_error(error: CallError) -> TableError {
    match error {
        CallError::Exception(exception) if !exception.is_passing() => TableError::Refused(exception),
        CallError::Exception(exception) => TableError::Unavailable(exception.line),
        CallError::NotSent(error) => TableError::Unavailable(error.to_string()),
        CallError::Unknown(text) => TableError::Unavailable(text),
    }
}

fn own_account(client: &Client) -> &windrow_clickhouse::Credentials {
    &client.endpoint().credentials
}
