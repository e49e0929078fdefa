//! ClickHouse as a target of appends.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windrow_clickhouse::{CallError, Client, Credentials, ErrorCode};

use super::look;
use super::publication::Publication;
use super::publish::{Ending, Publisher};
use super::read::{self, Batch};
use super::record::{End, Event};
use super::server::{failure, may_not, may_not_insert, persist, Server, Session};
use super::staging::{KeptBack, Staging};
use super::state_log::{now_ms, AppendState, StateLog};
use super::statements::{drop_table, exists, insert_nothing, Name};
use super::table::{self, Table, TableError};
use crate::answer::{Atomicity, Column};
use crate::error::AppendError;
use crate::id::AppendId;
use crate::request::{OpenRequest, Payload};
use crate::target::{CommitFailure, Held, Outcome, Read, Target, Totals, Transaction};

/// The time that a client that commits waits for a certain end; then the append goes on being committed
/// without it.
const COMMIT_WAIT: Duration = Duration::from_secs(300);
const QUESTION_PATIENCE: Duration = Duration::from_secs(10);
/// The time for which dropping a staging table is tried. Then the table stays until the next start.
const CLEAR_PATIENCE: Duration = Duration::from_secs(600);
const CLEAR_WAIT: Duration = Duration::from_secs(5);
/// The time that appends that are being finished may take when the gateway ends.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(crate) struct ClickHouse {
    server: Server,
    state_log: StateLog,
    kept_back: KeptBack,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

/// A staging table that is being dropped.
struct Clearing(oneshot::Receiver<()>);

impl Clearing {
    /// Waits until it is dropped, for a while: a server that is away must not hold up the answer to a client
    /// that waits for the append's end.
    async fn wait(self) {
        let _ = tokio::time::timeout(CLEAR_WAIT, self.0).await;
    }
}

/// An append that is being filled.
pub(crate) struct Filling {
    target: ClickHouse,
    staging: Staging,
    user: String,
    /// True if its staging table is to be dropped when this value is.
    is_left: bool,
}

impl ClickHouse {
    /// Opens the store. Reads the state log. Blocks.
    pub(crate) fn open(directory: &Path, client: Arc<Client>, own: Credentials) -> Result<ClickHouse, String> {
        let state_log = StateLog::open(directory)?;
        Ok(ClickHouse {
            server: Server::new(client, own),
            state_log,
            kept_back: KeptBack::default(),
            tasks: Arc::default(),
        })
    }

