//! Who gets which partitions: what the leader of a group decides for all its members. Pure.

mod range;
mod sticky;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::group::subscription::Subscription;
use crate::topic_partition::TopicPartition;

/// How a group's leader shares partitions out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignor {
    /// Members keep what they have as far as that is fair, and go on reading it while others get theirs.
    CooperativeSticky,
    /// Each topic's partitions in rows; everybody gives everything up first. What others use unless they are told.
    Range,
}

impl Assignor {
    /// As the protocol calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CooperativeSticky => "cooperative-sticky",
            Self::Range => "range",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::CooperativeSticky, Self::Range].into_iter().find(|assignor| assignor.name() == name)
    }

    /// Whether members keep their partitions while the group is rebalanced.
    pub(crate) fn is_cooperative(self) -> bool {
        self == Self::CooperativeSticky
    }

    /// What each member gets, by its id. A partition that changes hands is given to nobody until its former owner has let it go, and
    /// the group is rebalanced once more.
    pub fn assign(self, members: &[Member], partitions: &PartitionCounts) -> BTreeMap<String, Vec<TopicPartition>> {
        match self {
            Self::CooperativeSticky => sticky::assign(members, partitions),
            Self::Range => range::assign(members, partitions),
        }
    }
}

/// Of the topics that there are.
pub type PartitionCounts = BTreeMap<Arc<str>, usize>;

#[derive(Debug, Clone)]
pub struct Member {
    pub id: String,
    pub instance_id: Option<String>,
    pub subscription: Subscription,
}
