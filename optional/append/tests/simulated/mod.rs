//! The service with a store that is a list in memory: how requests and the applying task act together.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;
use windrow_clickhouse::{Credentials, ErrorCode};

use crate::admission::Admitted;
use crate::answer::{Atomicity, Column, Committed, Put, State, Status};
use crate::appends::Appends;
use crate::ended::End;
use crate::error::AppendError;
use crate::id::AppendId;
use crate::metrics::Metrics;
use crate::options::AppendOptions;
use crate::request::{OpenRequest, Payload};
use crate::room::Room;
use crate::service::{Found, Service};
use crate::spool::Spool;
use crate::target::{CommitFailure, Held, Outcome, Read, Target, Totals, Transaction};

/// Tables of rows; a batch of 8 bytes is one row.
#[derive(Clone)]
struct Memory {
    tables: Arc<Mutex<HashMap<String, Vec<u64>>>>,
    outcomes: Arc<Mutex<HashMap<AppendId, Committed>>>,
    /// Permits of which applying takes one: tests hold the store up by them.
    permits: Arc<Semaphore>,
    /// The line before writing begins.
    line: Arc<Semaphore>,
    begun: Arc<AtomicUsize>,
    /// Permits of which clearing up after an append takes one.
    clearings: Arc<Semaphore>,
    cleared: Arc<AtomicUsize>,
    /// True if commits are carried out, and not answered.
    loses_answers: bool,
    panics: Panics,
}

#[derive(Clone, Copy, PartialEq)]
enum Panics {
    Never,
    BeforeStoring,
    AfterStoring,
}

struct Writing {
    memory: Memory,
    id: AppendId,
    table: String,
    rows: Vec<u64>,
}

const BAD_ROW: u64 = 666;

impl Memory {
    fn new() -> Memory {
        Memory {
            tables: Arc::default(),
            outcomes: Arc::default(),
            permits: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            line: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            begun: Arc::default(),
            clearings: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            cleared: Arc::default(),
            loses_answers: false,
            panics: Panics::Never,
        }
    }

    fn rows(&self, table: &str) -> Vec<u64> {
        self.tables.lock().unwrap().get(table).cloned().unwrap_or_default()
    }
}

impl Target for Memory {
    type Table = ();
    type Batch = Vec<u64>;
    type Transaction = Writing;
    type Permit = ();

    async fn look_up(&self, opening: &OpenRequest) -> Result<(), AppendError> {
        tokio::task::yield_now().await;
        match opening.table == "missing" {
            true => Err(AppendError::new(ErrorCode::UNKNOWN_TABLE, "Table d.missing does not exist")),
            false => Ok(()),
        }
    }

    fn columns(_: &()) -> Vec<Column> {
        Vec::new()
    }

    fn atomicity(_: &()) -> Atomicity {
        Atomicity::All
    }

    fn read(_: &(), payload: Payload, _: u64) -> Result<Read<Vec<u64>>, AppendError> {
        let Payload::Native(bytes) = payload else {
            return Err(AppendError::new(ErrorCode::INCORRECT_DATA, "not Native"));
        };
        if bytes.len() % 8 > 0 {
            return Err(AppendError::new(ErrorCode::INCORRECT_DATA, "cut"));
        }
        let rows: Vec<u64> = bytes.chunks(8).map(|row| u64::from_le_bytes(row.try_into().unwrap())).collect();
        Ok(Read { rows: rows.len() as u64, held_bytes: bytes.len() as u64, batch: rows })
    }

    async fn permit(&self, _: &OpenRequest) -> Result<(), AppendError> {
        self.line.acquire().await.unwrap().forget();
        Ok(())
    }

