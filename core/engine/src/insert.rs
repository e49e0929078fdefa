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

/// The past of an insert that comes back from the dead letters or from an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// Time of the insert's first arrival, in microseconds since 1970.
    pub arrived_wall_micros: u64,
    /// Number of attempts to store the insert before it came back.
    pub attempts: u32,
}

/// An insert that a client sent in one request, after it was admitted and read.
pub struct Insert {
    pub rows: Rows,
    /// Bytes of the payload as it came, which `async_insert_max_data_size` counts.
    pub payload_bytes: u64,
    /// The connection that the insert came on.
    pub writer: u64,
    /// Time from the writer's last answer until it sent this insert, for a writer whose inserts go to several
    /// gateways.
    pub back_after: Option<Duration>,
    pub ack: AckLevel,
    /// Time that the sender is willing to wait before the insert is in a buffer, if others are to go first.
    pub patience: Duration,
    /// The batch is sealed with this insert, which was not meant to be gathered.
    pub at_once: bool,
    pub dedup: Option<DedupKeys>,
    pub history: Option<History>,
    pub query_id: QueryId,
    pub kind: Arc<InsertKind>,
    /// The request's span, if it is traced.
    pub trace: Option<Box<SpanContext>>,
}

/// The parts that are the same for all inserts of one statement.
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
    /// Says whether the rows come as text, which is not written for the types that a table has at some time.
    pub(crate) fn is_text(&self) -> bool {
        const BEGINNINGS: [&str; 6] = ["JSON", "CSV", "TSV", "TabSeparated", "TSKV", "Values"];
        let begins = |beginning: &&str| {
            self.format.get(..beginning.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(beginning))
        };
        self.data_kind == DataKind::Parsed && BEGINNINGS.iter().any(begins)
    }
}

/// The form in which the rows came, as the log calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataKind {
    /// Text or bytes in a format.
    Parsed,
    /// Blocks of the native protocol.
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

/// The reason why an insert was not taken. Nothing of it is left, unless the reason says that it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushError {
    /// The buffers are full; it is worth trying again soon.
    Overloaded {
        max_bytes: u64,
        whose: &'static str,
    },
    ShuttingDown,
    /// Inserts that came before are still to be stored, and this one would have had to wait for them longer
    /// than its sender would. They are of its table, or have its deduplication keys.
    Behind,
    /// The journal has no room; it is worth trying again soon.
    JournalFull {
        max_bytes: u64,
        whose: &'static str,
    },
    /// The insert could not be written to the journal.
    NotJournaled {
        cause: String,
        /// The insert is certainly not in the journal. If false, and the gateway ends before the disk works
        /// again, the next start may find the insert there and store it.
        is_certain: bool,
    },
    /// The table's inserts have become dead letters, and there is no room for more of these.
    DeadLettersFull {
        max_bytes: u64,
    },
    /// The insert failed before it could be acknowledged. Mostly its batch was on its way to the sink before
    /// the insert could be written to the journal. The error says whether rows may be stored.
    Failed(InsertError),
}

/// The reason why an insert that was taken is not stored, or may not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertError {
    /// The sink's system refused the insert, and has stored nothing of it.
    Exception(Exception),
    /// The sink's system ended with an error, and may have stored a part of the insert.
    Failed(Exception),
    /// The insert may or may not be stored. Mostly the batch was sent, the answer was lost, and the table
    /// could not recognise a repeat.
    OutcomeUnknown(String),
    /// The insert is not stored. Mostly the sink could not be reached while the insert waited.
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
    /// Returns the kind of the error, without what an exception's text may tell of statements and values.
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

/// Waits for the outcome that a member's sender is told.
pub(crate) async fn outcome_of(receiver: &mut oneshot::Receiver<Outcome>) -> Outcome {
    // The flight answers each member before it is dropped. If it could not, the gateway itself has failed or ends.
    receiver.await.unwrap_or_else(|_| Err(InsertError::unanswered()))
}

/// An insert's place in a batch. Its holder may wait for the outcome or walk away: the insert stays.
pub struct Ticket {
    pub(crate) outcome: oneshot::Receiver<Outcome>,
    pub(crate) table: Weak<Table>,
    pub(crate) member: u64,
    /// The insert's record in the journal, if it has one.
    pub(crate) journal: Option<(Arc<Journaling>, Journaled)>,
    pub(crate) gave_up: Arc<Signal>,
}

/// The result of a withdrawal, for a sender that does not want to wait any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawal {
    /// The insert was taken out: nothing of it is or will be stored. The last error is there if attempts have
    /// failed.
    Withdrawn {
        last_error: Option<InsertError>,
    },
    /// The insert is on its way to the sink, or was: it may still be stored.
    InFlight,
    Done(Outcome),
}

impl Ticket {
    /// Waits for the outcome. The future may be dropped, and the method be called again.
    ///
    /// # Errors
    /// Fails where the insert is not stored, or may not be, or the gatherer has ended before that was known.
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
