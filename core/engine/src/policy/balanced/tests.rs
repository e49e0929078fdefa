//! Tests of every rule of the policy, and of the properties that must always hold.

use std::collections::VecDeque;

use crate::policy::{
    Arrival, BufferPolicy, CountLimit, FlushEnd, FlushLimits, Lane, Micros, PolicyKind, SealReason, TablePolicy,
    Verdict,
};

const FLUSH_MS: u64 = 5;

/// A table with one shape. Its flushes take as long as the test says.
struct Table {
    policy: TablePolicy,
    buffer: BufferPolicy,
    limits: FlushLimits,
    next_writer: u64,
}

impl Table {
    fn new() -> Self {
        let mut policy = TablePolicy::new();
        let buffer = policy.open_buffer();
        Table { policy, buffer, limits: FlushLimits::default(), next_writer: 1_000_000 }
    }

    fn insert(&mut self, at_ms: u64, writer: u64, waits: bool, lane: Lane) -> Verdict {
        let arrival = Arrival { writer, waits, back_after: None, rows: 1, bytes: 10 };
        self.policy.arrive(ms(at_ms), &mut self.buffer, &arrival, &self.limits, lane)
    }

    /// Inserts from a writer whose inserts go to several gateways, this long after its last answer.
    fn roaming(&mut self, at_ms: u64, writer: u64, back_after_ms: u64, lane: Lane) -> Verdict {
        let arrival = Arrival { writer, waits: true, back_after: Some(ms(back_after_ms)), rows: 1, bytes: 10 };
        self.policy.arrive(ms(at_ms), &mut self.buffer, &arrival, &self.limits, lane)
    }

    /// Inserts from a connection that is never seen again.
    fn stranger(&mut self, at_ms: u64) -> Verdict {
        self.next_writer += 1;
        self.insert(at_ms, self.next_writer, true, Lane::Free)
    }

    fn decide(&mut self, at_ms: u64) -> Verdict {
        self.policy.decide(ms(at_ms), &self.buffer, Lane::Free)
    }

    fn begin_flush(&mut self, at_ms: u64) -> BufferPolicy {
        self.policy.flush_started(ms(at_ms));
        let next = self.policy.open_buffer();
        std::mem::replace(&mut self.buffer, next)
    }

    fn end_flush(&mut self, at_ms: u64, flushed: &BufferPolicy, duration_ms: u64) {
        let end = FlushEnd { buffer: flushed.id(), duration: ms(duration_ms), ok: true };
        self.policy.flush_ended(ms(at_ms), &end);
    }

    fn flush(&mut self, at_ms: u64) {
        let flushed = self.begin_flush(at_ms);
        self.end_flush(at_ms + FLUSH_MS, &flushed, FLUSH_MS);
    }

    /// Inserts from strangers at this spacing, flushed as the policy says. Returns the time of the last
    /// flush's end.
    fn stream(&mut self, from_ms: u64, gap_ms: u64, count: u64) -> u64 {
        let mut flushed_at = from_ms;
        for i in 0..count {
            let at = from_ms + i * gap_ms;
            if let Verdict::Seal(_) = self.stranger(at) {
                self.flush(at);
                flushed_at = at + FLUSH_MS;
            }
        }
        if !self.buffer.is_empty() {
            flushed_at = from_ms + count * gap_ms + FLUSH_MS;
            self.flush(flushed_at - FLUSH_MS);
        }
        flushed_at
    }

    /// Makes each of these writers insert four times, each time a millisecond after its last insert was stored.
    fn teach_loops(&mut self, writers: std::ops::Range<u64>) -> u64 {
        let mut at_ms = 1_000;
        for _ in 0..4 {
            for writer in writers.clone() {
                self.insert(at_ms, writer, true, Lane::Busy);
            }
            self.flush(at_ms);
            at_ms += FLUSH_MS + 1;
        }
        at_ms - 1
    }
}

fn ms(millis: u64) -> Micros {
    Micros::from_millis(millis)
}

fn seal(reason: SealReason) -> Verdict {
    Verdict::Seal(reason)
}

