//! Whether a text may be run on somebody's behalf: one statement, of a kind that is taken, and of one that its session
//! allows.
//!
//! DuckDB runs all statements of a text. A second one would run outside of what was decided about the first: a `COMMIT`
//! would end the read-only transaction that a reader's statement is held in.

use windrow_clickhouse::{ErrorCode, Exception};
use windrow_sql::{kind_of, Kind, NotTaken};

use crate::query::Session;
use crate::table::is_windrows;

pub fn check(sql: &str, session: &Session, version: &str) -> Result<(), Exception> {
    let kind = kind_of(sql).ok_or_else(|| {
        Exception::new(ErrorCode::SYNTAX_ERROR, "One statement may be sent at a time, and not less than one", version)
    })?;
    match kind {
        Kind::Reads => Ok(()),
        _ if session.readonly => {
            Err(Exception::new(ErrorCode::READONLY, "Cannot execute query in readonly mode", version))
        }
        Kind::Writes { .. } if is_windrows(&session.schema) => Err(not_taken(NotTaken::Windrows, version)),
        Kind::Writes { .. } => Ok(()),
        Kind::NotTaken(why) => Err(not_taken(why, version)),
    }
}

/// Error of a statement that is not run. `version` stands behind its text.
pub fn not_taken(why: NotTaken, version: &str) -> Exception {
    let code = match why {
        NotTaken::OfTheConnection => ErrorCode::NOT_IMPLEMENTED,
        NotTaken::OfTheServer | NotTaken::Files | NotTaken::Windrows | NotTaken::Function => ErrorCode::ACCESS_DENIED,
        NotTaken::BackQuotes
        | NotTaken::JoinedTexts
        | NotTaken::UnicodeEscapes
        | NotTaken::Unclosed
        | NotTaken::Unknown => ErrorCode::SYNTAX_ERROR,
    };
    Exception::new(code, why.text(), version)
}
