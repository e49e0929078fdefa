//! The decisions of a writer with rows in memory, told the time and what became of each attempt.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use windrow_clickhouse::ErrorCode;
use windrow_writer::{
    AppendError, Appended, Attempts, Backoff, BatchId, Body, Buffer, BufferError, BufferEvents, Destination, Failure,
    FailureKind, Gathering, LeftOvers, MemoryBuffer, Next, Open, Options, Outgoing, Reason, Retry, Rows, Sealed,
};

fn gathering(options: Options) -> Arc<Gathering> {
    let buffer = Arc::new(MemoryBuffer::new(options.batch_rows, options.batch_bytes));
    Gathering::new(buffer, Arc::new(Destination::default()), options)
}

fn options() -> Options {
    Options { batch_rows: 4, flush_interval_ms: 100, retry: Box::new(Backoff::default()), ..Options::default() }
}

fn append(gathering: &Gathering, text: &str) -> Result<(), AppendError> {
    gathering.append(Rows::new(text.as_bytes(), &vec![1; text.len()])).map(|_| ())
}

fn sent(gathering: &Gathering, now_ms: u64) -> Option<(BatchId, String)> {
    match gathering.next(now_ms) {
        Next::Send(Outgoing { id, body, .. }) => Some((id, String::from_utf8_lossy(&body.bytes()).into_owned())),
        _ => None,
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure { kind, code: Some(ErrorCode::VIOLATED_CONSTRAINT), message: "no".into(), row: None }
}

fn wait_until(gathering: &Gathering, now_ms: u64) -> Option<u64> {
    match gathering.next(now_ms) {
        Next::Wait { until_ms } => until_ms,
        other => panic!("{other:?}"),
    }
}

fn count(counter: &Arc<AtomicUsize>) -> windrow_writer::OnReached {
    let counter = counter.clone();
    Box::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    })
}

#[test]
fn a_batch_goes_when_it_is_full_or_old_or_asked_for() {
    let gathering = gathering(options());
    append(&gathering, "abcde").unwrap();
    assert_eq!(sent(&gathering, 0).unwrap().1, "abcd");
    assert_eq!(wait_until(&gathering, 50), Some(150));
    assert_eq!(sent(&gathering, 150).unwrap().1, "e");
    append(&gathering, "f").unwrap();
    assert_eq!(wait_until(&gathering, 160), Some(260));
    gathering.flush(Box::new(|| ()));
    assert_eq!(sent(&gathering, 161).unwrap().1, "f");
}

#[test]
fn a_flush_ends_when_all_before_it_have_settled() {
    let gathering = gathering(options());
    let flushed = Arc::new(AtomicUsize::new(0));
    append(&gathering, "abcdef").unwrap();
    gathering.flush(count(&flushed));
    let first = sent(&gathering, 0).unwrap();
    let second = sent(&gathering, 0).unwrap();
    append(&gathering, "g").unwrap();
    gathering.stored(second.0);
    assert_eq!(flushed.load(Ordering::SeqCst), 0);
    gathering.stored(first.0);
    assert_eq!(flushed.load(Ordering::SeqCst), 1);
    assert_eq!(sent(&gathering, 1), None, "what came after the flush waits for others");
}

#[test]
fn a_flush_ends_when_the_errors_of_what_is_before_it_are_told() {
    let gathering = gathering(options());
    let (flushed, told) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (weak, seen, telling) = (Arc::downgrade(&gathering), flushed.clone(), told.clone());
    gathering.set_error_hook(Box::new(move |_| {
        weak.upgrade().unwrap().flush(count(&seen));
        assert_eq!(seen.load(Ordering::SeqCst), 0, "its error is being told");
        telling.fetch_add(1, Ordering::SeqCst);
        false
    }));
    append(&gathering, "abcd").unwrap();
    let (id, _) = sent(&gathering, 0).unwrap();
    gathering.failed(id, failure(FailureKind::Refused), 0);
    assert_eq!((told.load(Ordering::SeqCst), flushed.load(Ordering::SeqCst)), (1, 1));
    assert!(gathering.take_error().is_some());
}

