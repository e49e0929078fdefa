//! Queries: each on a thread and a connection of its own.

use std::time::{Duration, Instant};

use arrow_array::RecordBatchIterator;
use windrow_clickhouse::Exception;

use crate::connection::{arrow_exception, Connection, Running};
use crate::database::DuckDb;
use crate::errors;
use crate::single;
use crate::stream::{Answering, RecordStream, StopSignal};
use crate::tables::may_change;

/// On whose behalf a statement runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Where names without a schema are looked up.
    pub schema: String,
    /// Whether only statements that change nothing are run.
    pub readonly: bool,
    /// Whose queries share permits.
    pub user: String,
    pub port: Port,
}

/// Where somebody is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    Http,
    Flight,
}

impl Session {
    /// Windrow's own.
    fn own() -> Session {
        Session { schema: "main".to_owned(), readonly: false, user: "windrow".to_owned(), port: Port::Http }
    }
}

/// A statement that may be run.
pub(crate) struct Approved {
    sql: String,
    session: Session,
}

impl Approved {
    /// Somebody's, if it is one that the session allows.
    pub(crate) fn of(sql: &str, session: &Session, version: &str) -> Result<Approved, Exception> {
        single::check(sql, session, version)?;
        Ok(Approved { sql: sql.to_owned(), session: session.clone() })
    }

    /// Windrow's own, whatever it is.
    pub(crate) fn own(sql: &str) -> Approved {
        Approved { sql: sql.to_owned(), session: Session::own() }
    }
}

pub(crate) async fn run(
    database: DuckDb,
    permit: impl Send + 'static,
    approved: Approved,
) -> Result<RecordStream, Exception> {
    let Approved { sql, session } = approved;
    let closed = database.closed();
    let job = move |answering: Answering| {
        match database.connect() {
            Ok(connection) => {
                Asked { database, connection, sql, session, signal: answering.signal() }.answer(answering);
            }
            Err(exception) => answering.refused(exception),
        };
        drop(permit);
    };
    RecordStream::begin(closed, job).await
}

struct Asked {
    database: DuckDb,
    connection: Connection,
    sql: String,
    session: Session,
    signal: StopSignal,
}

impl Asked {
    fn answer(mut self, answering: Answering) {
        let began = Instant::now();
        let Running { mut reader, _statement: statement } = match self.begin() {
            Ok(running) => running,
            Err(exception) => return answering.refused(self.meant(exception, began.elapsed())),
        };
        let schema = reader.schema();
        if may_change(&self.sql) {
            // Run to its end before anybody hears of it: who does must not find what was known before. Its result is
            // small.
            let rows: Vec<_> = reader.collect();
            self.database.tables().have_changed();
            reader = Box::new(RecordBatchIterator::new(rows, schema.clone()));
        }
        let Some(handing) = answering.begun(schema.clone()) else { return };
        let version = self.connection.version().to_owned();
        if let Err(exception) = handing.hand_over(&schema, reader, |error| arrow_exception(error, &version)) {
            drop(statement);
            handing.failed(self.meant(exception, began.elapsed()));
        }
    }

    fn begin(&mut self) -> Result<Running, Exception> {
        self.connection.use_schema(&self.session.schema)?;
        if self.session.readonly {
            self.connection.execute("BEGIN TRANSACTION READ ONLY")?;
        }
        self.run()
    }

    fn run(&mut self) -> Result<Running, Exception> {
        let signal = self.signal.clone();
        self.connection.query(&self.sql, move |handle| signal.may_run(handle))
    }

    /// When one of a query's threads fails, DuckDB interrupts the others, and now and then tells of that in place of
    /// the error. Then the query is asked again, for its error alone: not to change anything, and not for longer than
    /// it ran.
    fn meant(&mut self, exception: Exception, ran_for: Duration) -> Exception {
        if exception.code != errors::QUERY_WAS_CANCELLED || self.signal.was_given() {
            return exception;
        }
        let until = Instant::now() + ran_for.clamp(SHORTEST_SEARCH, LONGEST_SEARCH);
        while Instant::now() < until && !self.signal.was_given() {
            match self.error_again(until) {
                Some(found) if found.code == errors::QUERY_WAS_CANCELLED => {}
                Some(found) if found.code == errors::READONLY => break,
                Some(found) => return found,
                None => break,
            }
        }
        let text = "The query failed, and DuckDB told of its interruption in place of the error. Asked again, it may tell the error";
        Exception::new(errors::STD_EXCEPTION, text, self.connection.version())
    }

    fn error_again(&mut self, until: Instant) -> Option<Exception> {
        // Fails where there is no transaction any more.
        let _ = self.connection.execute("ROLLBACK");
        if let Err(exception) = self.connection.execute("BEGIN TRANSACTION READ ONLY") {
            return Some(exception);
        }
        let Running { reader, _statement } = match self.run() {
            Ok(running) => running,
            Err(exception) => return Some(exception),
        };
        let mut batches = reader.take_while(|_| Instant::now() < until);
        let error = batches.find_map(Result::err)?;
        Some(arrow_exception(&error, self.connection.version()))
    }
}

/// How long is looked for a query's error.
const SHORTEST_SEARCH: Duration = Duration::from_millis(500);
const LONGEST_SEARCH: Duration = Duration::from_secs(10);
