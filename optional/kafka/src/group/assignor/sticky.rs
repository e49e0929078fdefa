//! The rule by which every member keeps its partitions, as far as that is fair.
//!
//! An assignment is fair if it can't be made fairer by passing partitions along a way. Such a way goes from a
//! member to another that subscribes to the same topic, and so on, and begins at a member that has at least
//! two more than the one at the end. With equal subscriptions that means that no member has two more than
//! another. Partitions move along the shortest such way, so that few of them move.
//!
//! The protocol is cooperative: members read on while this is decided. So a partition that moves from one
//! member to another is given to nobody now. Its owner sees that it is missing, gives it up and joins again,
//! and then the partition is free.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::group::assignor::{Member, PartitionCounts};
use crate::topic_partition::TopicPartition;

pub(super) fn assign(members: &[Member], partitions: &PartitionCounts) -> BTreeMap<String, Vec<TopicPartition>> {
    let mut plan = Plan::new(members, partitions);
    plan.share_out();
    plan.balance();
    plan.withhold();
    plan.into_assignment(members)
}

/// An assignment in the making. Members, topics and partitions are numbered.
struct Plan {
    topics: Vec<Topic>,
    partitions: Vec<Partition>,
    /// Partitions of each member, by topic.
    held: Vec<BTreeMap<usize, BTreeSet<usize>>>,
    counts: Vec<usize>,
}

struct Topic {
    name: Arc<str>,
    subscribers: Vec<usize>,
}

struct Partition {
    topic: usize,
    number: i32,
    /// Members that say that they own the partition.
    claimed_by: Vec<usize>,
    /// The one of these members whose claim is accepted.
    former: Option<usize>,
    owner: Option<usize>,
}

impl Plan {
    fn new(members: &[Member], counts: &PartitionCounts) -> Self {
        let mut topics: Vec<Topic> =
            counts.keys().map(|name| Topic { name: name.clone(), subscribers: Vec::new() }).collect();
        let numbers: HashMap<&str, usize> =
            counts.keys().enumerate().map(|(number, name)| (name.as_ref(), number)).collect();
        for (member, Member { subscription, .. }) in members.iter().enumerate() {
            let wanted: BTreeSet<usize> =
                subscription.topics.iter().filter_map(|topic| numbers.get(topic.as_ref()).copied()).collect();
            wanted.into_iter().for_each(|topic| topics[topic].subscribers.push(member));
        }
        let mut partitions = Vec::new();
        let mut first_of = Vec::new();
        for (topic, count) in counts.values().enumerate() {
            first_of.push(partitions.len());
            let partition = |number| Partition { topic, number, claimed_by: Vec::new(), former: None, owner: None };
            partitions.extend((0..*count as i32).map(partition));
        }
        let mut plan =
            Self { topics, partitions, held: vec![BTreeMap::new(); members.len()], counts: vec![0; members.len()] };
        plan.believe(members, |owned| {
            let topic = *numbers.get(owned.topic.as_ref())?;
            let number = usize::try_from(owned.partition).ok().filter(|number| *number < counts[&owned.topic])?;
            Some(first_of[topic] + number)
        });
        plan
    }

    /// Accepts one claim to each partition: that of the latest generation, or none if several members claim
    /// it in that generation.
    fn believe(&mut self, members: &[Member], number_of: impl Fn(&TopicPartition) -> Option<usize>) {
        let mut latest: HashMap<usize, i32> = HashMap::new();
        for (member, Member { subscription, .. }) in members.iter().enumerate() {
            for number in subscription.owned.iter().filter_map(&number_of).collect::<BTreeSet<usize>>() {
                let partition = &mut self.partitions[number];
                partition.claimed_by.push(member);
                let known = latest.get(&number).copied();
                if known.is_none_or(|known| known < subscription.generation) {
                    latest.insert(number, subscription.generation);
                    partition.former = Some(member);
                } else if known == Some(subscription.generation) {
                    partition.former = None;
                }
            }
        }
    }

    /// Leaves owned partitions with their owners. The others go to the member that has the fewest, beginning
    /// with the topics that the fewest members subscribe to.
    fn share_out(&mut self) {
        let mut free = Vec::new();
        for number in 0..self.partitions.len() {
            let Partition { topic, former, .. } = self.partitions[number];
            match former.filter(|former| self.topics[topic].subscribers.contains(former)) {
                Some(former) => self.give(number, former),
                None => free.push(number),
            }
        }
        free.sort_by_key(|number| (self.topics[self.partitions[*number].topic].subscribers.len(), *number));
        for number in free {
            let topic = self.partitions[number].topic;
            let of_topic = |member: &usize| self.held[*member].get(&topic).map_or(0, BTreeSet::len);
            let subscribers = self.topics[topic].subscribers.iter().copied();
            let least = subscribers.min_by_key(|member| (self.counts[*member], of_topic(member), *member));
            if let Some(member) = least {
                self.give(number, member);
            }
        }
    }

