//! Queries, each on a thread and a connection of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::{make_array, new_empty_array, Array, ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::connection::{arrow_exception, Connection, Running};
use crate::database::DuckDb;
use crate::single;
use crate::stream::{Answering, RecordStream, StopSignal};
use crate::tables::may_change;
use crate::types::DuckType;

/// The user and the rights that a statement runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The schema where names without a schema are looked up.
    pub schema: String,
    /// Says whether only statements that change nothing are run.
    pub readonly: bool,
    /// The user, whose queries share permits.
    pub user: String,
    pub port: Port,
}

/// The protocol by which the user is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    Http,
    Flight,
}

impl Session {
    /// Returns the session of Windrow's own queries.
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
    /// Approves a user's statement, if the session allows it.
    pub(crate) fn of(sql: &str, session: &Session, version: &str) -> Result<Approved, Exception> {
        single::check(sql, session, version)?;
        Ok(Approved { sql: sql.to_owned(), session: session.clone() })
    }

    /// Approves any statement of Windrow's own.
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
        let batches: Batches = match reader.next() {
            Some(first) => Box::new(std::iter::once(first).chain(reader)),
            // Every batch has the names of its ENUMs; where there is none, DuckDB is asked for them.
            None => {
                drop((reader, statement));
                let of_names = names_may_be_missing(&schema).then(|| self.batch_of_names(&schema)).flatten();
                Box::new(of_names.map(Ok).into_iter())
            }
        };
        let Some(handing) = answering.begun(schema.clone()) else { return };
        let version = self.connection.version().to_owned();
        if let Err(exception) = handing.hand_over(&schema, batches, |error| arrow_exception(error, &version)) {
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

    /// Returns a batch without rows that has the names of all ENUMs of the result, or `None` where DuckDB
    /// doesn't describe it.
    fn batch_of_names(&mut self, schema: &SchemaRef) -> Option<RecordBatch> {
        let described = self.connection.rows(&format!("DESCRIBE {}", self.sql)).ok()?;
        let types = described.iter().flat_map(|batch| {
            let types = batch.column_by_name("column_type").and_then(|column| column.as_string_opt::<i32>());
            types.into_iter().flatten().flatten().map(DuckType::parse).collect::<Vec<_>>()
        });
        let types: Vec<DuckType> = types.collect::<Option<_>>()?;
        let fields = schema.fields();
        let columns = fields.iter().zip(&types).map(|(field, duck)| empty_column(field.data_type(), duck));
        RecordBatch::try_new(schema.clone(), columns.collect()).ok()
    }

    /// Finds the error that made the query fail. When one of a query's threads fails, DuckDB interrupts the
    /// others, and sometimes reports the interruption in place of the error. Then the query is run again,
    /// only for its error: read-only, and not for longer than it ran before, within limits.
    fn meant(&mut self, exception: Exception, ran_for: Duration) -> Exception {
        if exception.code != ErrorCode::QUERY_WAS_CANCELLED || self.signal.was_given() {
            return exception;
        }
        let until = Instant::now() + ran_for.clamp(SHORTEST_SEARCH, LONGEST_SEARCH);
        while Instant::now() < until && !self.signal.was_given() {
            match self.error_again(until) {
                Some(found) if found.code == ErrorCode::QUERY_WAS_CANCELLED => {}
                Some(found) if found.code == ErrorCode::READONLY => break,
                Some(found) => return found,
                None => break,
            }
        }
        let text = "The query failed, and DuckDB told of its interruption in place of the error. Asked again, it may tell the error";
        Exception::new(ErrorCode::STD_EXCEPTION, text, self.connection.version())
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

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// Says whether there is an ENUM somewhere in the columns.
fn names_may_be_missing(schema: &SchemaRef) -> bool {
    fn has_names(data_type: &DataType) -> bool {
        match data_type {
            DataType::Dictionary(..) => true,
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                has_names(item.data_type())
            }
            DataType::Map(entries, _) => has_names(entries.data_type()),
            DataType::Struct(fields) => fields.iter().any(|field| has_names(field.data_type())),
            _ => false,
        }
    }
    schema.fields().iter().any(|field| has_names(field.data_type()))
}

/// Makes an array without values, whose dictionaries have the names of DuckDB's type.
fn empty_column(data_type: &DataType, duck: &DuckType) -> ArrayRef {
    let empty = new_empty_array(data_type);
    let children: Vec<ArrayRef> = match (data_type, duck) {
        (DataType::Dictionary(..), DuckType::Enum(names)) => vec![Arc::new(StringArray::from_iter_values(names))],
        (
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _),
            DuckType::List(inner) | DuckType::Array(inner, _),
        ) => vec![empty_column(item.data_type(), inner)],
        (DataType::Struct(fields), DuckType::Struct(named)) => {
            fields.iter().zip(named).map(|(field, (_, inner))| empty_column(field.data_type(), inner)).collect()
        }
        (DataType::Map(entries, _), DuckType::Map(key, value)) => {
            let pair = vec![("key".to_owned(), (**key).clone()), ("value".to_owned(), (**value).clone())];
            vec![empty_column(entries.data_type(), &DuckType::Struct(pair))]
        }
        _ => return empty,
    };
    let children = children.iter().map(|child| child.to_data()).collect();
    // Where the two types don't fit together, no names are told.
    empty.to_data().into_builder().child_data(children).build().map_or(empty, make_array)
}

/// The shortest time for which the error of a query is searched for.
const SHORTEST_SEARCH: Duration = Duration::from_millis(500);
const LONGEST_SEARCH: Duration = Duration::from_secs(10);
