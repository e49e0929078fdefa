use super::credit::UNWAITED_SHARE;
use super::slots::SLOTS_PER_CPU;
use super::*;

fn ms(millis: u64) -> Micros {
    Micros::from_millis(millis)
}

/// Makes lanes due at once: the first ones begin, as many as there are slots.
fn fill(policy: &mut BackendPolicy, now: Micros, lanes: u64, urgency: Urgency) -> Vec<FlushId> {
    let mut flights: Vec<_> = (0..lanes).filter_map(|lane| policy.due(now, LaneId(lane), urgency)).collect();
    while let Some((_, flight)) = policy.next(now) {
        flights.push(flight);
    }
    flights
}

/// Runs one flush with nothing in its way, which takes this long.
fn one_alone(policy: &mut BackendPolicy, takes: Micros) {
    let flight = policy.due(ms(0), LaneId(0), Urgency::Urgent).expect("nobody else is there");
    policy.ended(takes, flight);
}

/// A batch that no client waits for goes when its lane is alone, and otherwise for as long as there is credit.
#[test]
fn an_only_table_goes_at_sight_for_ever() {
    let mut policy = BackendPolicy::new();
    for step in 0..10_000 {
        // It is in the air all the time, which takes more than its share.
        let flight = policy.due(ms(step * 10), LaneId(1), Urgency::Unwaited).expect("nobody else is there");
        policy.ended(ms(step * 10 + 10), flight);
    }
}

#[test]
fn as_many_fly_as_there_are_slots_and_the_next_when_one_lands() {
    let mut policy = BackendPolicy::new();
    let flights = fill(&mut policy, ms(0), 100, Urgency::Urgent);
    assert_eq!(flights.len(), 2 * SLOTS_PER_CPU as usize);
    assert_eq!(policy.waiting(), 92);
    policy.ended(ms(1), flights[3]);
    assert_eq!(policy.next(ms(1)).map(|(lane, _)| lane), Some(LaneId(8)), "the first that waits");
    assert_eq!(policy.next(ms(1)), None);
}

#[test]
fn those_who_wait_go_before_those_who_do_not_unless_these_are_overdue() {
    let mut policy = BackendPolicy::new();
    policy.set_longest_hold(ms(1_000));
    let flights = fill(&mut policy, ms(0), 8, Urgency::Urgent);
    assert_eq!(policy.due(ms(10), LaneId(20), Urgency::Unwaited), None);
    assert_eq!(policy.due(ms(20), LaneId(21), Urgency::Urgent), None);
    policy.ended(ms(30), flights[0]);
    assert_eq!(policy.next(ms(30)).map(|(lane, _)| lane), Some(LaneId(21)));
    assert_eq!(policy.due(ms(40), LaneId(22), Urgency::Urgent), None);
    policy.ended(ms(1_010), flights[1]);
    assert_eq!(policy.next(ms(1_010)).map(|(lane, _)| lane), Some(LaneId(20)), "overdue");
}

#[test]
fn a_lane_that_somebody_comes_to_wait_for_keeps_its_place() {
    let mut policy = BackendPolicy::new();
    let flights = fill(&mut policy, ms(0), 8, Urgency::Urgent);
    policy.due(ms(10), LaneId(20), Urgency::Unwaited);
    policy.due(ms(20), LaneId(21), Urgency::Urgent);
    policy.raise(LaneId(20));
    policy.ended(ms(30), flights[0]);
    assert_eq!(policy.next(ms(30)).map(|(lane, _)| lane), Some(LaneId(20)));
}

#[test]
fn what_nobody_waits_for_takes_its_share_of_the_time_and_no_more() {
    let mut policy = BackendPolicy::new();
    let (mut began, mut in_air) = (0, Vec::new());
    // 10,000 lanes, each due again as soon as it has ended; a flush takes 5 ms of one of two CPUs.
    let takes = |in_air: usize| (5 * in_air as u64).div_ceil(2).max(5);
    for lane in 0..10_000 {
        if let Some(flight) = policy.due(ms(0), LaneId(lane), Urgency::Unwaited) {
            in_air.push((ms(takes(in_air.len() + 1)), LaneId(lane), flight));
        }
    }
    for now in 0..20_000 {
        let ended: Vec<_> = in_air.extract_if(.., |(ends, ..)| *ends <= ms(now)).collect();
        for (_, lane, flight) in ended {
            policy.ended(ms(now), flight);
            assert_eq!(policy.due(ms(now), lane, Urgency::Unwaited), None);
        }
        while let Some((lane, flight)) = policy.next(ms(now)) {
            began += 1;
            in_air.push((ms(now + takes(in_air.len() + 1)), lane, flight));
        }
    }
    let share = f64::from(began) * 5.0 / 20_000.0;
    let wanted = UNWAITED_SHARE * 2.0;
    // And once what was saved before.
    assert!(share > wanted * 0.95 && share < wanted * 1.05 + 1.0 / 20.0, "{share}");
}

