//! The questions to a policy and its answers.

use crate::policy::Micros;

/// An insert, as far as a policy is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The id of the connection that the insert came on. Ids must not be used again while the gateway runs.
    pub writer: u64,
    /// True if the writer is blocked until this insert is stored. A writer that is not may send more at any
    /// moment.
    pub waits: bool,
    /// Time from the writer's last answer, by any gateway, to this insert, for a writer whose inserts go to
    /// several gateways by their keys. `None` if all its inserts come here; the writer is then known by its
    /// id.
    pub back_after: Option<Micros>,
    pub rows: u64,
    pub bytes: u64,
}

/// The state of a shape's lane: it is busy while a batch of the shape is being flushed, or sealed and waiting
/// for that. Batches of a shape go one after another, so behind one of them there is nothing to gain from
/// sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Free,
    Busy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The buffer is to be sealed now.
    Seal(SealReason),
    /// The policy is to be asked again at that time, unless an arrival or the end of a flush gives an earlier
    /// reason.
    HoldUntil(Micros),
    /// The policy is to be asked again when the flush in front has ended.
    HoldForFlush,
}

/// The reason why a buffer was sealed; the label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SealReason {
    /// The buffer reached `max_data_size_bytes`.
    Size,
    /// The buffer reached `max_query_number`.
    Count,
    /// No other insert is likely to come: the table was idle, or its next insert is not due for long.
    Idle,
    /// The stream of inserts has stopped.
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
    /// The source has put the batch together. Given by the caller, never by a policy.
    Source,
    /// The client sent `SYSTEM FLUSH ASYNC INSERT QUEUE`. Given by the caller, never by a policy.
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

    /// Says whether a buffer that is sealed for this reason may gather on until the backend has a slot for it.
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
