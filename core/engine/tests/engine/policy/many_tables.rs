//! Tests with many tables on one backend: the policy above the tables' own, against tables that flush as if
//! each were alone.

use super::arrivals::{spread, Loop, Popularity};
use super::books::{Books, Stored};
use super::many::{self, alone, in_turn, Load, Sink, Spread};
use super::scenarios::{self, HeldUp, Scenario, SEED};
use windrow_engine::policy::WORTH_A_PART;

/// The share by which a figure may fall behind. Both sides have the same writers, but a writer continues when
/// it is answered, so every figure is a sample.
const SAMPLING_NOISE: f64 = 0.05;
/// The share of the backend that the policy promises to unwaited flushes.
const UNWAITED_SHARE: f64 = 0.25;
const LONGEST_HOLD_MS: f64 = 60_000.0;
/// The longest time that a table's own policy holds: the maximum, and ClickHouse's own lateness.
const OWN_HOLD_MS: f64 = 210.0;
/// The duration of a flush of one insert, with the CPU to itself.
const FLUSH_MS: f64 = 3.002;
const SLOTS: f64 = 8.0;

#[test]
fn a_table_alone_is_flushed_as_if_there_were_no_turns() {
    let of_many = many::all().into_iter();
    for scenario in scenarios::all().into_iter().chain(of_many).filter(|scenario| scenario.tables() == 1) {
        assert!(alone(&scenario) == in_turn(&scenario), "{} {:?}", scenario.name, scenario.rate);
    }
}

#[test]
fn where_there_is_no_room_nobody_who_waits_loses() {
    for load in [Load::Writers(200), Load::Waiting(2_000.0)] {
        for how in [Spread::Even, Spread::Zipf] {
            for tables in [1_000, 10_000] {
                let contrast = many::compare(&many::scenario(load, how, tables, Sink::Quick));
                let (before, after) = (contrast.alone, contrast.in_turn);
                let title = format!("{}, {tables} tables: {before:?}, {after:?}", contrast.name);
                assert!(before.cpu_share > 0.99, "there is room: {title}");
                assert!(after.inserts_per_s >= before.inserts_per_s * (1.0 - SAMPLING_NOISE), "{title}");
                assert!(after.inserts_per_part >= before.inserts_per_part * (1.0 - SAMPLING_NOISE), "{title}");
                assert!(after.waits.p99_ms <= before.waits.p99_ms * (1.0 + SAMPLING_NOISE), "{title}");
            }
        }
    }
}

#[test]
fn where_there_is_room_nobody_who_waits_loses() {
    for load in [Load::Waiting(200.0), Load::Writers(200)] {
        for how in [Spread::Even, Spread::Zipf] {
            for tables in [10, 100] {
                let contrast = many::compare(&many::scenario(load, how, tables, Sink::Quick));
                let (before, after) = (contrast.alone, contrast.in_turn);
                let title = format!("{}, {tables} tables: {before:?}, {after:?}", contrast.name);
                assert!(before.cpu_share < 0.7, "there is no room: {title}");
                assert!(after.inserts_per_s >= before.inserts_per_s * (1.0 - SAMPLING_NOISE), "{title}");
                assert!(after.waits.p99_ms <= before.waits.p99_ms * (1.0 + SAMPLING_NOISE), "{title}");
            }
        }
    }
}

#[test]
fn a_quiet_table_among_busy_ones_has_its_turn() {
    let busy = 199;
    let mut scenario = quick("a quiet table".into(), busy + 1, 30);
    scenario.loops = (1..=busy).map(|table| writer(table, 300, 0.0)).collect();
    scenario.loops.push(writer(0, 300, 300_000.0));
    let books = in_turn(&scenario);
    let quiet = books.waits(|insert| insert.table == 0);
    // Each busy table once, then the quiet one.
    let round_ms = (busy + 1) as f64 * FLUSH_MS / many::CPUS as f64;
    assert!(books.load().cpu_share > 0.99, "{:?}", books.load());
    assert!(quiet.max_ms <= round_ms * 1.1, "{quiet:?}, a round takes {round_ms} ms");
}

#[test]
fn those_who_wait_hardly_feel_a_flood_that_nobody_waits_for() {
    let waiting = 100;
    let mut scenario = quick("a flood".into(), 10_000, 60);
    scenario.loops = (0..waiting).map(|index| writer(index, 1_000, 500_000.0)).collect();
    let without = in_turn(&scenario).waits(waits);
    for rate in [2_000.0, 20_000.0] {
        scenario.open = spread(SEED, &scenario.popularity, rate, rate as usize * 60);
        scenario.open.iter_mut().for_each(|arrival| arrival.table += waiting);
        scenario.open_waits = false;
        let books = in_turn(&scenario);
        let with = books.waits(waits);
        assert!(with.p99_ms <= without.p99_ms * 1.5, "{rate}/s: {with:?}, without the flood {without:?}");
        assert!(books.load().cpu_share < 0.65, "{:?}", books.load());
        assert_all_are_found(&books);
    }
}

