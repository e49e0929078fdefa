//! Sends an append: batches over several connections at once, and the commit beside them.
//!
//! Nothing waits for an answer that isn't needed. The first batches open the append themselves, by naming the table; the
//! commit goes out as soon as the number of batches is known, on a connection of its own, and the server lets it wait for
//! the batches it counts. So a small append takes one round trip.
//!
//! Every request may be sent again: batches are known by their numbers, the commit by the append's id. Once the server
//! has answered, no request names the table any more, so that a server that was restarted, and has lost what it held,
//! says so instead of beginning anew; and a commit whose answer was lost first asks what became of the append.

mod failure;
mod outbox;
mod requests;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use windrow_client::Client;
use windrow_exception::Exception;

use crate::id::AppendId;
use crate::options::{AppendOptions, Progress};
use crate::pipeline::{self, Event, OpenSource, PipelineOptions, Window};
use crate::source::{needs_columns, open_files, FileOptions, Source, SourceError};
pub use failure::{AppendFailure, Why};
use outbox::{pause_before, Job, Outbox};
use requests::{Requests, Status, Totals, Trouble};

/// What is appended.
pub enum Input {
    Source(Box<dyn Source>),
    /// One after the other; the columns of CSV files are read by the types of the table's.
    Files {
        paths: Vec<std::path::PathBuf>,
        format: Option<crate::source::FileFormat>,
    },
}

/// An append that is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    pub id: AppendId,
    pub rows: u64,
    /// Of the batches as they were sent, unpacked.
    pub bytes: u64,
    pub batches: u64,
    /// From the call to the end.
    pub seconds: f64,
    /// What became visible at one moment: `all`, or each `partition`, or each `block` for itself.
    pub atomic: String,
    /// It had been committed before this call.
    pub was_committed: bool,
}

/// Appends all of `input` to `table` (`table` or `database.table`), in its order: all of it is stored, or nothing.
///
/// Connections come from the client's pool and go back to it. Dropping the future drops the append, on the server too.
pub async fn append(
    client: &Arc<Client>,
    table: &str,
    input: Input,
    options: AppendOptions,
) -> Result<Appended, AppendFailure> {
    let begin = Instant::now();
    let id = options.id.unwrap_or_else(AppendId::random);
    let requests = Requests::new(client.clone(), id, table, options.columns.as_deref(), options.ordered);
    let sending = Sending {
        requests,
        outbox: Outbox::new(options.faults),
        window: Window::new(options.window_bytes),
        progress: Mutex::default(),
        last_success: Mutex::new(Instant::now()),
        options,
    };
    let sending = Arc::new(sending);
    let mut guard = DropGuard { sending: Some(sending.clone()) };
    let outcome = match sending.clone().run(input).await {
        Err(why) => sending.unless_committed(why).await,
        outcome => outcome,
    };
    sending.window.close();
    guard.sending = None;
    if let Err(Why::Source(_)) = &outcome {
        // If this doesn't get through, the server drops it after a while.
        let _ = sending.requests.abort().await;
    }
    let seconds = begin.elapsed().as_secs_f64();
    match outcome {
        Ok(done) => {
            let Totals { rows, bytes, batches, atomic, .. } = done.totals;
            Ok(Appended { id, rows, bytes, batches, seconds, atomic, was_committed: done.was_committed })
        }
        Err(why) => Err(AppendFailure { id, why }),
    }
}

/// Drops an append on the server: nothing of it is stored. False: it is committed, and stays.
pub async fn abort(client: &Arc<Client>, id: AppendId) -> Result<bool, AppendFailure> {
    let requests = Requests::new(client.clone(), id, "", None, true);
    match requests.abort().await {
        Ok(()) => Ok(true),
        Err(Trouble::Final(Why::Gone)) => Ok(true),
        Err(Trouble::Final(Why::Refused { .. })) => Ok(false),
        Err(Trouble::Final(why)) => Err(AppendFailure { id, why }),
        Err(Trouble::Again { text, .. }) => {
            Err(AppendFailure { id, why: Why::Unreachable { last_error: text, commit_sent: false } })
        }
    }
}

/// An append that nobody waits for any more is dropped on the server too.
struct DropGuard {
    sending: Option<Arc<Sending>>,
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        let Some(sending) = self.sending.take() else { return };
        sending.window.close();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { sending.requests.abort().await.is_ok() });
        }
    }
}

struct Done {
    totals: Totals,
    was_committed: bool,
}

