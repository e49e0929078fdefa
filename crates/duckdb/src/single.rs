//! Whether a text may be run on somebody's behalf: one statement, of a kind that is taken, and of one that its session
//! allows.
//!
//! DuckDB runs all statements of a text. A second one would run outside of what was decided about the first: a `COMMIT`
//! would end the read-only transaction that a reader's statement is held in.

use windrow_clickhouse::Exception;
use windrow_sql::{kind_of, Kind, NotTaken};

use crate::errors::{READONLY, SYNTAX_ERROR};
use crate::query::Session;
use crate::table::is_windrows;

pub fn check(sql: &str, session: &Session, version: &str) -> Result<(), Exception> {
    let kind = kind_of(sql).ok_or_else(|| {
        Exception::new(SYNTAX_ERROR, "One statement may be sent at a time, and not less than one", version)
    })?;
    match kind {
        Kind::Reads => Ok(()),
        _ if session.readonly => Err(Exception::new(READONLY, "Cannot execute query in readonly mode", version)),
        Kind::Writes { .. } if is_windrows(&session.schema) => Err(not_taken(NotTaken::Windrows, version)),
        Kind::Writes { .. } => Ok(()),
        Kind::NotTaken(why) => Err(not_taken(why, version)),
    }
}

pub(crate) fn not_taken(why: NotTaken, version: &str) -> Exception {
    Exception::new(why.code(), why.text(), version)
}
