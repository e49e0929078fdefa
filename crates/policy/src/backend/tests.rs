use super::*;

fn ms(millis: u64) -> Micros {
    Micros::from_millis(millis)
}

/// Lanes that are due at once: the first ones go, as many as there are slots.
fn fill(policy: &mut BackendPolicy, now: Micros, lanes: u64, urgency: Urgency) -> Vec<FlushId> {
    let mut flights: Vec<_> = (0..lanes).filter_map(|lane| policy.due(now, LaneId(lane), urgency)).collect();
    while let Some((_, flight)) = policy.next(now) {
        flights.push(flight);
    }
    flights
}

/// What nobody waits for goes when it is alone, and behind that for as long as there is credit.
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
    // 10,000 lanes, each due again as soon as it has landed; a flush takes 5 ms.
    for lane in 0..10_000 {
        if let Some(flight) = policy.due(ms(0), LaneId(lane), Urgency::Unwaited) {
            in_air.push((ms(5), LaneId(lane), flight));
        }
    }
    for now in 0..20_000 {
        let landed: Vec<_> = in_air.extract_if(.., |(ends, ..)| *ends <= ms(now)).collect();
        for (_, lane, flight) in landed {
            policy.ended(ms(now), flight);
            assert_eq!(policy.due(ms(now), lane, Urgency::Unwaited), None);
        }
        while let Some((lane, flight)) = policy.next(ms(now)) {
            began += 1;
            in_air.push((ms(now + 5), lane, flight));
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
    assert_eq!(policy.next(ms(100)), None);
    let wake = policy.next_wake().expect("a lease ends");
    assert!(wake <= ms(250), "{wake:?}");
    assert_eq!(policy.next(wake).map(|(lane, _)| lane), Some(LaneId(8)));
    policy.ended(ms(300), flights[0]);
}

#[test]
fn an_overload_halves_the_slots_and_success_brings_them_back() {
    let mut policy = BackendPolicy::new();
    let most = fill(&mut policy, ms(0), 100, Urgency::Urgent).len();
    for _ in 0..20 {
        policy.overloaded();
    }
    let mut policy_at = |now: u64| {
        let flights = fill(&mut policy, ms(now), 100, Urgency::Urgent);
        flights.iter().for_each(|flight| policy.ended(ms(now + 1), *flight));
        flights.len()
    };
    // All leases of the first ones are over by then.
    assert_eq!(policy_at(10_000), 1, "one goes on");
    assert_eq!((1..100).map(|step| policy_at(10_000 + step * 10)).max(), Some(most));
}

#[test]
fn scarce_memory_needs_no_credit() {
    let mut policy = BackendPolicy::new();
    fill(&mut policy, ms(0), 10_000, Urgency::Unwaited);
    while policy.next(ms(250)).is_some() {}
    policy.credit_us = -1e9;
    assert_eq!(policy.next(ms(600)), None);
    policy.set_memory_is_scarce(true);
    assert!(policy.next(ms(600)).is_some());
}
