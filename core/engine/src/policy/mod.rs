//! The policies that decide when a buffer is sealed, and so when to flush.
//!
//! They are pure: no I/O, no task, no clock. A [`TablePolicy`] is told of arrivals, of flushes that start and
//! end, of part counts and of the time, and answers with a [`Verdict`]. So the very code that runs in the
//! gateway also runs in the simulation (`tests/engine/policy`), which compares it with ClickHouse's own
//! queue.

mod adaptive;
mod backend;
mod balanced;
mod buffer;
mod deadline;
mod limits;
mod micros;
mod stretch;
mod table;
mod verdict;

pub use backend::{BackendPolicy, FlushId, LaneId, Urgency, WORTH_A_PART};
pub use buffer::{BufferId, BufferPolicy};
pub use deadline::{DeadlineLimits, DeadlinePolicy};
pub use limits::{CountLimit, FlushLimits, LimitsError, PolicyKind};
pub use micros::Micros;
pub use stretch::Stretch;
pub use table::{FlushEnd, TablePolicy};
pub use verdict::{Arrival, Lane, SealReason, Verdict};
