//! The assignment of partitions, which the leader of a group decides for all its members. These are pure functions.

mod range;
mod sticky;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::group::subscription::Subscription;
use crate::topic_partition::TopicPartition;

/// The rule by which a group's leader assigns partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignor {
    /// Members keep their partitions as far as that is fair, and go on reading them while others get theirs.
    CooperativeSticky,
    /// Each topic's partitions are cut into ranges of consecutive numbers. Every member gives up everything
    /// first. Other clients use this rule unless they are told otherwise.
    Range,
}

impl Assignor {
    /// Returns the name of the rule in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::CooperativeSticky => "cooperative-sticky",
            Self::Range => "range",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::CooperativeSticky, Self::Range].into_iter().find(|assignor| assignor.name() == name)
    }

    /// Says whether members keep their partitions while the group is rebalanced.
    pub(crate) fn is_cooperative(self) -> bool {
        self == Self::CooperativeSticky
    }

    /// Returns the partitions of each member, by its id. With the cooperative rule, a partition that moves is
    /// given to nobody until its former owner has given it up, and the group is rebalanced once more.
    pub fn assign(self, members: &[Member], partitions: &PartitionCounts) -> BTreeMap<String, Vec<TopicPartition>> {
        match self {
            Self::CooperativeSticky => sticky::assign(members, partitions),
            Self::Range => range::assign(members, partitions),
        }
    }
}

/// Number of partitions of each topic that exists.
pub type PartitionCounts = BTreeMap<Arc<str>, usize>;

#[derive(Debug, Clone)]
pub struct Member {
    pub id: String,
    pub instance_id: Option<String>,
    pub subscription: Subscription,
}
