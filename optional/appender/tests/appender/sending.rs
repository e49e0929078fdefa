//! Appends against a server that keeps the contract, on networks that keep nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{Deed, Server};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use windrow_appender::{
    abort, append, AppendId, AppendOptions, BatchesSource, Faults, Input, Progress, Source, SourceError, Why,
};
use windrow_clickhouse::ErrorCode;

fn numbers(from: i64, to: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

fn input(rows: i64) -> Input {
    let batch = numbers(0, rows);
    Input::Source(Box::new(BatchesSource::new(batch.schema(), vec![batch]).unwrap()))
}

fn small_batches() -> AppendOptions {
    AppendOptions { batch_bytes: 400, id: Some(AppendId::random()), ..AppendOptions::default() }
}

fn arrived(server: &Server, options: &AppendOptions) -> RecordBatch {
    let batches = server.rows(&options.id.unwrap().to_string()).expect("it is committed");
    concat_batches(&numbers(0, 0).schema(), &batches).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_append_waits_for_no_answer_before_it_commits() {
    // The answers to the batches come after the commit: who waits for them waits for ever.
    let server = Server::start(|_, asked| if asked.number().is_some() { Deed::AfterCommit } else { Deed::Serve });
    let options = AppendOptions { id: Some(AppendId::random()), ..AppendOptions::default() };
    let appended = append(&server.client(), "d.t", input(1_000_000), options.clone()).await.unwrap();
    assert_eq!((appended.batches, appended.atomic.as_str()), (8, "all"));
    assert_eq!(arrived(&server, &options), numbers(0, 1_000_000));
    assert_eq!(server.asked().len(), 9, "eight batches and the commit, and nothing else");
    // Until the first answer each request can open the append.
    assert_eq!(server.asked()[0].query["table"], "d.t");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_of_no_rows_is_one_commit() {
    let server = Server::start(|_, _| Deed::Serve);
    let appended = append(&server.client(), "t", input(0), small_batches()).await.unwrap();
    assert_eq!(appended.batches, 0);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_bad_networks_and_every_row_arrives_in_order() {
    for seed in 0..100 {
        let server = Server::start(move |count, asked| {
            let mut dice = fastrand::Rng::with_seed(seed * 1_000_003 + count);
            match dice.u8(0..20) {
                0 if asked.method == "POST" => Deed::LoseAnswer,
                1 if asked.number().is_some() => Deed::Refuse(503),
                _ => Deed::Serve,
            }
        });
        let faults = Faults { seed, delay_ms: 1, drop: 0.1, repeat: 0.1, reorder: 0.2, cut: 0.1 };
        let options = AppendOptions { faults: Some(faults), window_bytes: 4000, ..small_batches() };
        let appended = append(&server.client(), "t", input(1000), options.clone()).await;
        assert_eq!(
            appended.map(|appended| appended.batches).map_err(|failure| failure.to_string()),
            Ok(20),
            "seed {seed}"
        );
        assert_eq!(arrived(&server, &options), numbers(0, 1000), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_names_batch_and_row_and_ends_it() {
    let server = Server::start(|_, asked| if asked.number() == Some(7) { Deed::Violate } else { Deed::Serve });
    let failure = append(&server.client(), "t", input(1000), small_batches()).await.unwrap_err();
    let Why::Refused { exception, .. } = &failure.why else { panic!("{failure:?}") };
    assert_eq!(exception.code, ErrorCode::VIOLATED_CONSTRAINT);
    assert!(!failure.is_resumable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lost_what_it_held_is_not_taken_for_one_that_holds_it() {
    // It forgets everything when the last batch comes; all before it are acknowledged by then, since the window is
    // small.
    let server = Server::start(|_, asked| if asked.number() == Some(19) { Deed::Restart } else { Deed::Serve });
    let options = AppendOptions { window_bytes: 400, ..small_batches() };
    let failure = append(&server.client(), "t", input(1000), options.clone()).await.unwrap_err();
    assert!(matches!(failure.why, Why::Gone), "{failure:?}");
    assert!(server.rows(&options.id.unwrap().to_string()).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_holds_already_is_not_sent_again() {
    let away = Arc::new(AtomicU64::new(0));
    let is_away = away.clone();
    // After twelve requests the server is out of reach until the test says otherwise.
    let server = Server::start(move |count, _| match count >= 12 && is_away.load(Ordering::Relaxed) == 0 {
        true => Deed::Refuse(503),
        false => Deed::Serve,
    });
    let options = AppendOptions { retry_for: Duration::ZERO, connections: 1, ..small_batches() };
    let failure = append(&server.client(), "t", input(1000), options.clone()).await.unwrap_err();
    assert!(failure.is_resumable(), "{failure:?}");
    away.store(1, Ordering::Relaxed);
    let before = server.asked().len();
    let options = AppendOptions { resume: true, retry_for: Duration::from_secs(60), ..options };
    append(&server.client(), "t", input(1000), options.clone()).await.unwrap();
    assert_eq!(arrived(&server, &options), numbers(0, 1000));
    let sent_again = server.asked()[before..].iter().filter(|asked| asked.number().is_some()).count();
    assert!((1..20).contains(&sent_again), "{sent_again} batches sent");
    // A third time finds it committed.
    assert!(append(&server.client(), "t", input(1000), options).await.unwrap().was_committed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_is_given_up_is_dropped_on_the_server() {
    let server = Server::start(|_, asked| if asked.number().is_some() { Deed::AfterCommit } else { Deed::Serve });
    // The window is full after one batch, whose answer waits for a commit that never comes.
    let options = AppendOptions { window_bytes: 400, ..small_batches() };
    let client = server.client();
    let task = tokio::spawn(async move { append(&client, "t", input(1000), options).await });
    let server = tokio::task::spawn_blocking(move || {
        server.wait_for(|asked| asked.number().is_some());
        server
    });
    let server = server.await.unwrap();
    task.abort();
    tokio::task::spawn_blocking(move || server.wait_for(|asked| asked.method == "DELETE")).await.unwrap();
}

struct Broken(i64);

impl Source for Broken {
    fn schema(&self) -> SchemaRef {
        numbers(0, 0).schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        self.0 += 1;
        match self.0 {
            10 => Err(SourceError::new("no more of this")),
            n => Ok(Some(numbers(n * 100, n * 100 + 100))),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_breaks_leaves_nothing() {
    let server = Server::start(|_, _| Deed::Serve);
    let failure = append(&server.client(), "t", Input::Source(Box::new(Broken(0))), small_batches()).await.unwrap_err();
    assert_eq!(failure.to_string(), "no more of this");
    assert!(server.asked().iter().any(|asked| asked.method == "DELETE"));
    assert!(!server.asked().iter().any(crate::support::Asked::is_commit));
    assert!(abort(&server.client(), failure.id).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_told_and_ends_with_all_of_it() {
    let server = Server::start(|_, _| Deed::Serve);
    let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let telling = told.clone();
    let on_progress = Arc::new(move |progress: &Progress| telling.lock().unwrap().push(*progress));
    let options = AppendOptions { on_progress: Some(on_progress), ..small_batches() };
    append(&server.client(), "t", input(1000), options).await.unwrap();
    let told = told.lock().unwrap();
    assert!(told.windows(2).all(|pair| pair[0].rows <= pair[1].rows));
    assert!(told.iter().any(|progress| progress.all_batches == Some(20)));
    assert!(told.last().unwrap().rows > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_kept_for_the_next_append() {
    let server = Server::start(|_, _| Deed::Serve);
    let client = server.client();
    for _ in 0..20 {
        let options = AppendOptions { id: Some(AppendId::random()), ..AppendOptions::default() };
        append(&client, "t", input(50_000), options.clone()).await.unwrap();
        assert_eq!(arrived(&server, &options), numbers(0, 50_000));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_never_there_is_not_waited_for_as_one_that_went_away() {
    let closed = crate::support::ClosedAddress::take();
    let client = crate::support::client_of(&closed.address);
    let options = AppendOptions { connect_for: Duration::ZERO, ..small_batches() };
    assert_eq!(options.retry_for, Duration::from_secs(120));
    let failure = append(&client, "t", input(10), options).await.unwrap_err();
    assert!(failure.is_resumable());
    assert!(
        matches!(failure.why, Why::Unreachable { reached: false, commit_sent: false, .. }),
        "nothing was sent, the commit neither: {failure:?}"
    );
    let address = client.endpoint().to_string();
    assert_eq!(failure.to_string(), format!("cannot connect to {address}: connection refused; nothing was sent"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_server_is_told_and_finds_it_when_it_comes() {
    let closed = crate::support::ClosedAddress::take();
    let address = closed.address.clone();
    let closed = Mutex::new(Some(closed));
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let started: Arc<Mutex<Option<Server>>> = Arc::default();
    let (telling, starting) = (told.clone(), started.clone());
    let on_waiting = Arc::new(move |text: &str| {
        telling.lock().unwrap().push(text.to_owned());
        if let Some(closed) = closed.lock().unwrap().take() {
            *starting.lock().unwrap() = Some(Server::start_on(closed.listen(), |_, _| Deed::Serve));
        }
    });
    let options = AppendOptions { on_waiting: Some(on_waiting), ..small_batches() };
    append(&crate::support::client_of(&address), "t", input(1000), options.clone()).await.unwrap();
    assert_eq!(told.lock().unwrap()[0], format!("{address} (connection refused)"));
    assert_eq!(arrived(started.lock().unwrap().as_ref().unwrap(), &options), numbers(0, 1000));
}

/// A source that gives its second batch when so much time has gone by that an impatient sender would have
/// given up.
struct Slow {
    begin: Instant,
    given: i64,
}

const IMPATIENT: Duration = Duration::from_millis(50);

impl Source for Slow {
    fn schema(&self) -> SchemaRef {
        numbers(0, 0).schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        while self.given == 1 && self.begin.elapsed() < IMPATIENT * 2 {
            std::thread::yield_now();
        }
        self.given += 1;
        Ok((self.given <= 2).then(|| numbers(self.given * 50 - 50, self.given * 50)))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_source_costs_no_patience() {
    let lost = AtomicU64::new(0);
    let server = Server::start(move |_, asked| match asked.number() {
        Some(1) if lost.fetch_add(1, Ordering::Relaxed) == 0 => Deed::LoseAnswer,
        _ => Deed::Serve,
    });
    let options = AppendOptions { retry_for: IMPATIENT, ..small_batches() };
    let source = Slow { begin: Instant::now(), given: 0 };
    append(&server.client(), "t", Input::Source(Box::new(source)), options.clone()).await.unwrap();
    assert_eq!(arrived(&server, &options), numbers(0, 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_ends_with_all_batches_whichever_answer_comes_first() {
    let server = Server::start(|_, asked| if asked.number() == Some(0) { Deed::LoseAnswer } else { Deed::Serve });
    let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let telling = told.clone();
    let on_progress = Arc::new(move |progress: &Progress| telling.lock().unwrap().push(*progress));
    // Batch 0 is never answered but by a refusal, since it is lost again and again until the commit.
    let options = AppendOptions { on_progress: Some(on_progress), ..small_batches() };
    append(&server.client(), "t", input(1000), options).await.unwrap();
    assert_eq!(told.lock().unwrap().last().unwrap().batches, 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_opens_the_append_says_what_the_source_is() {
    let server = Server::start(|_, _| Deed::Serve);
    let options = AppendOptions { source: Some("numbers to 1000".to_owned()), ..small_batches() };
    append(&server.client(), "t", input(1000), options.clone()).await.unwrap();
    let options = AppendOptions { resume: true, ..options };
    append(&server.client(), "t", input(1000), options).await.unwrap();
    for asked in server.asked() {
        let source = asked.query.get("source").map(String::as_str);
        assert_eq!(source, asked.query.contains_key("table").then_some("numbers%20to%201000"), "{asked:?}");
    }
    // Whoever goes on with it lets the server compare.
    assert!(server.asked().iter().any(|asked| asked.method == "POST" && asked.query.contains_key("id")));
}
