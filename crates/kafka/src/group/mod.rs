//! Being a member of a consumer group.

mod assignor;

pub use assignor::Assignor;