#[test]
fn a_retry_keeps_id_and_members_and_waits() {
    let gathering = gathering(options());
    append(&gathering, "abc").unwrap();
    assert_eq!(wait_until(&gathering, 0), Some(100));
    let first = sent(&gathering, 100).unwrap();
    gathering.failed(first.0, failure(FailureKind::Passing), 110);
    append(&gathering, "d").unwrap();
    let again_ms = wait_until(&gathering, 110).unwrap();
    assert!((160..=210).contains(&again_ms), "{again_ms}");
    assert_eq!(sent(&gathering, again_ms), Some(first.clone()));
    gathering.stored(first.0);
    assert_eq!(gathering.statistics().retries, 1);
}

#[test]
fn only_the_guilty_rows_fail() {
    for hinted in [false, true] {
        let gathering = gathering(Options { batch_rows: 100, ..options() });
        append(&gathering, "aaXaaaaXaaa").unwrap();
        gathering.close();
        let mut stored = String::new();
        while let Some((id, text)) = sent(&gathering, 0) {
            match text.find('X') {
                Some(at) => {
                    let row = hinted.then_some(at as u64 + 1);
                    gathering.failed(id, Failure { row, ..failure(FailureKind::Values) }, 0);
                }
                None => {
                    stored += &text;
                    gathering.stored(id);
                }
            }
        }
        assert_eq!(stored, "aaaaaaaaa");
        let failed: Vec<_> = std::iter::from_fn(|| gathering.take_error()).collect();
        assert_eq!(failed.len(), 2);
        assert!(failed.iter().all(|error| error.rows.rows().bytes() == b"X" && error.reason == Reason::Values));
        assert!(matches!(gathering.next(0), Next::Drained));
    }
}

#[test]
fn wrong_hints_mislead_nobody() {
    let gathering = gathering(Options { batch_rows: 100, ..options() });
    append(&gathering, "aaaaaX").unwrap();
    gathering.close();
    for _ in 0..20 {
        let Some((id, text)) = sent(&gathering, 0) else { break };
        match text.contains('X') {
            true => gathering.failed(id, Failure { row: Some(1), ..failure(FailureKind::Values) }, 0),
            false => gathering.stored(id),
        }
    }
    let statistics = gathering.statistics();
    assert_eq!((statistics.rows_stored, statistics.rows_failed), (5, 1));
}

#[test]
fn in_order_a_failing_batch_is_through_before_the_next_goes() {
    let gathering = gathering(Options { ordered: true, ..options() });
    append(&gathering, "abXdefgh").unwrap();
    let whole = sent(&gathering, 0).unwrap();
    assert_eq!(sent(&gathering, 0), None, "one at a time");
    gathering.failed(whole.0, failure(FailureKind::Passing), 0);
    assert_eq!(sent(&gathering, 1), None, "the next one waits, too");
    let whole = sent(&gathering, 1000).unwrap();
    gathering.failed(whole.0, failure(FailureKind::Values), 1000);
    let mut order = String::new();
    while let Some((id, text)) = sent(&gathering, 1000) {
        match text.contains('X') {
            true => gathering.failed(id, failure(FailureKind::Values), 1000),
            false => {
                order += &text;
                gathering.stored(id);
            }
        }
    }
    assert_eq!(order, "abdefgh");
}

#[test]
fn what_is_held_is_bounded_and_room_is_told() {
    // A row of one byte counts for five.
    let gathering = gathering(Options { max_bytes: 20, ..options() });
    append(&gathering, "abc").unwrap();
    assert!(matches!(append(&gathering, "de"), Err(AppendError::Full)));
    assert!(matches!(append(&gathering, "abcde"), Err(AppendError::TooLarge { .. })));
    let told = Arc::new(AtomicUsize::new(0));
    gathering.wait_for_room(10, count(&told));
    assert_eq!(told.load(Ordering::SeqCst), 0);
    wait_until(&gathering, 0);
    let batch = sent(&gathering, 100).unwrap();
    gathering.stored(batch.0);
    assert_eq!(told.load(Ordering::SeqCst), 1);
    append(&gathering, "de").unwrap();
    assert_eq!(gathering.statistics().bytes_held, 10);
}