#[test]
fn writers_that_go_from_gateway_to_gateway_are_not_waited_for() {
    let mut table = Table::new();
    assert_eq!(table.roaming(1_000, 1, 1, Lane::Free), Verdict::Seal(SealReason::EveryWriterIsHere));
    let flushed = table.begin_flush(1_000);
    assert_eq!(table.roaming(1_001, 2, 1, Lane::Busy), Verdict::HoldForFlush);
    assert_eq!(table.roaming(1_002, 3, 1, Lane::Busy), Verdict::HoldForFlush);
    table.end_flush(1_005, &flushed, FLUSH_MS);
    assert_eq!(table.decide(1_005), Verdict::Seal(SealReason::EveryWriterIsHere), "whoever else may come");
    table.flush(1_005);
    // Who comes long after its answer is one of a stream.
    table.roaming(1_020, 4, 1_000, Lane::Free);
    assert!(matches!(table.roaming(1_021, 1, 1, Lane::Free), Verdict::HoldUntil(_)));
}

#[test]
fn the_first_insert_of_an_idle_table_goes_at_sight() {
    let mut table = Table::new();
    assert_eq!(table.stranger(5_000), seal(SealReason::Idle));
    table.flush(5_000);
    assert_eq!(table.stranger(15_000), seal(SealReason::Idle));
}

#[test]
fn a_busy_stream_is_held_for_the_maximum() {
    let mut table = Table::new();
    let mut at = 1_000;
    for i in 0..40 {
        at += 3 + i % 9; // uneven on purpose
        if let Verdict::Seal(_) = table.stranger(at) {
            table.flush(at);
        }
    }
    table.flush(at);
    let Verdict::HoldUntil(until) = table.stranger(at + 10) else { panic!("the stream is busy") };
    assert!(until < ms(at + 210), "twelve gaps of about 7 ms come before the deadline: {until:?}");
    for i in 1..34 {
        assert!(matches!(table.stranger(at + 10 + i * 6 + i % 2), Verdict::HoldUntil(_)), "{i}");
    }
    assert_eq!(table.stranger(at + 211), seal(SealReason::Deadline));
}

#[test]
fn a_stream_that_stops_is_not_waited_for() {
    let mut table = Table::new();
    table.stream(1_000, 2, 400);
    let at = 1_800;
    let Verdict::HoldUntil(until) = table.stranger(at) else { panic!("the stream is busy") };
    assert!(until <= ms(at + 24), "{until:?}");
    assert_eq!(table.policy.decide(until, &table.buffer, Lane::Free), seal(SealReason::Quiet));
}

#[test]
fn an_even_stream_is_held_exactly_for_its_next_insert_or_not_at_all() {
    let mut table = Table::new();
    let at = table.stream(1_000, 100, 20);
    assert_eq!(table.stranger(at - FLUSH_MS + 100), seal(SealReason::Idle), "the next one is 100 ms away");

    let mut table = Table::new();
    table.stream(1_000, 50, 21);
    assert!(matches!(table.stranger(2_050), Verdict::HoldUntil(_)));
    assert_eq!(table.stranger(2_100), seal(SealReason::Deadline), "a third one would come too late");
}

#[test]
fn a_burst_that_is_known_to_follow_is_waited_for() {
    let mut table = Table::new();
    assert_eq!(table.stranger(10_000), seal(SealReason::Idle));
    table.flush(10_000);
    for burst in 1..5 {
        table.stream(10_000 + burst * 1_000, 1, 20);
    }
    assert_eq!(table.stranger(16_000), Verdict::HoldUntil(ms(16_005)));
    assert!(matches!(table.stranger(16_001), Verdict::HoldUntil(_)));
}

#[test]
fn far_more_inserts_than_expected_go_early() {
    let mut table = Table::new();
    for i in 0..30 {
        table.stranger(1_000 + i * 150 + i % 3 * 40);
        table.flush(1_000 + i * 150 + i % 3 * 40);
    }
    // A hold of 50 ms in a stream of 150 ms is expected to bring a third of an insert.
    assert!(matches!(table.stranger(5_600), Verdict::HoldUntil(_)));
    assert!(matches!(table.stranger(5_610), Verdict::HoldUntil(_)));
    assert_eq!(table.stranger(5_620), seal(SealReason::Plenty));
}

