//! DuckDB, or another database that takes SQL, behind ClickHouse's HTTP interface: whatever is not an insert to be
//! gathered.
//!
//! A request's text is read whole, taken apart (`ask.rs`) and run by the database as one statement, in its own SQL. Its
//! result is encoded batch by batch and sent as it comes (`sending.rs`): the first [`sending::BUFFER_BYTES`] are held
//! back, so that an error that comes early still has a status of its own; one that comes later breaks the body as
//! ClickHouse breaks it. What has to be whole before it is sent (`wait_end_of_query`, Parquet) is in memory up to a
//! bound and in a file beyond it (`spool.rs`). A client that goes away stops its query.

mod about;
mod answering;
mod ask;
mod head;
mod install;
mod kept_files;
mod own_table;
mod parameters;
mod parquet;
mod plain;
mod portable;
mod run;
mod sending;
mod settings;
mod source;
mod spool;
mod text;

pub(super) use answering::Asking;
pub(crate) use ask::{Question, Statement, Who};
pub use install::install_duckdb_functions;
pub(crate) use kept_files::KeptFiles;
pub(super) use plain::is_for_anyone;
pub(crate) use run::{Elsewhere, Failure, Run};
pub use spool::prepare_temporary_folder;
pub(crate) use spool::TemporaryFiles;
pub(crate) use text::statement_text;

use windrow_adbc::SqlDatabase;
use windrow_sql::Parameter;

/// The literal for the value of a `{name:Type}`. `value` is the text of `param_name`, if there is one.
fn parameter(database: &SqlDatabase, value: Option<&str>, data_type: &str) -> Parameter {
    match database {
        SqlDatabase::DuckDb(_) => parameters::parameter(value, data_type),
        SqlDatabase::Adbc(adbc) => portable::parameter(value, data_type, adbc.has_plain_backslashes()),
    }
}
