use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::policy::FlushLimits;
use crate::trace::SpanContext;
use tokio::sync::oneshot;
use windrow_clickhouse::Exception;
use windrow_columns::Rows;

pub(crate) use crate::deduplication::DedupKeys;
use crate::journaling::{Journaled, Journaling};
use crate::signal::Signal;
use crate::table::Table;

pub use crate::records::{AckLevel, QueryId};

/// What an insert has behind it that comes back from the dead letters or from an earlier life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// When it came first, in microseconds since 1970.
    pub arrived_wall_micros: u64,
    /// Attempts to store it before this life.
    pub attempts: u32,
}

/// What a client sent in one request, admitted and read.
pub struct Insert {
    pub rows: Rows,
    /// Bytes of the payload as it came: what `async_insert_max_data_size` counts.
    pub payload_bytes: u64,
    /// The connection it came on.
    pub writer: u64,
    /// Of a writer whose inserts go to several gateways: how long after its last answer it has sent this one.
    pub back_after: Option<Duration>,
    pub ack: AckLevel,
    /// How long its sender is willing to wait before it is in a buffer, if others are to go first.
    pub patience: Duration,
    /// Its batch is sealed with it: an insert that was not meant to be gathered.
    pub at_once: bool,
    pub dedup: Option<DedupKeys>,
    pub history: Option<History>,
    pub query_id: QueryId,
    pub kind: Arc<InsertKind>,
    /// The request's span, if it is traced.
    pub trace: Option<Box<SpanContext>>,
}

/// What is the same for all inserts of one statement.
#[derive(Debug, Clone)]
pub struct InsertKind {
    /// The statement without its data, for the log.
    pub query: String,
    /// The format's name.
    pub format: String,
    pub data_kind: DataKind,
    pub limits: FlushLimits,
}

impl InsertKind {
    /// Whether rows come as text, which is not written for types that a table has at some time.
    pub(crate) fn is_text(&self) -> bool {
        const BEGINNINGS: [&str; 6] = ["JSON", "CSV", "TSV", "TabSeparated", "TSKV", "Values"];
        let begins = |beginning: &&str| {
            self.format.get(..beginning.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(beginning))
        };
        self.data_kind == DataKind::Parsed && BEGINNINGS.iter().any(begins)
    }
}

/// What the log calls the form in which the rows came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataKind {
    /// As text or bytes in a format.
    Parsed,
    /// As blocks of the native protocol.
    Preprocessed,
}

impl DataKind {
    pub fn as_str(self) -> &'static str {
        match self {
            DataKind::Parsed => "Parsed",
            DataKind::Preprocessed => "Preprocessed",
        }
    }
}

/// Why an insert was not taken. It left no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushError {
    /// The buffers are full; worth trying again soon.
    Overloaded {
        max_bytes: u64,
        whose: &'static str,
    },
    ShuttingDown,
    /// Inserts of its table that came before are still to be stored, and it would have had to wait longer for its turn
    /// than its sender would.
    Behind,
    /// The journal has no room; worth trying again soon.
    JournalFull {
        max_bytes: u64,
        whose: &'static str,
    },
    /// It could not be written to the journal.
    NotJournaled {
        cause: String,
        /// False: if the gateway ends before the disk works again, the next start may find it there and store it.
        is_certain: bool,
    },
    /// The table's inserts have become dead letters, and there is no room for more of these.
    DeadLettersFull {
        max_bytes: u64,
    },
    /// It was on its way to the sink before it could be written to the journal, and was not stored.
    Failed(InsertError),
}

/// Why an insert that was taken is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertError {
    /// The sink's system refused it, and has stored nothing of it.
    Exception(Exception),
    /// The sink's system ended with an error, and may have stored a part of it.
    Failed(Exception),
    /// The batch was sent, the answer was lost, and the table could not recognise a repeat.
    OutcomeUnknown(String),
    /// The sink could not be reached while the insert waited.
    Unreachable(String),
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InsertError::Exception(exception) | InsertError::Failed(exception) => exception.fmt(f),
            InsertError::OutcomeUnknown(text) => write!(f, "the insert may or may not be stored: {text}"),
            InsertError::Unreachable(text) => write!(f, "the insert was not stored: {text}"),
        }
    }
}

impl InsertError {
    /// Without what an exception's text may tell of statements and values.
    pub(crate) fn kind(&self) -> String {
        match self {
            InsertError::Exception(exception) | InsertError::Failed(exception) => format!("Code: {}", exception.code),
            InsertError::OutcomeUnknown(_) => "it may or may not be stored".to_owned(),
            InsertError::Unreachable(_) => "the database could not be reached".to_owned(),
        }
    }

    pub(crate) fn unanswered() -> InsertError {
        InsertError::OutcomeUnknown("the gateway ended before it knew".to_owned())
    }
}

pub(crate) type Outcome = Result<(), InsertError>;

/// What a member's sender is told.
pub(crate) async fn outcome_of(receiver: &mut oneshot::Receiver<Outcome>) -> Outcome {
    // The flight answers each member before it is dropped. If it could not, the gateway itself has failed or ends.
    receiver.await.unwrap_or_else(|_| Err(InsertError::unanswered()))
}

/// A place in a batch. Its holder may wait for the outcome or walk away: the insert stays.
pub struct Ticket {
    pub(crate) outcome: oneshot::Receiver<Outcome>,
    pub(crate) table: Weak<Table>,
    pub(crate) member: u64,
    /// Where it stands in the journal, if it does.
    pub(crate) journal: Option<(Arc<Journaling>, Journaled)>,
    pub(crate) gave_up: Arc<Signal>,
}

/// What became of an insert whose sender does not want to wait any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawal {
    /// It was taken out: nothing of it is or will be stored. With the last error, if attempts have failed.
    Withdrawn {
        last_error: Option<InsertError>,
    },
    /// It is on its way to the sink, or was: it may still be stored.
    InFlight,
    Done(Outcome),
}

impl Ticket {
    /// Waits for the outcome. May be dropped and called again.
    pub async fn outcome(&mut self) -> Outcome {
        tokio::select! {
            biased;
            outcome = outcome_of(&mut self.outcome) => return outcome,
            () = self.gave_up.wait() => {}
        }
        // What is in the journal, the next start stores.
        let is_kept = self.journal.is_some();
        let withdrawn = self.table.upgrade().filter(|_| !is_kept).and_then(|table| table.withdraw(self.member));
        // It may have come to its end just now.
        if let Ok(outcome) = self.outcome.try_recv() {
            return outcome;
        }
        Err(match withdrawn {
            Some(_) => InsertError::Unreachable("Windrow ends, and could not store the insert in time".to_owned()),
            None => InsertError::unanswered(),
        })
    }

    /// Takes the insert out of its batch if that is still possible.
    pub async fn withdraw(mut self) -> Withdrawal {
        if let Some(table) = self.table.upgrade() {
            if let Some(withdrawal) = table.withdraw(self.member) {
                return match &self.journal {
                    // Until that is on the disk, a crash would bring it back.
                    Some((journal, journaled)) if !journal.done_for_sure(&table, *journaled).await => {
                        Withdrawal::InFlight
                    }
                    _ => withdrawal,
                };
            }
        }
        match self.outcome.try_recv() {
            Ok(outcome) => Withdrawal::Done(outcome),
            Err(_) => Withdrawal::InFlight,
        }
    }
}