#[test]
fn when_every_loop_is_here_the_batch_goes() {
    let mut table = Table::new();
    let at = table.teach_loops(0..5);
    for writer in 0..4 {
        assert!(matches!(table.insert(at + 1, writer, true, Lane::Free), Verdict::HoldUntil(_)), "{writer}");
    }
    assert_eq!(table.insert(at + 1, 4, true, Lane::Free), seal(SealReason::EveryWriterIsHere));
}

#[test]
fn a_loop_that_stays_away_is_given_up() {
    let mut table = Table::new();
    let at = table.teach_loops(0..5);
    for writer in 0..4 {
        table.insert(at + 1, writer, true, Lane::Free);
    }
    let Verdict::HoldUntil(until) = table.decide(at + 1) else { panic!("one is missing") };
    assert!(until <= ms(at + 50), "{until:?}");
    let verdict = table.policy.decide(until, &table.buffer, Lane::Free);
    assert_eq!(verdict, seal(SealReason::EveryWriterIsHere));
    let flushed = table.begin_flush(at + 20);
    table.end_flush(at + 25, &flushed, FLUSH_MS);
    for writer in 0..3 {
        table.insert(at + 26, writer, true, Lane::Free);
    }
    assert_eq!(
        table.insert(at + 26, 3, true, Lane::Free),
        seal(SealReason::EveryWriterIsHere),
        "nobody waits for it again"
    );
}

#[test]
fn writers_that_do_not_wait_are_not_counted_on() {
    let mut table = Table::new();
    for round in 0..5 {
        for writer in 0..3 {
            table.insert(1_000 + round * 6, writer, false, Lane::Busy);
        }
        table.flush(1_000 + round * 6);
    }
    let verdict = table.insert(1_030, 0, false, Lane::Free);
    assert!(matches!(verdict, Verdict::HoldUntil(_)), "{verdict:?}");
    let verdicts: Vec<_> = (1..3).map(|writer| table.insert(1_031, writer, false, Lane::Free)).collect();
    assert!(!verdicts.contains(&seal(SealReason::EveryWriterIsHere)), "{verdicts:?}");
}

#[test]
fn the_only_writer_of_a_table_is_never_held() {
    let mut table = Table::new();
    for i in 0..20 {
        let verdict = table.insert(1_000 + i * 97, 7, true, Lane::Free);
        if i >= 4 {
            assert_eq!(verdict, seal(SealReason::EveryWriterIsHere), "{i}");
        }
        table.flush(1_000 + i * 97);
    }
}

#[test]
fn a_slow_flush_is_followed_by_a_rest() {
    let mut table = Table::new();
    table.stranger(10_000);
    let flushed = table.begin_flush(10_000);
    table.end_flush(10_100, &flushed, 100);
    // Idle for long, but the sink was busy until just now.
    table.policy.flush_started(ms(13_900));
    let next = table.policy.open_buffer();
    table.end_flush(14_000, &next, 100);
    table.buffer = table.policy.open_buffer();
    assert_eq!(table.stranger(14_010), Verdict::HoldUntil(ms(14_050)));
    assert_eq!(table.decide(14_050), seal(SealReason::Idle));
}

#[test]
fn many_parts_space_the_flushes_out() {
    let mut table = Table::new();
    table.policy.parts(2_175, 3_000); // half way from 0.5 to 0.95: 2.5 s
    assert_eq!(table.stranger(10_000), seal(SealReason::Idle), "there was no flush to keep away from");
    table.flush(10_000);
    let Verdict::HoldUntil(until) = table.stranger(10_900) else { panic!("too soon") };
    assert!(until.0.abs_diff(12_500_000) <= 1, "{until:?}");
    table.limits.max_data_size_bytes = 20;
    assert_eq!(table.stranger(10_901), seal(SealReason::Size), "a full buffer goes all the same");
    table.policy.parts(100, 3_000);
    assert_eq!(table.decide(10_960), seal(SealReason::Deadline), "the merges have caught up");
}