#[test]
fn a_wake_comes_when_there_is_credit_again() {
    let mut policy = BackendPolicy::new();
    fill(&mut policy, ms(0), 10_000, Urgency::Unwaited);
    let (mut now, mut began) = (ms(300), 0);
    for _ in 0..1_000 {
        while let Some((_, flight)) = policy.next(now) {
            now = now + ms(5);
            policy.ended(now, flight);
            began += 1;
        }
        let wake = policy.next_wake().expect("lanes wait");
        assert!(wake > now, "there is nothing to wake for yet");
        now = wake;
    }
    // All but a few: those at which the first leases ended.
    assert!(began >= 990, "each wake was worth it: {began}");
}

#[test]
fn a_flush_that_hangs_gives_its_slot_back() {
    let mut policy = BackendPolicy::new();
    let flights = fill(&mut policy, ms(0), 9, Urgency::Urgent);
    assert_eq!(policy.next(ms(99)), None);
    let wake = policy.next_wake().expect("a lease ends");
    assert!(wake <= ms(100), "{wake:?}");
    assert_eq!(policy.next(wake).map(|(lane, _)| lane), Some(LaneId(8)));
    policy.ended(ms(300), flights[0]);
}

#[test]
fn an_overload_halves_the_slots_and_success_brings_them_back() {
    let mut policy = BackendPolicy::new();
    one_alone(&mut policy, ms(1));
    let flights = fill(&mut policy, ms(1), 100, Urgency::Urgent);
    let most = flights.len();
    flights.iter().for_each(|flight| policy.ended(ms(9), *flight));
    for _ in 0..20 {
        policy.overloaded();
    }
    let mut policy_at = |now: u64| {
        let flights = fill(&mut policy, ms(now), 100, Urgency::Urgent);
        // They have one CPU, and keep it busy.
        flights.iter().for_each(|flight| policy.ended(ms(now + flights.len() as u64), *flight));
        flights.len()
    };
    assert_eq!(policy_at(10_000), 1, "one goes on");
    assert_eq!((1..100).map(|step| policy_at(10_000 + step * 10)).max(), Some(most));
}

/// Runs rounds of flushes, as many at once as there are slots, each of which takes the time that `takes`
/// gives for that number. Returns the number of flushes in each round.
fn rounds(policy: &mut BackendPolicy, rounds: u64, takes: impl Fn(u64) -> Micros) -> Vec<u64> {
    let mut flown = Vec::new();
    for _ in 0..rounds {
        let flights = fill(policy, policy.now, 1_000, Urgency::Urgent);
        let count = flights.len() as u64;
        let ends = policy.now + takes(count);
        flights.into_iter().for_each(|flight| policy.ended(ends, flight));
        flown.push(count);
    }
    flown
}

#[test]
fn slots_grow_as_long_as_flushes_take_no_longer_for_it() {
    let mut policy = BackendPolicy::new();
    let flown = rounds(&mut policy, 1_000, |_| ms(40));
    assert_eq!(flown[0], 8);
    assert_eq!(flown[999], 128);
    assert!(flown.is_sorted(), "{flown:?}");
}

#[test]
fn slots_stop_growing_where_flushes_get_in_each_others_way() {
    let mut policy = BackendPolicy::new();
    // Room for 32.
    let flown = rounds(&mut policy, 1_000, |count| ms(40).scale((count as f64 / 32.0).max(1.0)));
    assert!(flown[200..].iter().all(|count| (56..=80).contains(count)), "twice as many take twice as long: {flown:?}");
}

