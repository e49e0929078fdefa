//! Statements that DuckDB runs, and their answers.

use windrow_duckdb::DuckDb;
use windrow_http::Connection;

use super::answer::After;
use super::body::Read;
use super::dispatch::Exchange;
use super::request::Request;
use crate::insert::not_taken;
use crate::users::Access;

/// Requests that need no user.
pub(super) fn is_for_anyone(_request: &Request<'_>) -> bool {
    false
}

impl Exchange<'_> {
    pub(super) async fn answer_from_duckdb(
        &self,
        _duckdb: &DuckDb,
        _access: Access,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        _read: Read,
    ) -> After {
        self.refuse(connection, out, &not_taken("statement")).await
    }
}
