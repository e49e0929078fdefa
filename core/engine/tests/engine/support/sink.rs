//! A sink that answers from a script and notes all calls.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{watch, Semaphore};
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_engine::sink::{Batch, BatchId, Destination, Sink, StoreError, Stored};

use super::rows::rows_of;

/// The answer to a call. All but `Ok`, `LostAfterStoring` and `FailedInPart` store nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Ok,
    NotSent,
    Refused(ErrorCode),
    RefusedSaying(ErrorCode, &'static str),
    /// A constraint is violated at this row of the batch, counted from 1.
    RefusedAtRow(usize),
    /// An attempt with this id is still on the system's list.
    StillRunning,
    Failed(ErrorCode),
    /// The store failed after this many rows.
    FailedInPart(ErrorCode, usize),
    /// The connection broke before the sink's system had the batch.
    LostBeforeStoring,
    /// The connection broke after everything was stored.
    LostAfterStoring,
    Panic,
}

#[derive(Debug, Clone)]
pub struct Call {
    pub id: BatchId,
    pub destination: Arc<Destination>,
    pub rows: Vec<u64>,
    /// The answer; `None` while the call runs.
    pub answer: Option<Answer>,
    /// Rows that the call added to the sink's system.
    pub stored: Vec<u64>,
}

/// The calls that are held until they are let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    Open,
    Closed,
    ClosedFor(&'static str),
}

type Script = Box<dyn FnMut(usize, &Call) -> Answer + Send>;

/// A sink for tests. Clones are handles of the same sink.
#[derive(Clone)]
pub struct FakeSink {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    let_go: Semaphore,
    progress: watch::Sender<Progress>,
}

struct State {
    calls: Vec<Call>,
    script: Script,
    gate: Gate,
    known: HashSet<BatchId>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    begun: usize,
    ended: usize,
}