#[test]
fn watched_rows_learn_what_became_of_them() {
    let gathering = gathering(options());
    let told = Arc::new(Mutex::new(Vec::new()));
    for text in ["ab", "cdef", "X", "gh"] {
        let told = told.clone();
        let rows = Rows::new(text.as_bytes(), &[1; 4][..text.len()]);
        let call = move |outcome: Result<(), _>| told.lock().unwrap().push((text, outcome.is_ok()));
        gathering.append_watched(rows, Box::new(call)).unwrap();
    }
    gathering.close();
    let batches: Vec<_> = std::iter::from_fn(|| sent(&gathering, 0)).collect();
    assert_eq!(batches.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["abcd", "efXg", "h"]);
    gathering.stored(batches[2].0);
    gathering.failed(batches[1].0, Failure { row: Some(3), ..failure(FailureKind::Values) }, 0);
    while let Some((id, text)) = sent(&gathering, 0) {
        match text == "X" {
            true => gathering.failed(id, failure(FailureKind::Values), 0),
            false => gathering.stored(id),
        }
    }
    assert_eq!(*told.lock().unwrap(), [("X", false), ("gh", true)]);
    gathering.stored(batches[0].0);
    assert_eq!(told.lock().unwrap()[2..], [("ab", true), ("cdef", true)]);
}

#[test]
fn an_unread_error_channel_holds_up_nobody() {
    let gathering = gathering(Options { max_errors: 10, ..options() });
    for _ in 0..100 {
        append(&gathering, "XXXX").unwrap();
        let (id, _) = sent(&gathering, 0).unwrap();
        gathering.failed(id, failure(FailureKind::Refused), 0);
    }
    let statistics = gathering.statistics();
    assert_eq!((statistics.rows_failed, statistics.errors_dropped, statistics.bytes_held), (400, 90, 0));
}

#[test]
fn the_counter_of_retries_belongs_to_a_batch_and_ends_with_it() {
    let retry = Box::new(Backoff { max_attempts: Some(3), ..Backoff::default() });
    let gathering = gathering(Options { retry, ..options() });
    for round in 0..50 {
        append(&gathering, "abcd").unwrap();
        let mut now_ms = round * 100_000;
        for attempt in 1..=3 {
            let (id, _) = sent(&gathering, now_ms).unwrap_or_else(|| panic!("round {round}, attempt {attempt}"));
            gathering.failed(id, failure(FailureKind::Passing), now_ms);
            now_ms += 10_000;
        }
        assert_eq!(gathering.take_error().unwrap().reason, Reason::GaveUp);
    }
}

#[test]
fn an_abandoned_writer_hands_over_what_it_held() {
    let gathering = gathering(options());
    append(&gathering, "abcdefg").unwrap();
    let (id, _) = sent(&gathering, 0).unwrap();
    let report = gathering.abandon();
    assert_eq!((report.rows_handed_over, report.rows_kept), (7, 0));
    gathering.stored(id);
    assert!(matches!(gathering.next(0), Next::Drained));
    assert!(matches!(append(&gathering, "h"), Err(AppendError::Closed)));
    let rows: usize = std::iter::from_fn(|| gathering.take_error()).map(|error| error.rows.count()).sum();
    assert_eq!(rows, 7);
}

/// A retry policy of the program's own, which looks at the writer before it decides.
struct Curious(Arc<OnceLock<Arc<Gathering>>>);