    fn give(&mut self, number: usize, member: usize) {
        let topic = self.partitions[number].topic;
        if let Some(owner) = self.partitions[number].owner.replace(member) {
            self.counts[owner] -= 1;
            if let Some(held) = self.held[owner].get_mut(&topic) {
                held.remove(&number);
            }
        }
        self.counts[member] += 1;
        self.held[member].entry(topic).or_default().insert(number);
    }

    /// Moves partitions until the assignment is fair. Every round reduces the sum of the squares of the
    /// members' counts.
    fn balance(&mut self) {
        let mut members: Vec<usize> = (0..self.counts.len()).collect();
        loop {
            members.sort_by_key(|member| std::cmp::Reverse(self.counts[*member]));
            let least = members.last().map_or(0, |member| self.counts[*member]);
            let loaded = members.iter().copied().take_while(|member| self.counts[*member] >= least + 2);
            let Some(way) = loaded.into_iter().find_map(|member| self.way_from(member)) else { return };
            for (from, topic, to) in way {
                let number = self.movable(from, topic, to);
                self.give(number, to);
            }
        }
    }

    /// Finds the shortest way to pass partitions along, from this member to one that has at least two fewer.
    /// It is a list of steps (from, topic, to).
    fn way_from(&self, start: usize) -> Option<Vec<(usize, usize, usize)>> {
        let mut came_by: HashMap<usize, (usize, usize)> = HashMap::new();
        let mut topics_seen = BTreeSet::new();
        let mut next = VecDeque::from([start]);
        while let Some(from) = next.pop_front() {
            let mut topics: Vec<(&usize, &BTreeSet<usize>)> =
                self.held[from].iter().filter(|(_, held)| !held.is_empty()).collect();
            topics.sort_by_key(|(_, held)| std::cmp::Reverse(held.len()));
            for (topic, _) in topics {
                if !topics_seen.insert(*topic) {
                    continue;
                }
                let mut reached: Vec<usize> = self.topics[*topic].subscribers.clone();
                reached.sort_by_key(|member| self.counts[*member]);
                for to in reached {
                    if to == start || came_by.contains_key(&to) {
                        continue;
                    }
                    came_by.insert(to, (from, *topic));
                    if self.counts[to] + 2 <= self.counts[start] {
                        return Some(way_back(&came_by, start, to));
                    }
                    next.push_back(to);
                }
            }
        }
        None
    }

    /// Chooses the partition to move: best one that returns to its former owner, then one that has to move anyway.
    fn movable(&self, from: usize, topic: usize, to: usize) -> usize {
        let held = self.held[from].get(&topic).into_iter().flatten().copied();
        let rank = |number: &usize| match self.partitions[*number].former {
            Some(former) if former == to => 0,
            Some(former) if former == from => 2,
            _ => 1,
        };
        held.min_by_key(|number| (rank(number), std::cmp::Reverse(*number))).expect("a way leads over what is held")
    }

    /// Gives to nobody the partitions that get a new owner while another member still claims them.
    fn withhold(&mut self) {
        for partition in &mut self.partitions {
            let others = |owner: &usize| partition.claimed_by.iter().any(|member| member != owner);
            if partition.owner != partition.former && partition.owner.as_ref().is_some_and(others) {
                partition.owner = None;
            }
        }
    }

    fn into_assignment(self, members: &[Member]) -> BTreeMap<String, Vec<TopicPartition>> {
        let mut assigned: Vec<Vec<TopicPartition>> = vec![Vec::new(); members.len()];
        for partition in self.partitions {
            if let Some(owner) = partition.owner {
                let topic = self.topics[partition.topic].name.clone();
                assigned[owner].push(TopicPartition { topic, partition: partition.number });
            }
        }
        members.iter().map(|member| member.id.clone()).zip(assigned).collect()
    }
}

fn way_back(came_by: &HashMap<usize, (usize, usize)>, start: usize, end: usize) -> Vec<(usize, usize, usize)> {
    let mut way = Vec::new();
    let mut to = end;
    while to != start {
        let (from, topic) = came_by[&to];
        way.push((from, topic, to));
        to = from;
    }
    way.reverse();
    way
}