#[test]
fn slots_do_not_grow_where_flushes_keep_the_cpus_busy() {
    let mut policy = BackendPolicy::new();
    one_alone(&mut policy, ms(3));
    assert_eq!(rounds(&mut policy, 1_000, |count| ms(3 * count / 2)).last(), Some(&8));
}

#[test]
fn slots_shrink_to_those_of_the_cpus_when_flushes_take_longer() {
    let mut policy = BackendPolicy::new();
    rounds(&mut policy, 1_000, |_| ms(40));
    let flown = rounds(&mut policy, 1_000, |_| ms(120));
    assert_eq!((flown[0], flown[999]), (128, 8));
    assert!(flown.is_sorted_by(|one, next| one >= next), "{flown:?}");
}

#[test]
fn an_overload_halves_the_slots_also_where_they_have_grown() {
    let mut policy = BackendPolicy::new();
    rounds(&mut policy, 1_000, |_| ms(40));
    policy.overloaded();
    assert_eq!(rounds(&mut policy, 1, |_| ms(40)), [64]);
}

#[test]
fn a_lane_that_was_held_up_takes_no_slot_until_it_comes_in_time() {
    let mut policy = BackendPolicy::new();
    let late = policy.due(ms(0), LaneId(1_000), Urgency::Urgent).expect("nobody else is there");
    policy.ended(ms(5_000), late);
    let again = policy.due(ms(5_000), LaneId(1_000), Urgency::Urgent).expect("nobody else is there");
    let others = fill(&mut policy, ms(5_000), 100, Urgency::Urgent);
    assert_eq!(others.len(), 8);
    policy.ended(ms(5_001), again);
    others.into_iter().for_each(|flight| policy.ended(ms(5_001), flight));
    while let Some((_, flight)) = policy.next(ms(5_001)) {
        policy.ended(ms(5_001), flight);
    }
    policy.due(ms(5_002), LaneId(1_000), Urgency::Urgent).expect("nobody else is there");
    assert_eq!(fill(&mut policy, ms(5_002), 100, Urgency::Urgent).len(), 7);
}

#[test]
fn what_is_overdue_has_every_second_turn() {
    let mut policy = BackendPolicy::new();
    policy.set_longest_hold(ms(1_000));
    let first = fill(&mut policy, ms(0), 8, Urgency::Urgent);
    for lane in 0..4 {
        policy.due(ms(0), LaneId(20 + lane), Urgency::Unwaited);
        policy.due(ms(0), LaneId(30 + lane), Urgency::Urgent);
    }
    first.into_iter().for_each(|flight| policy.ended(ms(2_000), flight));
    let turns: Vec<_> = std::iter::from_fn(|| policy.next(ms(2_000))).map(|(lane, _)| lane.0).collect();
    assert_eq!(turns, [20, 30, 21, 31, 22, 32, 23, 33]);
}

#[test]
fn debt_has_a_limit() {
    let mut policy = BackendPolicy::new();
    policy.credit.take(1e9);
    policy.due(ms(0), LaneId(0), Urgency::Urgent).expect("it needs no credit");
    assert_eq!(policy.due(ms(0), LaneId(1), Urgency::Unwaited), None);
    let wake = policy.next_wake().expect("it waits for credit");
    assert!(wake <= ms(2_001), "{wake:?}");
}

#[test]
fn flushes_that_keep_no_cpu_busy_cost_less_credit() {
    let mut policy = BackendPolicy::new();
    rounds(&mut policy, 1_000, |_| ms(40));
    assert!(policy.flights.usual_cost_us() < 40_000.0 / 10.0);
    let mut policy = BackendPolicy::new();
    one_alone(&mut policy, ms(3));
    rounds(&mut policy, 1_000, |count| ms(3 * count / 2));
    let cost_us = policy.flights.usual_cost_us();
    assert!(
        cost_us > 11_900.0 && cost_us < 12_100.0,
        "each is slowed down by others, and all of it is a CPU's: {cost_us}"
    );
}

#[test]
fn scarce_memory_needs_no_credit() {
    let mut policy = BackendPolicy::new();
    fill(&mut policy, ms(0), 10_000, Urgency::Unwaited);
    while policy.next(ms(250)).is_some() {}
    policy.credit.take(1e9);
    assert_eq!(policy.next(ms(600)), None);
    policy.set_memory_is_scarce(true);
    assert!(policy.next(ms(600)).is_some());
}
