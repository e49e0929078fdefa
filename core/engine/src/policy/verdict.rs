//! What a policy is asked and what it answers.

use crate::policy::Micros;

/// One insert, as far as a policy is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The connection it came on. Ids must not be used again while the gateway runs.
    pub writer: u64,
    /// Whether the writer is blocked until this insert is stored. One that is not may come again at any moment.
    pub waits: bool,
    /// Of a writer whose inserts go to several gateways, by their keys: how long after its last answer, wherever that came
    /// from, it has sent this one. `None`: its inserts come here, and it is known by its name.
    pub back_after: Option<Micros>,
    pub rows: u64,
    pub bytes: u64,
}

/// Whether a batch of the same shape is being flushed, or sealed and waiting for that. Batches of a shape go one after
/// another, so behind one of them there is nothing to gain from sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Free,
    Busy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Seal this buffer now.
    Seal(SealReason),
    /// Ask again at that time, unless an arrival or a flush end gives an earlier reason to ask.
    HoldUntil(Micros),
    /// Ask again when the flush in front has ended.
    HoldForFlush,
}

/// Why a buffer was sealed; the label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SealReason {
    /// `max_data_size_bytes` reached.
    Size,
    /// `max_query_number` reached.
    Count,
    /// Nobody else is likely to come: the table was idle, or its next insert is not due for long.
    Idle,
    /// Inserts were coming and have stopped.
    Quiet,
    /// Far more inserts came than the hold was expected to bring.
    Plenty,
    /// The hold is over.
    Deadline,
    /// Every writer that could send an insert has one in the buffer.
    EveryWriterIsHere,
    /// The insert was not meant to be gathered: it goes without waiting for others. Given by the caller, never by a
    /// policy.
    AtOnce,
    /// Its source has put the batch together. Given by the caller, never by a policy.
    Source,
    /// `SYSTEM FLUSH ASYNC INSERT QUEUE`. Given by the caller, never by a policy.
    Command,
    /// The gateway stops. Given by the caller, never by a policy.
    Shutdown,
}

impl SealReason {
    pub const ALL: [SealReason; 11] = [
        SealReason::Size,
        SealReason::Count,
        SealReason::Idle,
        SealReason::Quiet,
        SealReason::Plenty,
        SealReason::Deadline,
        SealReason::EveryWriterIsHere,
        SealReason::AtOnce,
        SealReason::Source,
        SealReason::Command,
        SealReason::Shutdown,
    ];

    /// Whether a buffer that is sealed for this reason may as well gather on until the backend has a slot for it.
    pub const fn may_wait(self) -> bool {
        match self {
            SealReason::Idle
            | SealReason::Quiet
            | SealReason::Plenty
            | SealReason::Deadline
            | SealReason::EveryWriterIsHere => true,
            // What is in it is fixed: by its bounds, or by whoever asked for it.
            SealReason::Size
            | SealReason::Count
            | SealReason::AtOnce
            | SealReason::Source
            | SealReason::Command
            | SealReason::Shutdown => false,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            SealReason::Size => "size",
            SealReason::Count => "count",
            SealReason::Idle => "idle",
            SealReason::Quiet => "quiet",
            SealReason::Plenty => "plenty",
            SealReason::Deadline => "deadline",
            SealReason::EveryWriterIsHere => "every_writer_is_here",
            SealReason::AtOnce => "at_once",
            SealReason::Source => "source",
            SealReason::Command => "command",
            SealReason::Shutdown => "shutdown",
        }
    }
}