struct Sending {
    requests: Requests,
    outbox: Outbox,
    window: Arc<Window>,
    progress: Mutex<Progress>,
    last_success: Mutex<Instant>,
    options: AppendOptions,
}

impl Sending {
    async fn run(self: Arc<Self>, input: Input) -> Result<Done, Why> {
        let mut known = None;
        if self.options.resume {
            let status = self.persist(|| self.requests.status()).await?;
            match status.state.as_str() {
                "gone" | "aborted" => {}
                _ => {
                    self.requests.is_known();
                    known = Some(status);
                }
            }
        }
        match known.as_ref().map(|status| status.state.as_str()) {
            Some("failed") => return Err(known.map_or(Why::Gone, |status| stored_error(&status))),
            Some("committed" | "committing") => {
                let totals = self.end_of_commit().await?;
                return Ok(Done { totals, was_committed: true });
            }
            _ => {}
        }
        let open = self.open_source(input, known.as_ref()).await?;
        let received = known.map(|status| status.received).unwrap_or_default();
        let options =
            PipelineOptions { batch_bytes: self.options.batch_bytes, compression: self.options.compression, received };
        self.send_all(open, options).await
    }

    /// What the thread that reads begins with. Only files whose types the table decides need the server's answer.
    async fn open_source(&self, input: Input, known: Option<&Status>) -> Result<OpenSource, Why> {
        let (paths, format) = match input {
            Input::Source(source) => return Ok(Box::new(move || Ok(source))),
            Input::Files { paths, format } => (paths, format),
        };
        let columns = match needs_columns(&paths, format).map_err(Why::Source)? {
            false => None,
            true => match known {
                Some(status) => Some(status.columns.clone()),
                None => Some(self.persist(|| self.requests.open()).await?.columns),
            },
        };
        Ok(Box::new(move || open_files(&paths, &FileOptions { format, columns })))
    }

    async fn send_all(self: Arc<Self>, open: OpenSource, options: PipelineOptions) -> Result<Done, Why> {
        let (sender, mut events) = unbounded_channel();
        pipeline::start(open, options, self.window.clone(), sender);
        // All of these end with this function, however it ends.
        let mut tasks: JoinSet<Result<Option<Totals>, Why>> = JoinSet::new();
        let (mut senders, mut source_ended, mut all_encoded) = (0, false, false);
        loop {
            tokio::select! {
                event = events.recv(), if !all_encoded => match event {
                    Some(Event::Batch(batch)) => {
                        self.outbox.put(batch);
                        if senders < self.options.connections.max(1) {
                            senders += 1;
                            tasks.spawn(self.clone().send_batches());
                        }
                    }
                    Some(Event::End { batches }) => {
                        source_ended = true;
                        self.tell(|progress| progress.all_batches = Some(batches));
                        let sending = self.clone();
                        tasks.spawn(async move { sending.committed(batches).await.map(Some) });
                    }
                    Some(Event::Began { whole_bytes }) => self.tell(|progress| progress.whole_bytes = whole_bytes),
                    Some(Event::Skipped { rows }) => self.tell(|progress| {
                        progress.rows += rows;
                        progress.batches += 1;
                    }),
                    Some(Event::Failed(error)) => return Err(Why::Source(error)),
                    None if source_ended => {
                        all_encoded = true;
                        self.outbox.end();
                    }
                    None => return Err(Why::Source(SourceError::new("the source broke off"))),
                },
                Some(task) = tasks.join_next() => match task {
                    Ok(Ok(Some(totals))) => return Ok(Done { totals, was_committed: false }),
                    Ok(Ok(None)) => {}
                    Ok(Err(why)) => return Err(why),
                    // Nothing here panics; if it does, whoever called is told.
                    Err(error) => return Err(unreachable_server(error.to_string(), true)),
                },
            }
        }
    }

    /// One of the connections: sends what is next until all is acknowledged.
    async fn send_batches(self: Arc<Self>) -> Result<Option<Totals>, Why> {
        while let Some(job) = self.outbox.take().await {
            match self.send_batch(&job).await {
                Ok(()) => {
                    self.acknowledged(&job);
                    self.outbox.done();
                }
                Err(Trouble::Again { text, wait }) => {
                    self.still_patient(text, false)?;
                    self.outbox.put_back(job, wait);
                }
                Err(Trouble::Final(why)) => return Err(why),
            }
        }
        Ok(None)
    }

