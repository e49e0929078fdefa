//! Decides whether a text may be run for a user: it has to be one statement, of a kind that Windrow runs and
//! that the session allows.
//!
//! DuckDB runs all statements of a text. A second one would run outside of what was decided about the first:
//! a `COMMIT` would end the read-only transaction that a reader's statement runs in.

use windrow_clickhouse::{ErrorCode, Exception};

use crate::query::Session;
use crate::statement::{kind_of, Kind, NotTaken};
use crate::table::is_windrows;

/// Checks that a user may run a text. `version` is the suffix of an error's text.
///
/// # Errors
/// Fails where it is not exactly one statement, or a statement that Windrow does not run or that the session
/// does not allow.
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

/// Makes the error of a statement that is not run. `version` is the suffix of its text.
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
