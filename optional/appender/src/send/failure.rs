use std::fmt;

use windrow_clickhouse::Exception;

use crate::id::AppendId;
use crate::source::SourceError;

/// The reason why an append did not come to its end.
#[derive(Debug)]
pub struct AppendFailure {
    pub id: AppendId,
    pub why: Why,
}

#[derive(Debug)]
pub enum Why {
    /// The rows could not be had. None of them is stored.
    Source(SourceError),
    /// The server refused the append. No row of it is stored.
    Refused {
        exception: Exception,
        /// The batch that the error lies in, where that is known, and its row, from 0.
        batch: Option<u64>,
        row: Option<u64>,
    },
    /// The gateway that was asked knows nothing of the append: it was restarted, and nothing is stored, or
    /// another one has it.
    Gone,
    /// Another server answers there, a ClickHouse for instance.
    NotWindrow { server: String, status: u16 },
    /// The server can't be reached. Nothing is stored until someone resumes the append before the server
    /// drops it; unless `commit_sent`: then it may be stored, and resuming it tells.
    Unreachable {
        last_error: String,
        /// True if something may have come to the server. Without, this run has changed nothing.
        reached: bool,
        commit_sent: bool,
    },
}

impl AppendFailure {
    /// Says whether the same append can go on under its id.
    pub fn is_resumable(&self) -> bool {
        matches!(self.why, Why::Unreachable { .. })
    }
}

impl fmt::Display for AppendFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Source(error) => error.fmt(f),
            Why::Refused { exception, batch: Some(batch), row: Some(row) } => {
                write!(f, "batch {batch}, row {row}: {exception}")
            }
            Why::Refused { exception, batch: Some(batch), row: None } => write!(f, "batch {batch}: {exception}"),
            Why::Refused { exception, .. } => exception.fmt(f),
            Why::Gone => {
                f.write_str(
                    "the append is not known where it was asked for: if all its requests came to that gateway, ",
                )?;
                f.write_str("nothing of it is stored; else look at the table before it is sent again")
            }
            Why::NotWindrow { server, status } => {
                write!(f, "{server} answered with status {status}, but not as a Windrow does: ")?;
                f.write_str("an append has to go to a Windrow's HTTP port, not to ClickHouse's")
            }
            Why::Unreachable { last_error, reached: false, .. } => write!(f, "{last_error}; nothing was sent"),
            Why::Unreachable { last_error, commit_sent: false, .. } => f.write_str(last_error),
            Why::Unreachable { last_error, commit_sent: true, .. } => {
                write!(f, "{last_error}; the append may be stored or not")
            }
        }
    }
}

impl std::error::Error for AppendFailure {}