    async fn send_batch(&self, job: &Job) -> Result<(), Trouble> {
        let fate = self.options.faults.map(|faults| faults.fate(job.batch.number, job.attempt)).unwrap_or_default();
        tokio::time::sleep(fate.delay).await;
        self.requests.put(job.batch.number, &job.batch.body, fate).await?;
        if fate.repeat {
            self.requests.put(job.batch.number, &job.batch.body, Default::default()).await?;
        }
        Ok(())
    }

    fn acknowledged(&self, job: &Job) {
        *lock(&self.last_success) = Instant::now();
        self.tell(|progress| {
            progress.rows += job.batch.rows;
            progress.batches += 1;
            progress.bytes_sent += job.batch.body.len() as u64;
            progress.bytes_acknowledged += job.batch.body.len() as u64;
        });
    }

    /// Sends the commit until the server says what became of the append.
    async fn committed(&self, batches: u64) -> Result<Totals, Why> {
        let mut attempt = 0;
        loop {
            let text = match self.requests.commit(batches).await {
                Ok(totals) => return Ok(totals),
                Err(Trouble::Final(why)) => return Err(why),
                Err(Trouble::Again { text, .. }) => text,
            };
            self.still_patient(text, true)?;
            pause_before(attempt).await;
            attempt += 1;
            if let Some(totals) = self.what_became_of_it().await? {
                return Ok(totals);
            }
        }
    }

    /// Waits for the end of a commit that is under way without us.
    async fn end_of_commit(&self) -> Result<Totals, Why> {
        let mut attempt = 0;
        loop {
            let status = self.persist(|| self.requests.status()).await?;
            match (status.state.as_str(), status.totals) {
                ("committed", Some(totals)) => return Ok(totals),
                ("committing", _) => *lock(&self.last_success) = Instant::now(),
                _ => return Err(Why::Gone),
            }
            attempt += 1;
            pause_before(attempt).await;
        }
    }

    /// A batch that comes again, since its answer was lost, may come after the commit, and be refused for it.
    async fn unless_committed(&self, why: Why) -> Result<Done, Why> {
        let may_be = lock(&self.progress).all_batches.is_some() && !matches!(why, Why::Source(_));
        if may_be {
            if let Ok(Status { totals: Some(totals), .. }) = self.requests.status().await {
                return Ok(Done { totals, was_committed: false });
            }
        }
        Err(why)
    }

    /// After a commit without an answer. `None`: it is to be sent again.
    async fn what_became_of_it(&self) -> Result<Option<Totals>, Why> {
        let status = match self.requests.status().await {
            Ok(status) => status,
            Err(Trouble::Final(why)) => return Err(why),
            // The next commit is without an answer too, and counts.
            Err(Trouble::Again { .. }) => return Ok(None),
        };
        *lock(&self.last_success) = Instant::now();
        let acknowledged = lock(&self.progress).batches;
        match status.state.as_str() {
            "committed" => Ok(status.totals),
            "failed" => Err(stored_error(&status)),
            // Before anything was acknowledged it may simply not have come yet.
            "gone" | "aborted" if acknowledged > 0 => Err(Why::Gone),
            _ => Ok(None),
        }
    }

    /// Asks until there is an answer.
    async fn persist<T, F: std::future::Future<Output = Result<T, Trouble>>>(
        &self,
        ask: impl Fn() -> F,
    ) -> Result<T, Why> {
        let mut attempt = 0;
        loop {
            match ask().await {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Final(why)) => return Err(why),
                Err(Trouble::Again { text, .. }) => self.still_patient(text, false)?,
            }
            pause_before(attempt).await;
            attempt += 1;
        }
    }

    fn still_patient(&self, text: String, commit_sent: bool) -> Result<(), Why> {
        if lock(&self.last_success).elapsed() < self.options.retry_for {
            return Ok(());
        }
        let commit_sent = commit_sent || lock(&self.progress).all_batches.is_some();
        Err(unreachable_server(text, commit_sent))
    }

    fn tell(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = lock(&self.progress);
        change(&mut progress);
        let now = *progress;
        drop(progress);
        if let Some(on_progress) = &self.options.on_progress {
            on_progress(&now);
        }
    }
}

fn unreachable_server(last_error: String, commit_sent: bool) -> Why {
    Why::Unreachable { last_error, commit_sent }
}

/// The first error of an append that has failed.
fn stored_error(status: &Status) -> Why {
    match &status.error {
        None => Why::Gone,
        Some(error) => {
            let exception = Exception { code: error.code, line: error.text.clone(), before_writing: false };
            Why::Refused { exception, batch: error.batch, row: error.row }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing is done under these locks that could leave them half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