impl Retry for Curious {
    fn again_after_ms(&mut self, _: &Failure, attempts: Attempts) -> Option<u64> {
        let statistics = self.0.get()?.statistics();
        (statistics.batches_in_flight > 0 && attempts.failed < 2).then_some(1)
    }
}

#[test]
fn a_retry_policy_may_look_at_the_writer() {
    let told = Arc::new(OnceLock::new());
    let gathering = gathering(Options { retry: Box::new(Curious(told.clone())), ..options() });
    assert!(told.set(gathering.clone()).is_ok());
    append(&gathering, "abcd").unwrap();
    let (id, _) = sent(&gathering, 0).unwrap();
    gathering.failed(id, failure(FailureKind::Passing), 0);
    assert_eq!(sent(&gathering, 1).unwrap().0, id);
    gathering.failed(id, failure(FailureKind::Passing), 1);
    assert_eq!(gathering.take_error().unwrap().reason, Reason::GaveUp);
}

/// A buffer whose rows another process takes, which dies before it has stored them.
struct Elsewhere {
    inner: MemoryBuffer,
    events: OnceLock<Arc<dyn BufferEvents>>,
    found: Mutex<Vec<Sealed>>,
}

impl Buffer for Elsewhere {
    fn attach(&self, events: Arc<dyn BufferEvents>) {
        assert!(self.events.set(events).is_ok());
    }

    fn survives(&self) -> bool {
        true
    }

    fn append(&self, rows: Rows<'_>) -> Result<Appended, AppendError> {
        self.inner.append(rows)
    }

    fn next_position(&self) -> u64 {
        self.inner.next_position()
    }

    fn open(&self) -> Open {
        self.inner.open()
    }

    fn seal(&self) -> Result<Option<Sealed>, BufferError> {
        self.inner.seal()
    }

    fn load(&self, id: BatchId) -> Result<Body, BufferError> {
        self.inner.load(id)
    }

    fn split(&self, id: BatchId, cuts: &[usize]) -> Result<Vec<Sealed>, BufferError> {
        self.inner.split(id, cuts)
    }

    fn done(&self, id: BatchId) -> Result<(), BufferError> {
        self.inner.done(id)
    }

    fn left_overs(&self) -> Result<LeftOvers, BufferError> {
        Ok(LeftOvers { batches: std::mem::take(&mut self.found.lock().unwrap()), ..LeftOvers::default() })
    }
}

/// Makes a closing writer some of whose rows another process has.
fn closing() -> (Arc<Elsewhere>, Arc<Gathering>, Sealed) {
    let inner = MemoryBuffer::new(4, 100);
    let buffer = Arc::new(Elsewhere { inner, events: OnceLock::new(), found: Mutex::default() });
    let gathering = Gathering::new(buffer.clone(), Arc::new(Destination::default()), options());
    append(&gathering, "abc").unwrap();
    assert_eq!(wait_until(&gathering, 0), Some(100));
    let taken = buffer.seal().unwrap().unwrap();
    gathering.close();
    (buffer, gathering, taken)
}

#[test]
fn rows_that_come_back_to_a_closing_writer_are_stored() {
    let (buffer, gathering, taken) = closing();
    assert_eq!(wait_until(&gathering, 10), Some(510), "it asks whether they are back");
    assert_eq!(wait_until(&gathering, 510), Some(1010));
    buffer.found.lock().unwrap().push(Sealed { positions: 0..0, held_bytes: 0, ..taken.clone() });
    assert_eq!(sent(&gathering, 1010), Some((taken.id, "abc".into())));
    gathering.stored(taken.id);
    buffer.events.get().unwrap().stored_elsewhere(taken.positions, taken.held_bytes);
    assert!(matches!(gathering.next(1011), Next::Drained));
}

#[test]
fn an_abandoned_writer_says_that_rows_are_anothers() {
    let (_, gathering, _) = closing();
    let report = gathering.abandon();
    assert_eq!((report.rows_handed_over, report.rows_kept), (0, 3));
}
