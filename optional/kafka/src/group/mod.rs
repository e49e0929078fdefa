//! Being a member of a consumer group, by the protocol that all brokers know: JoinGroup, SyncGroup, Heartbeat.
//!
//! Members join; when all have, the broker chooses one of them as the leader, tells it of all the others, and hands around what it decided.
//! Every such round is a *generation*. Nothing here does anything by itself: [`Membership`] is told what was answered and what time it is,
//! and answers what to do next; the [`Assignor`]s are functions. So all of it is tested against a model of the broker, with faults.

mod assignor;
mod membership;
mod subscription;

pub use assignor::{Assignor, Member, PartitionCounts};
pub(crate) use membership::{Action, Call, Input, Membership, MembershipOptions, Task};
#[cfg(feature = "fuzzing")]
pub use subscription::{decode_assignment, encode_assignment, Subscription};
