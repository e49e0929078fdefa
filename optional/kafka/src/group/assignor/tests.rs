//! Tests of fairness and stickiness on random groups.

use super::*;

const SEED: u64 = 7;

fn member(id: usize, topics: &[&str]) -> Member {
    let topics = topics.iter().map(|topic| Arc::from(*topic)).collect();
    let subscription = Subscription { topics, owned: Vec::new(), generation: -1 };
    Member { id: format!("m{id}"), instance_id: None, subscription }
}

fn counts(topics: &[(&str, usize)]) -> PartitionCounts {
    topics.iter().map(|(name, count)| (Arc::from(*name), *count)).collect()
}

/// Makes every member follow the assignment: it gives up missing partitions and owns the rest in the new
/// generation. Returns how many partitions were given up.
fn obey(members: &mut [Member], assigned: &BTreeMap<String, Vec<TopicPartition>>, generation: i32) -> usize {
    let mut let_go = 0;
    for member in members {
        let given = &assigned[&member.id];
        let_go += member.subscription.owned.iter().filter(|owned| !given.contains(owned)).count();
        member.subscription.owned = given.clone();
        member.subscription.generation = generation;
    }
    let_go
}

/// Repeats the assignment until no partition is withheld any more, and returns how many partitions had to be
/// given up.
fn settle(members: &mut [Member], counts: &PartitionCounts, generation: &mut i32) -> usize {
    let mut let_go = 0;
    for round in 0.. {
        assert!(round < 4, "it doesn't come to rest");
        *generation += 1;
        let assigned = Assignor::CooperativeSticky.assign(members, counts);
        no_partition_twice(members, &assigned);
        let gone = obey(members, &assigned, *generation);
        let_go += gone;
        if gone == 0 {
            break;
        }
    }
    let_go
}

fn no_partition_twice(members: &[Member], assigned: &BTreeMap<String, Vec<TopicPartition>>) {
    let mut seen: BTreeMap<&TopicPartition, &String> = BTreeMap::new();
    for (id, partition) in assigned.iter().flat_map(|(id, given)| given.iter().map(move |each| (id, each))) {
        assert_eq!(seen.insert(partition, id), None, "{partition} is given twice");
        let claims = members.iter().filter(|member| member.subscription.owned.contains(partition));
        assert!(claims.clone().count() == 0 || claims.clone().any(|member| member.id == *id), "{partition} moves");
        let given_to = members.iter().find(|member| member.id == *id).unwrap();
        assert!(given_to.subscription.topics.contains(&partition.topic));
    }
}

fn sum_of_squares(members: &[Member]) -> usize {
    members.iter().map(|member| member.subscription.owned.len().pow(2)).sum()
}

/// Returns the smallest sum of squares over all ways to give every partition to a subscriber.
fn fairest(members: &[Member], counts: &PartitionCounts) -> usize {
    let topics = counts.iter().flat_map(|(topic, count)| std::iter::repeat_n(topic, *count));
    let mut reachable: std::collections::BTreeSet<Vec<usize>> = [vec![0; members.len()]].into();
    for topic in topics {
        let subscribers: Vec<usize> =
            (0..members.len()).filter(|index| members[*index].subscription.topics.contains(topic)).collect();
        if subscribers.is_empty() {
            continue;
        }
        let step = |loads: &Vec<usize>, member: usize| {
            let mut loads = loads.clone();
            loads[member] += 1;
            loads
        };
        reachable = reachable.iter().flat_map(|loads| subscribers.iter().map(|member| step(loads, *member))).collect();
    }
    reachable.iter().map(|loads| loads.iter().map(|load| load.pow(2)).sum()).min().unwrap()
}