    async fn begin(&self, id: AppendId, opening: &OpenRequest, _: Arc<()>, _: ()) -> Result<Writing, AppendError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Ok(Writing { memory: self.clone(), id, table: opening.table.clone(), rows: Vec::new() })
    }

    async fn outcome(&self, id: AppendId) -> Result<Outcome, AppendError> {
        Ok(match self.outcomes.lock().unwrap().get(&id) {
            Some(committed) => Outcome::Committed { committed: committed.clone(), user: "joe".into() },
            None => Outcome::Nothing,
        })
    }

    fn remembers_for_all(&self) -> bool {
        true
    }

    fn doubt(&self, _: AppendId) {}

    async fn recover(&self) {}

    async fn shut_down(&self) {}
}

impl Transaction for Writing {
    type Batch = Vec<u64>;

    async fn apply(&mut self, batches: Vec<Held<Vec<u64>>>) -> Result<(), AppendError> {
        self.memory.permits.acquire().await.unwrap().forget();
        for held in batches {
            if let Some(row) = held.batch.iter().position(|&row| row == BAD_ROW) {
                return Err(
                    AppendError::new(ErrorCode::VIOLATED_CONSTRAINT, "a constraint").at(held.number, Some(row as u64))
                );
            }
            self.rows.extend(held.batch);
        }
        Ok(())
    }

    async fn commit(self, totals: Totals) -> Result<Atomicity, CommitFailure> {
        let committed = Committed {
            id: self.id,
            state: State::Committed,
            rows: totals.rows,
            bytes: totals.bytes,
            batches: totals.batches,
            seconds: 0.0,
            atomic: Atomicity::All,
        };
        assert!(self.memory.panics != Panics::BeforeStoring, "on purpose");
        self.memory.outcomes.lock().unwrap().insert(self.id, committed);
        self.memory.tables.lock().unwrap().entry(self.table.clone()).or_default().extend(&self.rows);
        assert!(self.memory.panics != Panics::AfterStoring, "on purpose");
        match self.memory.loses_answers {
            true => Err(CommitFailure::Unknown("the answer is lost".into())),
            false => Ok(Atomicity::All),
        }
    }

    async fn abort(self) {
        self.memory.clearings.acquire().await.unwrap().forget();
        self.memory.cleared.fetch_add(1, Ordering::SeqCst);
    }
}

struct Server {
    service: Arc<Service<Memory>>,
    memory: Memory,
    directory: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

struct Limits {
    window_bytes: u64,
    max_memory_bytes: u64,
    max_spool_bytes: u64,
    room_wait_ms: u64,
    idle_timeout_ms: u64,
}

const WIDE: Limits = Limits {
    window_bytes: 1 << 20,
    max_memory_bytes: 1 << 20,
    max_spool_bytes: 1 << 20,
    room_wait_ms: 60_000,
    idle_timeout_ms: 60_000,
};

fn server(memory: Memory, limits: Limits) -> Server {
    let directory = std::env::temp_dir().join(format!("windrow-append-{}", AppendId::random()));
    let options = AppendOptions {
        directory: directory.clone(),
        window_bytes: limits.window_bytes,
        max_memory_bytes: limits.max_memory_bytes,
        max_spool_bytes: limits.max_spool_bytes,
        max_batch_bytes: 1 << 20,
        room_wait: Duration::from_millis(limits.room_wait_ms),
        idle_timeout: Duration::from_millis(limits.idle_timeout_ms),
        max_open: 100,
        max_open_per_user: 80,
    };
    let room = Room::new(options.max_memory_bytes, options.max_spool_bytes);
    let spool = Spool::open(&directory).unwrap();
    let metrics = Metrics::register(&mut Registry::default());
    Server { service: Service::new(memory.clone(), options, spool, room, metrics), memory, directory }
}

fn opening(id: AppendId, table: &str) -> OpenRequest {
    let credentials = Credentials { user: "joe".into(), password: "j".into() };
    OpenRequest {
        id: Some(id),
        database: "d".into(),
        table: table.into(),
        columns: None,
        ordered: true,
        source: None,
        credentials,
    }
}

fn payload(rows: &[u64]) -> Payload {
    Payload::Native(Bytes::from(rows.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<u8>>()))
}

impl Server {
    async fn put(&self, id: AppendId, number: u64, rows: &[u64], table: Option<&str>) -> Result<Put, AppendError> {
        let (payload, opening) = (payload(rows), table.map(|table| opening(id, table)));
        match self.service.admit(id, "joe", number, payload.size_bytes() as u64, opening).await? {
            Admitted::Repeated(put) => Ok(put),
            Admitted::Take(admission) => admission.put(payload).await,
        }
    }