#[test]
fn a_hold_of_seconds_does_not_depend_on_where_it_started() {
    let limits = FlushLimits { busy_timeout_max_ms: 10_000, ..FlushLimits::default() };
    let mut table = Table { limits, ..Table::new() };
    // A rush drives the hold up to ten seconds ...
    table.stream(1_000, 1, 400);
    // ... and three inserts a second bring it down again.
    let mut at = 2_000;
    for i in 0..60 {
        at += 210 + i % 5 * 90;
        table.stranger(at);
        table.flush(at);
    }
    let Verdict::HoldUntil(until) = table.stranger(at + 300) else { panic!("not idle: the maximum is 10 s") };
    assert!(until <= ms(at + 300 + 60), "{until:?}");
}

/// Any order of any calls causes no panic, holds lie in the future, and no insert is held beyond its own
/// maximum without a cause.
#[test]
fn whatever_happens_holds_end() {
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut policy = TablePolicy::new();
        let mut buffer = policy.open_buffer();
        let mut flying: VecDeque<BufferPolicy> = VecDeque::new();
        let mut now = Micros::ZERO;
        let mut oldest = Micros::NEVER;
        for step in 0..600 {
            now = now + Micros(random_span_us(&mut rng));
            let lane = if flying.is_empty() { Lane::Free } else { Lane::Busy };
            let verdict = match rng.u8(0..10) {
                0..=6 => {
                    let limits = random_limits(&mut rng);
                    let arrival = Arrival {
                        writer: rng.u64(0..12),
                        waits: rng.bool(),
                        back_after: None,
                        rows: 1,
                        bytes: rng.u64(0..2_000),
                    };
                    let verdict = policy.arrive(now, &mut buffer, &arrival, &limits, lane);
                    oldest = oldest.min(now + ms(limits.busy_timeout_max_ms));
                    verdict
                }
                7 if !buffer.is_empty() => policy.decide(now, &buffer, lane),
                _ => {
                    if let Some(flushed) = flying.pop_front() {
                        let duration = Micros(random_span_us(&mut rng));
                        policy.flush_ended(now, &FlushEnd { buffer: flushed.id(), duration, ok: rng.bool() });
                    }
                    continue;
                }
            };
            match verdict {
                Verdict::Seal(_) => {
                    policy.flush_started(now);
                    flying.push_back(std::mem::replace(&mut buffer, policy.open_buffer()));
                    oldest = Micros::NEVER;
                }
                Verdict::HoldForFlush => assert_eq!(lane, Lane::Busy, "seed {seed}, step {step}"),
                Verdict::HoldUntil(until) => {
                    assert!(until > now, "seed {seed}, step {step}: {until:?} is not after {now:?}");
                    assert!(until <= oldest + ms(10), "seed {seed}, step {step}: {until:?} is beyond {oldest:?}");
                }
            }
        }
    }
}

fn random_span_us(rng: &mut fastrand::Rng) -> u64 {
    match rng.u8(0..8) {
        0 => 0,
        7 => rng.u64(0..2_000_000),
        _ => rng.u64(0..20_000),
    }
}

fn random_limits(rng: &mut fastrand::Rng) -> FlushLimits {
    let kinds = [PolicyKind::Balanced, PolicyKind::Balanced, PolicyKind::Fixed, PolicyKind::Adaptive];
    FlushLimits {
        kind: kinds[rng.usize(0..kinds.len())],
        busy_timeout_min_ms: rng.u64(0..100),
        busy_timeout_max_ms: rng.u64(1..400),
        max_query_number: rng.u64(1..50),
        count_limit: [CountLimit::Off, CountLimit::Cap, CountLimit::Trigger][rng.usize(0..3)],
        max_data_size_bytes: rng.u64(1..50_000),
        ..FlushLimits::default()
    }
}
