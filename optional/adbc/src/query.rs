//! Queries, each on a thread and a connection of its own. A result is passed on batch by batch.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::statement::{kind_of, Kind};
use windrow_duckdb::{check_statement, may_change_tables, Answering, RecordStream, Session, UserPermit};

use crate::connection::{Connection, Running};
use crate::database::Adbc;
use crate::errors;
use crate::results::Plain;

pub(crate) async fn run(
    database: Adbc,
    permit: UserPermit,
    sql: &str,
    session: &Session,
) -> Result<RecordStream, Exception> {
    check_statement(sql, session, database.version_suffix())?;
    if session.readonly && !database.system().can_only_read() && !surely_reads(sql) {
        let text = "This database can't be told to only read, and the statement may do more than that";
        return Err(Exception::new(ErrorCode::READONLY, text, database.version_suffix()));
    }
    let closed = database.closed();
    let asked = Asked { database, sql: sql.to_owned(), session: session.clone() };
    let job = move |answering: Answering| {
        match asked.database.connect() {
            Ok(connection) => asked.answer(connection, answering),
            Err(exception) => answering.refused(exception),
        }
        drop(permit);
    };
    RecordStream::begin(closed, job).await
}

/// Says whether a statement surely only reads. A statement with a word of this kind may write. A backslash
/// may end a string for the database where it doesn't end one for us.
fn surely_reads(sql: &str) -> bool {
    const WRITES: [&str; 10] =
        ["INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "CALL", "COPY"];
    let mut words = sql.split(|c: char| !c.is_alphanumeric() && c != '_');
    !sql.contains('\\') && !words.any(|word| WRITES.iter().any(|write| write.eq_ignore_ascii_case(word)))
}

struct Asked {
    database: Adbc,
    sql: String,
    session: Session,
}

impl Asked {
    fn answer(self, mut connection: Connection, answering: Answering) {
        let version = connection.version().to_owned();
        let kind = kind_of(&self.sql);
        // Until the result has been handed over: what is written stays locked as long as rows of it are read.
        let _turn = matches!(kind, Some(Kind::Writes { .. })).then(|| self.database.take_turn());
        let begun = match kind {
            Some(Kind::Writes { returns: false }) => self.change(&mut connection),
            _ => self.query(&mut connection, &answering),
        };
        let (reader, _statement) = match begun {
            Ok(begun) => begun,
            Err(exception) => return answering.refused(exception),
        };
        let plain = Plain::of(&reader.schema());
        let Some(handing) = answering.begun(plain.schema()) else { return };
        let batches = reader.map(|batch| batch.and_then(|batch| plain.batch(&batch)));
        let done = handing.hand_over(&plain.schema(), batches, |error| errors::of_arrow(error, &version));
        done.unwrap_or_else(|exception| handing.failed(exception));
    }

    fn prepare(&self, connection: &mut Connection) -> Result<(), Exception> {
        connection.use_schema(&self.session.schema)?;
        match self.session.readonly {
            true => connection.only_read(),
            false => Ok(()),
        }
    }

    fn query(&self, connection: &mut Connection, answering: &Answering) -> Result<Begun, Exception> {
        self.prepare(connection)?;
        let signal = answering.signal();
        let Running { reader, _statement } = connection.query(&self.sql, move |handle| signal.may_run(handle))?;
        Ok((reader, Some(_statement)))
    }

    /// Runs a statement to its end before the caller learns of it: after that, the caller must not find old
    /// descriptions of tables.
    fn change(&self, connection: &mut Connection) -> Result<Begun, Exception> {
        self.prepare(connection)?;
        let changed = connection.execute(&self.sql)?;
        if may_change_tables(&self.sql) {
            self.database.tables().have_changed();
        }
        let (schema, batch) = count(changed);
        Ok((Box::new(RecordBatchIterator::new([Ok(batch)], schema)), None))
    }
}

type Begun = (Box<dyn RecordBatchReader + Send>, Option<adbc_driver_manager::ManagedStatement>);

/// Returns how many rows a statement changed, in the form of DuckDB's answer.
fn count(changed: u64) -> (SchemaRef, RecordBatch) {
    let schema = Arc::new(Schema::new(vec![Field::new("Count", DataType::Int64, false)]));
    let count = Int64Array::from(vec![i64::try_from(changed).unwrap_or(i64::MAX)]);
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(count)]).expect("the column has the schema's type");
    (schema, batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_write_is_not_taken_for_a_query() {
        for sql in ["SELECT a FROM t WHERE b = 'x'", "WITH x AS (SELECT updated FROM t) SELECT * FROM x"] {
            assert!(surely_reads(sql), "{sql}");
        }
        for sql in
            ["WITH x AS (delete FROM t RETURNING *) SELECT * FROM x", "SELECT '\\'' ; x --'", "SELECT 1;DROP TABLE t"]
        {
            assert!(!surely_reads(sql), "{sql}");
        }
    }
}
