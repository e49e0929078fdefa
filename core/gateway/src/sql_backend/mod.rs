//! A database that takes SQL and no requests: what the gateway asks of it, to serve its clients as ClickHouse would.
//!
//! The gateway knows the users by the database's own list ([`SqlBackend::access`]), answers an admission's questions from its
//! catalogue (`admission.rs`), and has it run whatever is not an insert to be gathered: over HTTP (`http.rs`), where the database
//! writes the answer, and over the native protocol (`native.rs`), where the gateway makes packets of the rows.

mod admission;
mod http;
mod native;
mod text;

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use windrow_clickhouse::{Credentials, Exception};
use windrow_columns::{Block, DataType};
use windrow_engine::sink::{Batch, Destination, Load, Sink, StoreError, Stored};
use windrow_http::Connection;

pub use crate::admission::BackendFacts;
pub use crate::clickhouse_settings::{clickhouse_settings, unknown_setting};
pub use crate::data::own_tables::OwnRows;
pub use crate::data::{after, send, After, Exchange, Read, Request};
pub use crate::error::Refusal;
pub use crate::insert::{query_id, StatementOptions};
pub(crate) use admission::SETTINGS;
pub use http::StatementTerms;
use text::statement_text;
pub use text::NoText;

use crate::data::own_tables::{own_rows, Visible};
use crate::data::{Caller, Identity};
use crate::state::State;

/// A database that takes SQL.
pub trait SqlBackend: Send + Sync {
    /// Returns the name of its kind in the settings, on the dashboard and in traces.
    fn kind(&self) -> &'static str;

    /// Returns the version that stands behind its errors.
    fn version_suffix(&self) -> &str;

    /// Returns what a user may do, or `None` where there is no such user, or the password is another.
    fn access(&self, credentials: &Credentials) -> Option<Access>;

    /// Returns the one name of a database that has several.
    fn canonical_database(&self, database: &str) -> String;

    /// Finds the database that a user begins in.
    fn find_database<'a>(&'a self, user: &'a str, database: &'a str) -> BoxFuture<'a, Result<(), Exception>>;

    /// Reads a table's definition from the catalogue.
    fn table<'a>(&'a self, database: &'a str, table: &'a str) -> BoxFuture<'a, Result<SqlTable, Exception>>;

    /// Calls `changed` whenever tables may have changed.
    fn when_tables_change(&self, changed: Box<dyn Fn() + Send + Sync>);

    /// Returns the sink that batches are stored by.
    fn sink(&self) -> Box<dyn SqlSink>;

    /// Writes the first rows of a block in the format JSON.
    ///
    /// # Errors
    /// Fails where the database has no such type, and says which.
    fn rows_as_json(
        &self,
        columns: &[String],
        types: &[DataType],
        block: &Block,
        limit: usize,
    ) -> Result<Vec<u8>, String>;

    /// Answers a request over HTTP that is not gathered. `read` is the part of the body that has been read.
    fn answer<'a>(
        &'a self,
        exchange: &'a Exchange<'_>,
        terms: StatementTerms<'a>,
        connection: &'a mut Connection,
        out: &'a mut Vec<u8>,
        read: Read,
    ) -> BoxFuture<'a, After>;

    /// Prepares a statement of a native client.
    ///
    /// # Errors
    /// Fails where the statement can't be run by this user, or not here at all.
    fn prepare<'a>(&'a self, statement: &SqlStatement<'_>) -> Result<Box<dyn SqlRun + 'a>, Refusal>;
}

/// The rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub readonly: bool,
}

/// A table in the database's catalogue.
pub enum SqlTable {
    Missing,
    /// A table that Windrow keeps its own state in.
    Windrows,
    Found {
        columns: Vec<SqlColumn>,
        /// A batch's id is stored in one transaction with its rows, so that a batch that comes again is recognised.
        recognises_batches: bool,
    },
}

/// A column of a table.
pub struct SqlColumn {
    pub name: String,
    /// The type in ClickHouse's words, or in the database's own where ClickHouse has no such type.
    pub type_name: String,
    pub data_type: Result<DataType, String>,
    pub is_generated: bool,
    pub has_default: bool,
}

/// A statement, with what stands beside it in its protocol.
pub struct SqlStatement<'a> {
    pub text: &'a str,
    pub user: &'a str,
    /// The user may only read.
    pub readonly: bool,
    pub options: &'a StatementOptions<'a>,
    pub database: Option<&'a str>,
    /// The format of a result, where the statement names none.
    pub format: Option<&'a str>,
    /// Revision of Native that the client knows.
    pub native_revision: u64,
    /// The request's method may only read.
    pub by_get: bool,
    /// The rows of a table of `system` that the gateway keeps itself.
    pub own_tables: &'a (dyn Fn(&str) -> Option<OwnRows> + Send + Sync),
}

/// One run of a statement. It stops when it is dropped.
pub trait SqlRun: Send {
    /// Says whether the statement changes nothing.
    fn only_reads(&self) -> bool;

    /// Says whether the statement is answered with rows. Otherwise the answer is that it was done.
    fn has_rows(&self) -> bool;

    /// Says whether its rows come in the format Native.
    fn is_native(&self) -> bool;

    /// Runs the statement on, and appends the rows that came to `body`. Returns `false` where that was
    /// all. It is not called again after that, or after an error.
    fn advance<'a>(&'a mut self, body: &'a mut Vec<u8>) -> BoxFuture<'a, Result<bool, Refusal>>;
}

/// A [`Sink`] behind a pointer.
pub trait SqlSink: Send + Sync {
    fn store<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Stored, StoreError>>;
    fn answers<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, bool>;
    fn load<'a>(&'a self, tables: &'a [windrow_engine::sink::TableKey]) -> BoxFuture<'a, Option<Load>>;
}

impl<S: Sink> SqlSink for S {
    fn store<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Stored, StoreError>> {
        Box::pin(Sink::store(self, batch))
    }

    fn answers<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, bool> {
        Box::pin(Sink::answers(self, destination))
    }

    fn load<'a>(&'a self, tables: &'a [windrow_engine::sink::TableKey]) -> BoxFuture<'a, Option<Load>> {
        Box::pin(Sink::load(self, tables))
    }
}

/// Returns the account that the gateway's own work runs under. The settings reserve its name, so that no client has it.
pub(crate) fn own_credentials() -> &'static Credentials {
    static WINDROW: LazyLock<Credentials> =
        LazyLock::new(|| Credentials { user: "windrow".to_owned(), password: String::new() });
    &WINDROW
}

/// Finds the account of a request that says who it is from.
pub(crate) fn caller(backend: &dyn SqlBackend, identity: Identity) -> Caller {
    match identity {
        Identity::Claimed(claimed) if backend.access(&claimed).is_some() => Caller::Itself(claimed),
        Identity::Claimed(claimed) => Caller::WrongPassword { user: claimed.user },
        Identity::Unclear => Caller::WrongPassword { user: "default".to_owned() },
    }
}

/// Returns the rows of a table of `system` that the gateway keeps itself. A user that may only read sees its own rows.
fn rows_for(state: &Arc<State>, user: &str, access: Access, table: &str) -> Option<OwnRows> {
    let visible = if access.readonly { Visible::Only(user) } else { Visible::Everybodys };
    own_rows(table, state, &visible)
}