#[test]
fn what_nobody_waits_for_takes_its_share_and_is_found() {
    // Not so many tables that some of them have waited for longest.
    for (rate, tables) in [(2_000.0, 100), (2_000.0, 1_000), (200.0, 10_000)] {
        let scenario = many::scenario(Load::NotWaiting(rate), Spread::Even, tables, Sink::Quick);
        let books = in_turn(&scenario);
        let load = books.load();
        assert!(load.cpu_share <= UNWAITED_SHARE * 1.05, "{tables} tables: {load:?}");
        assert!(load.cpu_share >= UNWAITED_SHARE * 0.90, "nothing is left unused; {tables} tables: {load:?}");
        assert_eq!(books.inserts.len(), scenario.open.len());
        assert_all_are_found(&books);
    }
}

#[test]
fn what_is_worth_a_part_needs_no_share() {
    // Each table has as many in the time for which its own policy holds a batch.
    let scenario = many::scenario(Load::NotWaiting(20_000.0), Spread::Even, 2, Sink::Slow);
    let [before, after] = [alone(&scenario), in_turn(&scenario)].map(|books| books.load());
    assert!(after.inserts_per_part >= WORTH_A_PART as f64 * 0.9, "{after:?}");
    assert!(after.waits.p50_ms <= before.waits.p50_ms * 1.2, "{before:?}, {after:?}");
}

#[test]
fn what_nobody_waits_for_is_found_when_it_is_overdue() {
    for (rate, tables, sink) in
        [(200.0, 1_000, Sink::Slow), (200.0, 10_000, Sink::Slow), (20_000.0, 10_000, Sink::Quick)]
    {
        let books = in_turn(&many::scenario(Load::NotWaiting(rate), Spread::Even, tables, sink));
        assert_all_are_found(&books);
    }
}

#[test]
fn a_table_that_is_held_up_holds_up_no_other() {
    for rate in [200.0, 500.0, 2_000.0] {
        let mut scenario = many::scenario(Load::Waiting(rate), Spread::Even, 1_000, Sink::Quick);
        let others = |insert: &Stored| insert.table != 0;
        let without = in_turn(&scenario).waits(others);
        scenario.held_up = Some(HeldUp { tables: 0..1, delay_us: 10_000_000 });
        let books = in_turn(&scenario);
        let with = books.waits(others);
        assert!(books.waits(|insert| insert.table == 0).p50_ms > 5_000.0, "it is held up");
        assert!(with.p99_ms <= without.p99_ms * 1.1, "{rate}/s: {with:?}, without it {without:?}");
    }
}

#[test]
fn a_sink_that_waits_for_its_disk_is_used_as_far_as_it_goes() {
    for (load, tables) in [(Load::Waiting(200.0), 1_000), (Load::Waiting(2_000.0), 100), (Load::Writers(200), 1_000)] {
        let contrast = many::compare(&many::scenario(load, Spread::Even, tables, Sink::Slow));
        let (before, after) = (contrast.alone, contrast.in_turn);
        let title = format!("{}, {tables} tables: {before:?}, {after:?}", contrast.name);
        assert!(after.inserts_per_s >= before.inserts_per_s * (1.0 - SAMPLING_NOISE), "{title}");
        assert!(after.waits.p99_ms <= before.waits.p99_ms * (1.0 + SAMPLING_NOISE), "{title}");
    }
}

#[test]
fn many_tables_that_are_held_up_hold_up_no_other() {
    let second = 1_000_000;
    for (held_up, delay_us) in
        [(50, 10 * second), (100, 10 * second), (300, 10 * second), (300, second), (300, second * 3 / 20)]
    {
        let mut scenario = many::scenario(Load::Waiting(500.0), Spread::Even, 1_000, Sink::Quick);
        let others = |insert: &Stored| insert.table >= held_up;
        let without = in_turn(&scenario).waits(others);
        scenario.held_up = Some(HeldUp { tables: 0..held_up, delay_us });
        let with = in_turn(&scenario).waits(others);
        assert!(
            with.p99_ms <= without.p99_ms * 1.1,
            "{held_up} tables for {delay_us} us: {with:?}, without them {without:?}"
        );
    }
}

#[test]
fn what_was_overdue_is_not_paid_for_later() {
    let mut scenario = many::empty("later".into(), Popularity::even(1_000), Sink::Slow, 800);
    scenario.open_waits = false;
    let mut quiet = spread(SEED, &Popularity::even(3), 3.0, 600);
    quiet.iter_mut().for_each(|arrival| arrival.at_us += 400_000_000);
    scenario.measured_us = 400_000_000..600_000_000;
    scenario.open = quiet.clone();
    let without = in_turn(&scenario).waits(|_| true);
    // For five minutes more tables than the share is enough for, and then nothing for 100 s.
    scenario.open = spread(SEED, &scenario.popularity, 200.0, 200 * 300);
    scenario.open.append(&mut quiet);
    let after = in_turn(&scenario).waits(|_| true);
    assert!(after.p99_ms <= without.p99_ms * 1.1, "{after:?}, without {without:?}");
}