impl FakeSink {
    pub fn new() -> FakeSink {
        let state =
            State { calls: Vec::new(), script: Box::new(|_, _| Answer::Ok), gate: Gate::Open, known: HashSet::new() };
        let inner = Inner { state: Mutex::new(state), let_go: Semaphore::new(0), progress: watch::Sender::default() };
        FakeSink { inner: Arc::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A torn row panics under the lock; the tests should still hear of the rest.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the script that answers each call by its number, from 0, and its rows.
    pub fn answer(&self, script: impl FnMut(usize, &Call) -> Answer + Send + 'static) {
        self.lock().script = Box::new(script);
    }

    /// Answers the first calls with these, all others with `Ok`.
    pub fn answer_first<const N: usize>(&self, answers: [Answer; N]) {
        self.answer(move |call, _| answers.get(call).copied().unwrap_or(Answer::Ok));
    }

    /// Refuses batches that hold one of `culprits`.
    pub fn refuse(&self, code: ErrorCode, culprits: &[u64]) {
        let culprits: HashSet<u64> = culprits.iter().copied().collect();
        self.answer(move |_, call| match call.rows.iter().any(|row| culprits.contains(row)) {
            true => Answer::Refused(code),
            false => Answer::Ok,
        });
    }

    /// Refuses batches that hold one of `culprits`, and names the row of the first.
    pub fn constrain(&self, culprits: &[u64]) {
        let culprits: HashSet<u64> = culprits.iter().copied().collect();
        self.answer(move |_, call| match call.rows.iter().position(|row| culprits.contains(row)) {
            Some(index) => Answer::RefusedAtRow(index + 1),
            None => Answer::Ok,
        });
    }

    /// Sets the gate for calls that begin from now on.
    pub fn set_gate(&self, gate: Gate) {
        self.lock().gate = gate;
    }

    /// Lets one held call go.
    pub fn let_one_go(&self) {
        self.inner.let_go.add_permits(1);
    }

    /// Opens the gate and lets all held calls go.
    pub fn open_gate(&self) {
        let mut state = self.lock();
        state.gate = Gate::Open;
        let running = state.calls.iter().filter(|call| call.answer.is_none()).count();
        drop(state);
        self.inner.let_go.add_permits(running);
    }

    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    pub fn call_count(&self) -> usize {
        self.lock().calls.len()
    }

    /// Returns all rows that the sink's system has, in the order in which it got them.
    pub fn stored(&self) -> Vec<u64> {
        self.lock().calls.iter().flat_map(|call| call.stored.clone()).collect()
    }

    /// Ends the running calls because the gatherer is gone: their rows are stored or lost, as the script answers.
    pub fn crash(&self) {
        let running: Vec<usize> = {
            let state = self.lock();
            (0..state.calls.len()).filter(|&call| state.calls[call].answer.is_none()).collect()
        };
        for call in running {
            self.end(call);
        }
        self.set_gate(Gate::Open);
    }

    /// Waits until this many calls have begun.
    pub async fn begun(&self, calls: usize) {
        self.until(|progress| progress.begun >= calls).await;
    }

    /// Waits until this many calls have been answered.
    pub async fn ended(&self, calls: usize) {
        self.until(|progress| progress.ended >= calls).await;
    }

    async fn until(&self, reached: impl Fn(&Progress) -> bool) {
        let mut progress = self.inner.progress.subscribe();
        progress.wait_for(|progress| reached(progress)).await.expect("the sink lives");
    }

    fn begin(&self, batch: &Batch) -> Begun {
        let rows = rows_of(batch);
        let mut state = self.lock();
        let (id, destination) = (batch.id, batch.destination.clone());
        let under_way = state.calls.iter().filter(|call| call.answer.is_none() && call.destination == destination);
        assert!(under_way.count() < 2, "besides the lane's own, one that is aside may be on its way");
        state.calls.push(Call { id, destination, rows, answer: None, stored: Vec::new() });
        let held = match state.gate {
            Gate::Open => false,
            Gate::Closed => true,
            Gate::ClosedFor(table) => batch.destination.table == table,
        };
        Begun { call: state.calls.len() - 1, held }
    }

    fn end(&self, number: usize) -> Answer {
        let mut guard = self.lock();
        let state = &mut *guard;
        let call = &mut state.calls[number];
        let answer = (state.script)(number, call);
        let stored = match answer {
            Answer::Ok | Answer::LostAfterStoring => call.rows.len(),
            Answer::FailedInPart(_, rows) => rows.min(call.rows.len()),
            _ => 0,
        };
        let is_repeat = call.destination.deduplicates && state.known.contains(&call.id);
        if stored > 0 && !is_repeat {
            call.stored = call.rows[..stored].to_vec();
            state.known.insert(call.id);
        }
        call.answer = Some(answer);
        answer
    }
}

struct Begun {
    call: usize,
    held: bool,
}

impl Sink for FakeSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        let begun = self.begin(batch);
        self.inner.progress.send_modify(|progress| progress.begun += 1);
        if begun.held {
            self.inner.let_go.acquire().await.expect("the gate is never taken away").forget();
        }
        let answer = self.end(begun.call);
        self.inner.progress.send_modify(|progress| progress.ended += 1);
        match answer {
            Answer::Ok => Ok(Stored::default()),
            Answer::NotSent => Err(StoreError::NotSent("connection refused".into())),
            Answer::Refused(code) => Err(StoreError::Refused(Exception::new(code, "scripted", ""))),
            Answer::RefusedSaying(code, text) => Err(StoreError::Refused(Exception::new(code, text, ""))),
            Answer::RefusedAtRow(row) => {
                let text = format!("Constraint `c` for table d.t is violated at row {row}. Expression: (a < 100).");
                Err(StoreError::Refused(Exception::new(ErrorCode::VIOLATED_CONSTRAINT, &text, "")))
            }
            Answer::StillRunning => Err(StoreError::StillRunning("query is already running".into())),
            Answer::Failed(code) | Answer::FailedInPart(code, _) => {
                Err(StoreError::Failed(Exception::new(code, "scripted", "")))
            }
            Answer::LostBeforeStoring | Answer::LostAfterStoring => Err(StoreError::Unknown("connection reset".into())),
            Answer::Panic => panic!("scripted: the sink panics"),
        }
    }
}
