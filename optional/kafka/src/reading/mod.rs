//! Reading without being a member of a group: a range of offsets, the committed offsets of a group, and the
//! newest records of a topic.

mod committed;
mod range;
mod sample;

pub use committed::CommittedOffset;
pub use range::{RangeError, RangePart, RangeReader, ReadOptions};
pub use sample::{Sample, SampledPartition, SampledRecord};