    fn spawn(&self, task: impl std::future::Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Drops what is left of the staging table, beside everything else.
    fn clear(&self, id: AppendId, session: Session, target: Name) -> Clearing {
        let this = self.clone();
        let (tell, told) = oneshot::channel::<()>();
        self.spawn(async move {
            let _tell = tell;
            let cleared = persist(CLEAR_PATIENCE, || async {
                for name in look::staging_tables(&session, &target, id).await? {
                    session.run(&drop_table(&name)).await?;
                }
                Ok(())
            });
            let written = match cleared.await {
                Ok(()) => this.state_log.write(id, Event::Cleared).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = written {
                tracing::warn!(append = %id, table = %target.quoted(), error, "the staging table of an append is left over until the next start");
            }
        });
        Clearing(told)
    }

    /// Publishes an append that was decided, writes how it ended, and clears.
    async fn finish(self, id: AppendId, publication: Publication, session: Session, staging: Option<Name>) -> Ending {
        let target = publication.target();
        let ending = Publisher::new(&session, id, &publication).publish(staging).await;
        let end = match &ending {
            Ending::Committed(atomic) => End::Committed { atomic: (*atomic).into() },
            Ending::Refused(_) => End::Nothing,
            Ending::Unknown(why) => End::Unknown { why: why.clone() },
        };
        if let Ending::Unknown(why) = &ending {
            tracing::error!(append = %id, table = %target.quoted(), why, "nobody knows whether an append is stored; its staging table is kept");
        }
        let is_unknown = matches!(ending, Ending::Unknown(_));
        let mut pause = Duration::from_millis(50);
        // Without it the next start would publish it once more, from what it sees then.
        while let Err(error) = self.state_log.write(id, Event::Ended { at_ms: now_ms(), end: end.clone() }).await {
            tracing::error!(append = %id, %error, "the end of an append can't be written");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(5));
        }
        let clearing = (!is_unknown).then(|| self.clear(id, session, target));
        if let (Ending::Refused(_), Some(clearing)) = (&ending, clearing) {
            clearing.wait().await;
        }
        ending
    }

    /// Waits until nothing is left of an earlier append of this id. An earlier process may have left one that
    /// is still cleared away: a new one would lose its table.
    async fn cleared(&self, id: AppendId) -> Result<(), AppendError> {
        let end = Instant::now() + QUESTION_PATIENCE;
        while self.state_log.state(id).is_some_and(|state| !state.is_cleared) {
            if Instant::now() > end {
                let text =
                    "What is left of an append of this id is not cleared away yet; try again later, or with another id";
                return Err(AppendError::try_again(ErrorCode::ABORTED, text));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    async fn look_up_as(&self, session: &Session, opening: &OpenRequest) -> Result<Table, TableError> {
        let found = persist(QUESTION_PATIENCE, || async {
            match table::ask(session, opening).await {
                Ok(table) => Ok(Ok(table)),
                Err(TableError::Unfit(error)) => Ok(Err(error)),
                Err(TableError::Call(error)) => Err(error),
            }
        });
        Ok(found.await??)
    }

    /// Checks with the user's credentials, by an INSERT of no rows, that the user may insert.
    async fn may_insert(&self, user: &Session, table: &Table, opening: &OpenRequest) -> Result<(), AppendError> {
        let columns: Vec<&str> = match &opening.columns {
            Some(columns) => columns.iter().map(String::as_str).collect(),
            None => table.stored.iter().map(String::as_str).collect(),
        };
        let probe = insert_nothing(&table.name, &columns);
        persist(QUESTION_PATIENCE, || user.run(&probe)).await.map_err(failure)
    }

    /// Returns the error of a table only to users who may see the table: it says what is wrong with the
    /// table, or that there is none. Other users get one answer for all.
    async fn unless_hidden(&self, user: &Session, table: &Name, error: AppendError) -> AppendError {
        let question = exists(table);
        match persist(QUESTION_PATIENCE, || user.run(&question)).await {
            Ok(()) => error,
            Err(refused) => may_not_insert(refused),
        }
    }

    fn resume(&self, id: AppendId, state: AppendState) {
        let session = self.server.own();
        match (state.end, state.publication, state.opened) {
            (Some(End::Unknown { .. }), ..) => {}
            (None, Some(publication), _) => {
                tracing::info!(append = %id, table = %publication.target().quoted(), "an append that was decided before is published");
                let this = self.clone();
                self.spawn(async move { drop(this.finish(id, *publication, session, None).await) });
            }
            (_, _, Some(opened)) => {
                self.clear(id, session, Name { database: opened.database, table: opened.table });
            }
            _ => {}
        }
    }
}

impl Target for ClickHouse {
    type Table = Table;
    type Batch = Batch;
    type Transaction = Filling;
    type Permit = ();

    async fn look_up(&self, opening: &OpenRequest) -> Result<Table, AppendError> {
        let name = Name::of(opening);
        let user = self.server.session(opening.credentials.clone());
        let found = match self.look_up_as(&self.server.own(), opening).await {
            Err(TableError::Call(error)) if may_not(&error) => self.look_up_as(&user, opening).await,
            found => found,
        };
        match found {
            Ok(table) => {
                self.may_insert(&user, &table, opening).await?;
                Ok(table)
            }
            Err(TableError::Unfit(error)) => Err(self.unless_hidden(&user, &name, error).await),
            Err(TableError::Call(CallError::Exception(refused))) => {
                Err(self.unless_hidden(&user, &name, refused.into()).await)
            }
            Err(TableError::Call(error)) => Err(failure(error)),
        }
    }

    fn columns(table: &Table) -> Vec<Column> {
        table.answer()
    }

    fn atomicity(table: &Table) -> Atomicity {
        table.method().promise(table.is_partitioned)
    }

    fn read(table: &Table, payload: Payload, max_bytes: u64) -> Result<Read<Batch>, AppendError> {
        read::read(table, payload, max_bytes)
    }

    async fn permit(&self, _: &OpenRequest) -> Result<(), AppendError> {
        Ok(())
    }

    async fn begin(
        &self,
        id: AppendId,
        opening: &OpenRequest,
        table: Arc<Table>,
        (): (),
    ) -> Result<Filling, AppendError> {
        self.cleared(id).await?;
        let user = opening.credentials.user.clone();
        let Name { database, table: name } = table.name.clone();
        self.state_log.write(id, Event::Opened { database, table: name, user: user.clone() }).await?;
        let target = table.name.clone();
        match Staging::make(&self.server, id, opening, table, self.kept_back.clone()).await {
            Ok(staging) => Ok(Filling { target: self.clone(), staging, user, is_left: true }),
            Err(error) => {
                self.clear(id, self.server.own(), target).wait().await;
                Err(error)
            }
        }
    }

    async fn outcome(&self, id: AppendId) -> Result<Outcome, AppendError> {
        let Some(state) = self.state_log.state(id) else { return Ok(Outcome::Nothing) };
        let Some(publication) = state.publication else { return Ok(Outcome::Nothing) };
        let user = publication.user.clone();
        match state.end {
            None => Ok(Outcome::Committing { user }),
            Some(End::Nothing) => Ok(Outcome::Nothing),
            Some(End::Committed { atomic }) => {
                Ok(Outcome::Committed { committed: publication.committed(id, atomic.into()), user })
            }
            Some(End::Unknown { why }) => Err(nobody_knows(&why, &publication.target(), id)),
        }
    }

    /// Returns false. Publishing goes on in a task of its own, and its end is written to the state log of
    /// this gateway.
    fn remembers_for_all(&self) -> bool {
        false
    }

    fn doubt(&self, _: AppendId) {}

    async fn recover(&self) {
        for (id, state) in self.state_log.unfinished() {
            self.resume(id, state);
        }
    }

    async fn shut_down(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_WAIT, all).await.is_err() {
            tracing::warn!("some appends are not finished; the next start finishes them");
        }
        self.server.close();
        self.state_log.close().await;
    }
}

fn nobody_knows(why: &str, target: &Name, id: AppendId) -> AppendError {
    let text = format!(
        "The append may or may not be stored, in whole or in part: {why}. Its rows are kept in {}*",
        target.staging(id).quoted()
    );
    AppendError::new(ErrorCode::UNKNOWN_STATUS_OF_INSERT, &text)
}

impl Filling {
    /// Lets its staging table be dropped, unless the table is needed.
    fn give_up(&mut self) -> Option<Clearing> {
        let is_left = std::mem::take(&mut self.is_left);
        let staging = &self.staging;
        is_left.then(|| self.target.clear(staging.id(), staging.session.clone(), staging.table().name.clone()))
    }

    /// Decides what is to be published.
    async fn decide(&self, totals: Totals) -> Result<Publication, AppendError> {
        let table = self.staging.table();
        let looked =
            persist(QUESTION_PATIENCE, || look::staged(&self.staging.session, &self.staging.name, &table.name));
        let staged = looked.await.map_err(failure)?;
        if staged.target_uuid.as_deref() != Some(&table.uuid) {
            let text = format!("Table {} was dropped or replaced while it was appended to", table.name.quoted());
            return Err(AppendError::new(ErrorCode::UNKNOWN_TABLE, &text));
        }
        let rows: u64 = staged.parts.iter().map(|part| part.rows).sum();
        if rows != self.staging.rows {
            let text = format!("The staging table has {rows} rows of the {} that were sent", self.staging.rows);
            return Err(AppendError::new(ErrorCode::STD_EXCEPTION, &text));
        }
        let mut publication = Publication {
            method: table.method().into(),
            database: table.name.database.clone(),
            table: table.name.table.clone(),
            table_uuid: table.uuid.clone(),
            user: self.user.clone(),
            columns: table.stored.clone(),
            parts: staged.parts,
            newest_block: staged.newest_block,
            decided_at_ms: now_ms(),
            shows_merged_ms: table.shows_merged_ms,
            has_parts: table.engine().has_parts(),
            deduplicates: table.deduplicates,
            unpacked_bytes: staged.unpacked_bytes,
            rows: 0,
            bytes: 0,
            batches: 0,
            elapsed_ms: 0,
        };
        publication.set_totals(totals);
        Ok(publication)
    }

    async fn publish(&mut self, totals: Totals) -> Result<Atomicity, CommitFailure> {
        let id = self.staging.id();
        self.staging.flush().await.map_err(CommitFailure::Refused)?;
        let publication = self.decide(totals).await.map_err(CommitFailure::Refused)?;
        let decided = Event::Decided { publication: Box::new(publication.clone()) };
        self.target.state_log.write(id, decided).await.map_err(CommitFailure::Refused)?;
        self.is_left = false;
        let (tell, told) = oneshot::channel();
        let (session, name) = (self.staging.session.clone(), self.staging.name.clone());
        let target = publication.target();
        let finish = self.target.clone().finish(id, publication, session, Some(name));
        // In a task of its own: it goes on, whoever waits.
        self.target.spawn(async move { drop(tell.send(finish.await)) });
        match tokio::time::timeout(COMMIT_WAIT, told).await {
            Ok(Ok(Ending::Committed(atomic))) => Ok(atomic),
            Ok(Ok(Ending::Refused(error))) => Err(CommitFailure::Refused(error)),
            // It will never be known: this is its end.
            Ok(Ok(Ending::Unknown(why))) => Err(CommitFailure::Refused(nobody_knows(&why, &target, id))),
            _ => Err(CommitFailure::Unknown("ClickHouse has not taken it yet".to_owned())),
        }
    }
}

impl Transaction for Filling {
    type Batch = Batch;

    async fn apply(&mut self, batches: Vec<Held<Batch>>) -> Result<(), AppendError> {
        self.staging.put(batches).await
    }

    async fn commit(mut self, totals: Totals) -> Result<Atomicity, CommitFailure> {
        let published = self.publish(totals).await;
        // Refused before it was decided.
        self.abort().await;
        published
    }

    async fn abort(mut self) {
        if let Some(clearing) = self.give_up() {
            clearing.wait().await;
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        if tokio::runtime::Handle::try_current().is_ok() {
            self.give_up();
        }
    }
}
