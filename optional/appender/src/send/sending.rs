//! The course of an append: which requests are sent when, and what is done about those that get lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use windrow_clickhouse::{ErrorCode, Exception};

use super::failure::Why;
use super::outbox::{pause_before, Job, Outbox};
use super::requests::{Cause, Requests, Status, Totals, Trouble};
use super::telling::Telling;
use super::Input;
use crate::options::AppendOptions;
use crate::pipeline::{self, Event, OpenSource, PipelineOptions, Window};
use crate::source::{needs_columns, open_files, FileOptions, SourceError};

/// The time that trouble lasts before it is told: trouble that passes sooner is not worth anybody's attention.
const WORTH_TELLING: Duration = Duration::from_millis(300);

pub(super) struct Done {
    pub(super) totals: Totals,
    pub(super) was_committed: bool,
}

/// One append from its begin to its end.
pub(super) struct Sending {
    pub(super) requests: Requests,
    outbox: Outbox,
    pub(super) window: Arc<Window>,
    telling: Telling,
    /// The time since which nothing gets through.
    trouble_since: Mutex<Option<Instant>>,
    options: AppendOptions,
}

impl Sending {
    pub(super) fn new(requests: Requests, options: AppendOptions) -> Sending {
        Sending {
            requests,
            outbox: Outbox::new(options.faults),
            window: Window::new(options.window_bytes),
            telling: Telling::new(options.on_progress.clone()),
            trouble_since: Mutex::default(),
            options,
        }
    }

    pub(super) async fn run(self: Arc<Self>, input: Input) -> Result<Done, Why> {
        let mut known = None;
        if self.options.resume {
            let status = self.persist(|| self.requests.status()).await?;
            match status.state.as_str() {
                "gone" | "unknown" | "aborted" => {}
                state => {
                    if matches!(state, "open" | "committed") {
                        // The server compares: it refuses another source, table or other options.
                        self.persist(|| self.requests.open()).await?;
                    }
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

    /// Returns the function that opens the source on the thread that reads. Only files whose types the table
    /// decides need the server's answer.
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
        let options = FileOptions { format, columns, delimiter: self.options.delimiter };
        Ok(Box::new(move || open_files(&paths, &options)))
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
                        self.telling.tell(|progress| progress.all_batches = Some(batches));
                        let sending = self.clone();
                        tasks.spawn(async move { sending.committed(batches).await.map(Some) });
                    }
                    Some(Event::Began { whole_bytes }) => self.telling.tell(|progress| progress.whole_bytes = whole_bytes),
                    Some(Event::Skipped { rows }) => self.telling.tell(|progress| {
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
                    Ok(Ok(Some(totals))) => {
                        // Answers to the last batches may still be on their way.
                        self.telling.end(|progress| {
                            progress.rows = progress.rows.max(totals.rows);
                            progress.batches = totals.batches;
                        });
                        return Ok(Done { totals, was_committed: false });
                    }
                    Ok(Ok(None)) => {}
                    Ok(Err(why)) => return Err(why),
                    // Nothing here panics; if it does, whoever called is told.
                    Err(error) => return Err(self.requests.unreachable(&Cause::Answered(error.to_string()))),
                },
            }
        }
    }

    /// Sends batches over one of the connections until all are acknowledged.
    async fn send_batches(self: Arc<Self>) -> Result<Option<Totals>, Why> {
        while let Some(job) = self.outbox.take().await {
            match self.send_batch(&job).await {
                Ok(()) => {
                    self.acknowledged(&job);
                    self.outbox.done();
                }
                Err(Trouble::Again { cause, wait }) => {
                    self.still_patient(&cause)?;
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
        self.got_through();
        self.telling.tell(|progress| {
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
            match self.requests.commit(batches).await {
                Ok(totals) => return Ok(totals),
                Err(Trouble::Final(why)) => return Err(why),
                Err(Trouble::Again { cause, .. }) => self.still_patient(&cause)?,
            }
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
                ("committing", _) => {}
                _ => return Err(Why::Gone),
            }
            attempt += 1;
            pause_before(attempt).await;
        }
    }

    /// Looks whether a failed append is committed all the same. A batch that comes again, since its answer
    /// was lost, may come after the commit, and be refused for it.
    pub(super) async fn unless_committed(&self, why: Why) -> Result<Done, Why> {
        let may_be = self.telling.now().all_batches.is_some() && !matches!(why, Why::Source(_));
        if may_be {
            if let Ok(Status { totals: Some(totals), .. }) = self.requests.status().await {
                return Ok(Done { totals, was_committed: false });
            }
        }
        Err(why)
    }

    /// Asks what became of an append after a commit without an answer. Returns `None` if the commit is to be
    /// sent again.
    async fn what_became_of_it(&self) -> Result<Option<Totals>, Why> {
        // Before the question: a batch may open the append between the answer and our reading it.
        let acknowledged = self.telling.now().batches;
        let status = match self.requests.status().await {
            Ok(status) => status,
            Err(Trouble::Final(why)) => return Err(why),
            // The next commit is without an answer too, and counts.
            Err(Trouble::Again { .. }) => return Ok(None),
        };
        self.got_through();
        match status.state.as_str() {
            "committed" => Ok(status.totals),
            "failed" => Err(stored_error(&status)),
            // Before anything was acknowledged it may simply not have come yet.
            "gone" | "unknown" | "aborted" if acknowledged > 0 => Err(Why::Gone),
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
                Ok(answer) => {
                    self.got_through();
                    return Ok(answer);
                }
                Err(Trouble::Final(why)) => return Err(why),
                Err(Trouble::Again { cause, .. }) => self.still_patient(&cause)?,
            }
            pause_before(attempt).await;
            attempt += 1;
        }
    }

    fn got_through(&self) {
        *lock(&self.trouble_since) = None;
    }

    fn still_patient(&self, cause: &Cause) -> Result<(), Why> {
        let since = *lock(&self.trouble_since).get_or_insert_with(Instant::now);
        let patience = match self.requests.was_reached() {
            true => self.options.retry_for,
            false => self.options.connect_for,
        };
        if since.elapsed() >= patience {
            return Err(self.requests.unreachable(cause));
        }
        if let (Some(on_waiting), true) = (&self.options.on_waiting, since.elapsed() >= WORTH_TELLING) {
            on_waiting(&format!("{} ({})", self.requests.client.endpoint().authority(), cause.in_short()));
        }
        Ok(())
    }
}

/// Returns the first error of an append that has failed.
fn stored_error(status: &Status) -> Why {
    match &status.error {
        None => Why::Gone,
        Some(error) => {
            let exception =
                Exception { code: ErrorCode::from_number(error.code), line: error.text.clone(), before_writing: false };
            Why::Refused { exception, batch: error.batch, row: error.row }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing is done under these locks that could leave them half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