#[test]
fn random_groups_are_shared_out_fairly_and_come_to_rest() {
    let mut random = fastrand::Rng::with_seed(SEED);
    let names = ["a", "b", "c"];
    for _ in 0..600 {
        let mut topics = counts(&[("a", random.usize(0..5)), ("b", random.usize(0..4)), ("c", random.usize(0..3))]);
        let mut members: Vec<Member> = Vec::new();
        let mut generation = 0;
        for step in 0..6 {
            match random.usize(0..4) {
                0 | 1 if members.len() < 4 => {
                    let wanted: Vec<&str> = names.into_iter().filter(|_| random.u8(0..3) > 0).collect();
                    members.push(member(step, &wanted));
                }
                2 if !members.is_empty() => drop(members.swap_remove(random.usize(..members.len()))),
                _ => *topics.get_mut("a").unwrap() += 1,
            }
            settle(&mut members, &topics, &mut generation);
            if !members.is_empty() {
                assert_eq!(sum_of_squares(&members), fairest(&members, &topics), "{members:?} of {topics:?}");
            }
        }
    }
}

#[test]
fn no_more_moves_than_has_to() {
    let mut random = fastrand::Rng::with_seed(SEED);
    for _ in 0..300 {
        let topics = counts(&[("a", random.usize(1..40)), ("b", random.usize(0..20))]);
        let partitions: usize = topics.values().sum();
        let mut members: Vec<Member> = (0..random.usize(1..7)).map(|id| member(id, &["a", "b"])).collect();
        let mut generation = 0;
        settle(&mut members, &topics, &mut generation);
        members.push(member(100, &["a", "b"]));
        // The new one gets its share and not one more.
        let let_go = settle(&mut members, &topics, &mut generation);
        assert_eq!(let_go, partitions / members.len(), "{partitions} of {}", members.len());
        members.swap_remove(random.usize(..members.len()));
        assert_eq!(settle(&mut members, &topics, &mut generation), 0, "who stays keeps everything");
    }
}

#[test]
fn of_two_who_claim_a_partition_the_later_generation_is_believed() {
    let topics = counts(&[("a", 1)]);
    let mut members = vec![member(0, &["a"]), member(1, &["a"])];
    for (member, generation) in members.iter_mut().zip([3, 4]) {
        member.subscription.owned = vec![TopicPartition::new("a", 0)];
        member.subscription.generation = generation;
    }
    let given = |members: &[Member], id: &str| Assignor::CooperativeSticky.assign(members, &topics)[id].len();
    assert_eq!((given(&members, "m0"), given(&members, "m1")), (0, 1));
    members[0].subscription.generation = 4;
    assert_eq!((given(&members, "m0"), given(&members, "m1")), (0, 0));
    // What is claimed of a topic that isn't there, or by somebody who doesn't want it, is no claim.
    members[0].subscription.owned = vec![TopicPartition::new("gone", 0), TopicPartition::new("a", 9)];
    members[1].subscription.topics.clear();
    assert_eq!((given(&members, "m0"), given(&members, "m1")), (0, 0));
    members[1].subscription.owned.clear();
    assert_eq!((given(&members, "m0"), given(&members, "m1")), (1, 0));
}

#[test]
fn ranges_are_rows() {
    let mut members = vec![member(2, &["a", "b"]), member(1, &["a"]), member(3, &["b", "a"])];
    let assigned = Assignor::Range.assign(&members, &counts(&[("a", 5), ("b", 1), ("c", 3)]));
    let given = |id: &str| assigned[id].iter().map(|each| each.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!((given("m1"), given("m2"), given("m3")), ("a:0 a:1".into(), "a:2 a:3 b:0".into(), "a:4".into()));
    members[2].instance_id = Some("first".into());
    let assigned = Assignor::Range.assign(&members, &counts(&[("a", 5)]));
    assert_eq!(assigned["m3"].len(), 2);
    assert_eq!(assigned["m2"].len(), 1);
}

#[test]
fn many_partitions_are_quick() {
    let topics: PartitionCounts = (0..300).map(|topic| (Arc::from(format!("t{topic}")), 20)).collect();
    let names: Vec<String> = topics.keys().map(|topic| topic.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut members: Vec<Member> = (0..40).map(|id| member(id, &names)).collect();
    let mut generation = 0;
    settle(&mut members, &topics, &mut generation);
    members.extend((100..110).map(|id| member(id, &names)));
    assert_eq!(settle(&mut members, &topics, &mut generation), 1_200);
}
