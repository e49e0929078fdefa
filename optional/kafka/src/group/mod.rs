//! Membership of a consumer group, by the protocol that all brokers know: JoinGroup, SyncGroup, Heartbeat.
//!
//! Members join. When all have, the broker chooses one of them as the leader, tells it of all the others, and
//! distributes its decision. Every such round is a *generation*. This module does no I/O: [`Membership`] gets
//! the answers and the time, and returns what to do next; the [`Assignor`]s are functions. So all of it is
//! tested against a model of the broker, with faults.

mod assignor;
mod membership;
mod subscription;

pub use assignor::{Assignor, Member, PartitionCounts};
pub(crate) use membership::{Action, Call, Input, Membership, MembershipOptions, Task};
#[cfg(feature = "fuzzing")]
pub use subscription::{decode_assignment, encode_assignment, Subscription};