    async fn commit(&self, id: AppendId, batches: u64, table: Option<&str>) -> Result<Committed, AppendError> {
        use crate::appends::commit;
        commit(&self.service, id, "joe", batches, table.map(|table| opening(id, table))).await
    }

    async fn state(&self, id: AppendId) -> State {
        self.service.status(id, "joe").await.unwrap().state()
    }
}

/// Sends every batch twice, in any order, the commit somewhere among them, all at once.
#[tokio::test(flavor = "multi_thread")]
async fn rows_land_in_order_whatever_comes_first() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let limits = match seed % 3 {
            0 => WIDE,
            // So little memory that most wait in files.
            1 => Limits { window_bytes: 64, max_memory_bytes: 128, ..WIDE },
            // No room anywhere but for the lowest.
            _ => Limits { window_bytes: 64, max_memory_bytes: 128, max_spool_bytes: 64, ..WIDE },
        };
        let server = Arc::new(server(Memory::new(), limits));
        let id = AppendId::random();
        let batches = random.u64(1..25);
        let rows = |number: u64| (0..number % 6).map(|row| number * 1000 + row).collect::<Vec<_>>();
        let mut numbers: Vec<u64> = (0..batches).chain(0..batches).collect();
        random.shuffle(&mut numbers);
        let committing = {
            let server = server.clone();
            tokio::spawn(async move { server.commit(id, batches, Some("t")).await })
        };
        let putting = numbers.into_iter().map(|number| {
            let server = server.clone();
            tokio::spawn(async move { server.put(id, number, &rows(number), Some("t")).await })
        });
        let mut repeated = 0;
        for put in putting.collect::<Vec<_>>() {
            let put = put.await.unwrap().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            repeated += u64::from(put.repeated);
        }
        let committed = committing.await.unwrap().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let expected: Vec<u64> = (0..batches).flat_map(rows).collect();
        assert_eq!(server.memory.rows("t"), expected, "seed {seed}");
        assert_eq!((committed.rows, committed.batches, repeated), (expected.len() as u64, batches, batches));
        assert_eq!(server.commit(id, batches, None).await.unwrap().rows, committed.rows, "again");
        assert_eq!(server.service.room.spool_bytes(), 0);
        assert_eq!(server.service.room.memory_bytes(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_row_is_the_end_and_is_told_to_all() {
    let server = server(Memory::new(), WIDE);
    let id = AppendId::random();
    for number in [2, 1, 0] {
        server.put(id, number, &[number, if number == 1 { BAD_ROW } else { 0 }], Some("t")).await.unwrap();
    }
    let error = server.commit(id, 3, None).await.unwrap_err();
    assert_eq!((error.exception.code, error.batch, error.row), (ErrorCode::VIOLATED_CONSTRAINT, Some(1), Some(1)));
    assert!(error.exception.line.contains("Batch 1, row 1"), "{error}");
    assert_eq!(server.put(id, 3, &[1], Some("t")).await.unwrap_err(), error);
    assert_eq!(server.state(id).await, State::Failed);
    assert!(server.memory.rows("t").is_empty());
    assert_eq!(server.service.room.memory_bytes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_aborted_stays_so() {
    let server = server(Memory::new(), WIDE);
    let (known, unknown) = (AppendId::random(), AppendId::random());
    server.put(known, 0, &[1], Some("t")).await.unwrap();
    for id in [known, unknown] {
        server.service.abort(id, "joe").await.unwrap();
        assert_eq!(server.put(id, 1, &[2], Some("t")).await.unwrap_err().status, 409, "a batch that was under way");
        assert_eq!(server.state(id).await, State::Aborted);
        server.service.abort(id, "joe").await.unwrap();
    }
    assert!(server.memory.rows("t").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_leaves_room_for_others() {
    let server = server(Memory::new(), WIDE);
    let appends = Appends::over(server.service.clone());
    let of = |user: &str| {
        let credentials = Credentials { user: user.into(), password: "p".into() };
        OpenRequest { id: None, credentials, ..opening(AppendId::random(), "t") }
    };
    let mut opened = Vec::new();
    for _ in 0..80 {
        opened.push(appends.open(of("joe")).await.unwrap().id);
    }
    let refused = appends.open(of("joe")).await.unwrap_err();
    assert_eq!((refused.status, refused.exception.code), (503, ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES));
    assert!(refused.exception.line.contains("append.max_open_per_user"), "{refused}");
    for _ in 0..20 {
        appends.open(of("eve")).await.unwrap();
    }
    assert!(appends.open(of("eve")).await.unwrap_err().exception.line.contains("append.max_open)"));
    for id in &opened[..2] {
        appends.abort(*id, "joe").await.unwrap();
    }
    appends.open(of("joe")).await.unwrap();
    appends.open(of("eve")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_source_does_not_go_on_with_an_append() {
    let server = server(Memory::new(), WIDE);
    let (appends, id) = (Appends::over(server.service.clone()), AppendId::random());
    let of = |source: &str| Some(OpenRequest { source: Some(source.into()), ..opening(id, "t") });
    appends.put(id, "joe", 0, payload(&[1]), of("a.csv")).await.unwrap();
    assert_eq!(appends.put(id, "joe", 1, payload(&[7]), of("b.csv")).await.unwrap_err().status, 409);
    assert_eq!(appends.commit(id, "joe", 1, of("b.csv")).await.unwrap_err().status, 409);
    let opened = appends.open(of("a.csv").unwrap()).await.unwrap();
    assert!(matches!(&opened.status, Status::Open(progress) if progress.source.as_deref() == Some("a.csv")));
    assert_eq!(appends.commit(id, "joe", 1, of("a.csv")).await.unwrap().rows, 1);
    assert_eq!(appends.open(of("b.csv").unwrap()).await.unwrap_err().status, 409, "it is not b.csv that is stored");
    assert_eq!(appends.commit(id, "joe", 1, None).await.unwrap().rows, 1);
    assert_eq!(server.memory.rows("t"), [1]);
}

/// Checks the order of a client that hears that its append failed, and may drop the database next.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_is_told_when_nothing_is_left_in_the_store() {
    for how in ["bad payload", "bad row", "aborted"] {
        let server = server(Memory { clearings: Arc::new(Semaphore::new(0)), ..Memory::new() }, WIDE);
        let (appends, id) = (Appends::over(server.service.clone()), AppendId::random());
        appends.put(id, "joe", 0, payload(&[1]), Some(opening(id, "t"))).await.unwrap();
        while server.memory.begun.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let telling = tokio::spawn(async move {
            match how {
                "bad payload" => drop(appends.put(id, "joe", 1, Payload::Native("cut".into()), None).await),
                "bad row" => {
                    appends.put(id, "joe", 1, payload(&[BAD_ROW]), None).await.unwrap();
                    drop(appends.commit(id, "joe", 2, None).await);
                }
                _ => appends.abort(id, "joe").await.unwrap(),
            }
        });
        while server.state(id).await == State::Open || server.state(id).await == State::Committing {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert!(!telling.is_finished(), "{how}: told before it was cleared away");
        }
        server.memory.clearings.add_permits(1);
        telling.await.unwrap();
        assert_eq!(server.memory.cleared.load(Ordering::SeqCst), 1, "{how}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_does_not_begin_to_write() {
    let server = server(Memory { line: Arc::new(Semaphore::new(0)), ..Memory::new() }, WIDE);
    let (appends, id) = (Appends::over(server.service.clone()), AppendId::random());
    appends.put(id, "joe", 0, payload(&[1]), Some(opening(id, "t"))).await.unwrap();
    appends.abort(id, "joe").await.unwrap();
    server.memory.line.add_permits(1);
    assert_eq!(server.memory.line.available_permits(), 1, "nobody stands in line any more");
    assert_eq!(server.memory.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_committed_is_not_aborted() {
    let server = server(Memory::new(), WIDE);
    let id = AppendId::random();
    assert_eq!(server.commit(id, 0, Some("t")).await.unwrap().rows, 0, "of no rows");
    assert_eq!(server.service.abort(id, "joe").await.unwrap_err().status, 409);
    assert_eq!(server.commit(id, 1, None).await.unwrap_err().status, 409);
    assert_eq!(server.put(id, 0, &[1], None).await.unwrap_err().status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_looked_up() {
    let server = server(Memory { loses_answers: true, ..Memory::new() }, WIDE);
    let id = AppendId::random();
    server.put(id, 0, &[1, 2], Some("t")).await.unwrap();
    assert_eq!(server.commit(id, 1, None).await.unwrap().rows, 2);
    assert_eq!(server.memory.rows("t"), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_in_a_commit_does_not_say_that_nothing_is_stored() {
    for (panics, rows) in [(Panics::BeforeStoring, None), (Panics::AfterStoring, Some(1))] {
        let server = server(Memory { panics, ..Memory::new() }, WIDE);
        let id = AppendId::random();
        server.put(id, 0, &[5], Some("t")).await.unwrap();
        let committed = server.commit(id, 1, None).await;
        assert_eq!(committed.ok().map(|committed| committed.rows), rows);
        assert_eq!(server.memory.rows("t").len() as u64, rows.unwrap_or(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_the_end() {
    let server = server(Memory::new(), Limits { idle_timeout_ms: 300, ..WIDE });
    let id = AppendId::random();
    server.put(id, 1, &[1], Some("t")).await.unwrap();
    let error = server.commit(id, 2, None).await.unwrap_err();
    assert_eq!((error.exception.code, error.status), (ErrorCode::TIMEOUT_EXCEEDED, 408));
    assert_eq!(server.state(id).await, State::Failed);
    assert_eq!(server.service.room.memory_bytes(), 0);
}

/// Checks a client that is there and silent. Time passes as another append shows, which is silent as well and
/// comes to its end.
#[tokio::test(flavor = "multi_thread")]
async fn silence_of_a_client_that_is_there_is_not() {
    let server = server(Memory::new(), Limits { idle_timeout_ms: 300, ..WIDE });
    let (attended, left) = (AppendId::random(), AppendId::random());
    let client = server.service.attend(opening(attended, "t")).await.unwrap();
    server.put(attended, 0, &[1], None).await.unwrap();
    for id in [left, AppendId::random()] {
        server.put(id, 1, &[1], Some("t")).await.unwrap();
        assert_eq!(server.commit(id, 2, None).await.unwrap_err().exception.code, ErrorCode::TIMEOUT_EXCEEDED);
    }
    assert_eq!(server.state(attended).await, State::Open);
    server.put(attended, 2, &[3], None).await.unwrap();
    drop(client);
    assert_eq!(server.commit(attended, 3, None).await.unwrap_err().exception.code, ErrorCode::TIMEOUT_EXCEEDED);
    let error = server.service.attend(opening(attended, "t")).await.err().unwrap();
    assert_eq!(error.exception.code, ErrorCode::TIMEOUT_EXCEEDED, "it stays at its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn others_do_not_touch_it_and_what_is_not_there_is_gone() {
    let server = server(Memory::new(), WIDE);
    let id = AppendId::random();
    assert_eq!(server.state(id).await, State::Gone);
    assert_eq!(server.put(id, 0, &[1], None).await.unwrap_err().status, 404);
    assert_eq!(server.put(id, 0, &[1], Some("missing")).await.unwrap_err().exception.code, ErrorCode::UNKNOWN_TABLE);
    let id = AppendId::random();
    server.put(id, 0, &[1], Some("t")).await.unwrap();
    assert_eq!(server.service.status(id, "eve").await.unwrap_err().status, 403);
    assert_eq!(server.service.abort(id, "eve").await.unwrap_err().status, 403);
    assert_eq!(server.put(id, 1, &[1], Some("other")).await.unwrap_err().status, 409, "of another table");
    assert!(matches!(server.service.status(id, "joe").await, Ok(Status::Open(progress)) if progress.next == 1));
    let users: Vec<String> = server.service.list().into_iter().map(|(user, _)| user).collect();
    assert_eq!(users, ["joe"]);
}

/// Checks a store that stands still, with memory and files full: other batches are told to wait, the lowest
/// is taken.
#[tokio::test(flavor = "multi_thread")]
async fn the_lowest_missing_batch_is_always_let_in() {
    let memory = Memory { permits: Arc::new(Semaphore::new(0)), ..Memory::new() };
    let limits = Limits { window_bytes: 32, max_memory_bytes: 32, max_spool_bytes: 32, room_wait_ms: 20, ..WIDE };
    let server = server(memory, limits);
    let id = AppendId::random();
    for number in 1..=8 {
        server.put(id, number, &[number], Some("t")).await.unwrap();
    }
    let refused = server.put(id, 9, &[9], None).await.unwrap_err();
    assert_eq!(
        (refused.exception.code, refused.status, refused.retry_after_seconds),
        (ErrorCode::MEMORY_LIMIT_EXCEEDED, 503, Some(1))
    );
    assert_eq!(server.service.room.memory_bytes() + server.service.room.spool_bytes(), 64);
    assert_eq!(server.put(id, 0, &[0], None).await.unwrap().next, 9);
    server.memory.permits.add_permits(100);
    server.put(id, 9, &[9], None).await.unwrap();
    server.commit(id, 10, None).await.unwrap();
    assert_eq!(server.memory.rows("t"), (0..10).collect::<Vec<_>>());
    assert_eq!(server.service.room.spool_bytes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_loses_nothing() {
    let server = server(Memory::new(), Limits { window_bytes: 8, max_memory_bytes: 8, ..WIDE });
    let id = AppendId::random();
    server.put(id, 1, &[1], Some("t")).await.unwrap();
    // Nothing can be written there any more.
    std::fs::remove_dir_all(server.directory.join("spool")).unwrap();
    let refused = server.put(id, 2, &[2], None).await.unwrap_err();
    assert_eq!((refused.exception.code, refused.status), (ErrorCode::NOT_ENOUGH_SPACE, 503));
    assert_eq!(server.service.room.spool_bytes(), 0, "what was not written takes no room");
    server.put(id, 0, &[0], None).await.unwrap();
    server.put(id, 2, &[2], None).await.unwrap();
    server.commit(id, 3, None).await.unwrap();
    assert_eq!(server.memory.rows("t"), [0, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_at_the_end_is_dropped_and_what_is_whole_is_stored() {
    let memory = Memory { permits: Arc::new(Semaphore::new(0)), ..Memory::new() };
    let server = Arc::new(server(memory, WIDE));
    let (whole, partial) = (AppendId::random(), AppendId::random());
    server.put(whole, 0, &[1], Some("t")).await.unwrap();
    server.put(partial, 0, &[2], Some("t")).await.unwrap();
    let waiting = {
        let server = server.clone();
        tokio::spawn(async move { server.commit(whole, 1, None).await })
    };
    let committing = server.service.find(whole, "joe", None, &mut false).await.unwrap();
    let Found::Open(append) = committing else { panic!("it is open") };
    while !append.is_whole() {
        tokio::task::yield_now().await;
    }
    server.memory.permits.add_permits(10);
    server.service.shut_down().await;
    assert_eq!(waiting.await.unwrap().unwrap().rows, 1);
    assert!(matches!(append.end(), Some(End::Committed(_))));
    assert_eq!(server.state(partial).await, State::Failed);
    assert_eq!(server.put(AppendId::random(), 0, &[1], Some("t")).await.unwrap_err().status, 503);
    assert_eq!(server.memory.rows("t"), [1]);
}