#[test]
fn those_who_wait_have_their_turn_among_many_that_are_overdue() {
    let tables = 20_000;
    let mut scenario = many::empty("overdue".into(), Popularity::even(tables), Sink::Slow, 180);
    scenario.open = spread(SEED, &scenario.popularity, 2_000.0, 2_000 * 180);
    scenario.open_waits = false;
    scenario.loops = (tables..tables + 10).map(|table| writer(table, 1_000, 500_000.0)).collect();
    scenario.loops.iter_mut().for_each(|writer| writer.starts_at_us += 80_000_000);
    scenario.measured_us = 80_000_000..180_000_000;
    let who_wait = in_turn(&scenario).waits(waits);
    assert!(who_wait.p99_ms <= 500.0, "{who_wait:?}");
}

#[test]
fn a_backend_that_stays_full_gets_no_more_slots_for_it() {
    let mut scenario = many::scenario(Load::Writers(200), Spread::Even, 1_000, Sink::Quick);
    let after_one_minute = in_turn(&scenario).load();
    let minutes = 60_000_000;
    (scenario.loops_end_us, scenario.measured_us) = (5 * minutes, 4 * minutes..5 * minutes);
    let after_five = in_turn(&scenario).load();
    let title = format!("{after_one_minute:?}, {after_five:?}");
    assert!(after_five.inserts_per_s >= after_one_minute.inserts_per_s * (1.0 - SAMPLING_NOISE), "{title}");
    assert!(after_five.waits.p99_ms <= after_one_minute.waits.p99_ms * (1.0 + SAMPLING_NOISE), "{title}");
}

#[test]
fn what_nobody_waits_for_gets_more_turns_where_flushes_keep_no_cpu_busy() {
    for (rate, tables) in [(200.0, 100), (2_000.0, 1_000)] {
        let load = in_turn(&many::scenario(Load::NotWaiting(rate), Spread::Even, tables, Sink::Slow)).load();
        // With 43 ms of credit for each.
        let at_full_cost = UNWAITED_SHARE * many::CPUS as f64 / 0.043;
        assert!(load.parts_per_s >= at_full_cost * 3.0, "{load:?}");
        assert!(load.cpu_share <= UNWAITED_SHARE, "{load:?}");
    }
}

#[test]
fn the_simulation_of_many_tables_repeats_itself() {
    for load in [Load::Writers(200), Load::NotWaiting(2_000.0)] {
        let scenario = many::scenario(load, Spread::Zipf, 1_000, Sink::Slow);
        assert!(in_turn(&scenario) == in_turn(&scenario), "{}", scenario.name);
    }
}

#[test]
fn flushes_share_the_cpus_evenly() {
    // Three at once on two CPUs, each of 3,002 us of work; the fourth finds them half done.
    let mut scenario = quick("four".into(), 4, 1);
    scenario.open = spread(SEED, &Popularity::even(1), 1.0, 4);
    for (table, arrival) in scenario.open.iter_mut().enumerate() {
        (arrival.table, arrival.at_us) = (table, if table < 3 { 1_000 } else { 1_000 + 2_250 });
    }
    scenario.measured_us = 0..1_000_000;
    let books = alone(&scenario);
    let ends: Vec<_> = books.parts.iter().map(|part| part.ended_us).collect();
    // 1,500 us are done by then; the other 1,502 take twice as long, and what is then left of the fourth is its own.
    assert_eq!(ends, [6_254, 6_254, 6_254, 7_754]);
    assert_eq!(books.cpus_busy_us, 2 * (6_254 - 1_000) + 1_500);
}

/// Asserts that every due batch is sealed within the longest hold, and flushed when each other table has had
/// its turn.
fn assert_all_are_found(books: &Books) {
    let tables = 1 + books.inserts.iter().map(|insert| insert.table).max().unwrap_or(0);
    let slowest_ms = books.parts.iter().map(|part| part.ended_us - part.started_us).max().unwrap_or(0) as f64 / 1e3;
    let turns_ms = (tables as f64 / SLOTS + 1.0) * slowest_ms;
    let waits = books.waits(|insert| !insert.waits);
    assert!(waits.max_ms <= OWN_HOLD_MS + LONGEST_HOLD_MS + turns_ms, "{waits:?}, {turns_ms}");
}

fn waits(insert: &Stored) -> bool {
    insert.waits
}

fn quick(name: String, tables: usize, seconds: u64) -> Scenario {
    many::empty(name, Popularity::even(tables), Sink::Quick, seconds)
}

fn writer(table: usize, pause_at_least_us: u64, pause_extra_mean_us: f64) -> Loop {
    Loop { table: Some(table), starts_at_us: 1_000 + table as u64 * 20, pause_at_least_us, pause_extra_mean_us }
}
