//! Prepared statements with their parameters.
//!
//! An insert that consists of parameters only becomes rows for its table, all of them or none. Any other
//! statement gets its parameters as literals and runs once for each row of them.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use windrow_clickhouse::{ErrorCode, Exception};

use super::conversion::{for_columns, Column};
use super::ingest::{append, Stream};
use super::Inner;
use crate::error;
use crate::incoming::Incoming;
use crate::login::Caller;
use crate::prepared::Prepared;
use crate::sql::{bound_insert, filled, marks, BoundInsert};
use crate::store::Rows;

/// The most bytes of parameters that a query keeps until it is run.
const MAX_BOUND_BYTES: usize = 8 << 20;
/// The most bytes of rows for one INSERT; more rows are appended as they come.
const MAX_INSERT_BYTES: usize = 16 << 20;
/// The most bytes of statements that are written out, one for each row of parameters.
const MAX_STATEMENT_BYTES: usize = 64 << 20;

/// Returns the schema of a statement's parameters for clients: a column's own type, or, for anything else, a text.
pub(super) async fn parameter_schema(inner: &Inner, caller: &Caller, sql: &str) -> Result<Option<Schema>, Exception> {
    let dialect = inner.store.dialect();
    let count = marks(dialect, sql).parameters;
    if count == 0 {
        return Ok(None);
    }
    let columns = match bound_insert(dialect, sql) {
        Some(insert) => columns(inner, caller, &insert).await?,
        None => Vec::new(),
    };
    let field = |at: usize| {
        let known = columns.get(at).and_then(|column: &Column| column.field.clone());
        known.unwrap_or_else(|| Field::new((at + 1).to_string(), DataType::Utf8, true))
    };
    Ok(Some(Schema::new((0..count).map(field).collect::<Vec<_>>())))
}

pub(super) async fn query(inner: &Inner, caller: &Caller, prepared: Prepared) -> Result<Rows, Exception> {
    let dialect = inner.store.dialect();
    let marks = marks(dialect, &prepared.sql);
    if marks.parameters == 0 {
        return inner.store.query(caller, &prepared.sql).await;
    }
    let not_bound = || {
        error::own(ErrorCode::BAD_ARGUMENTS, &format!("the statement's {} parameters are not bound", marks.parameters))
    };
    let bound = prepared.bound.as_ref().ok_or_else(not_bound)?;
    if let Some(insert) = bound_insert(dialect, &prepared.sql) {
        let columns = columns(inner, caller, &insert).await?;
        let rows = for_columns(dialect, &columns, bound)?;
        inner.store.insert(caller, &insert.target, vec![rows]).await?;
        return Ok(Rows::none());
    }
    match bound.num_rows() {
        1 => inner.store.query(caller, &filled(dialect, &prepared.sql, &marks, bound, 0)?).await,
        0 => Err(not_bound()),
        rows => Err(error::own(
            ErrorCode::NOT_IMPLEMENTED,
            &format!("a query takes one row of parameters, and {rows} are bound"),
        )),
    }
}

/// Keeps the parameters of a query that is going to be run.
pub(super) async fn bind(
    inner: &Inner,
    caller: &Caller,
    handle: &Bytes,
    incoming: &mut Incoming,
) -> Result<(), Exception> {
    let mut batches = Vec::new();
    let mut bytes = 0;
    while let Some(batch) = incoming.next().await? {
        bytes += batch.get_array_memory_size();
        if bytes > MAX_BOUND_BYTES {
            return Err(error::own(
                ErrorCode::BAD_ARGUMENTS,
                &format!("parameters of more than {MAX_BOUND_BYTES} bytes can't be bound"),
            ));
        }
        batches.push(batch);
    }
    let Some(first) = batches.first() else { return Ok(()) };
    let one = arrow_select::concat::concat_batches(&first.schema(), &batches);
    inner.statements.bind(
        caller,
        handle,
        one.map_err(|error| error::own(ErrorCode::BAD_ARGUMENTS, &error.to_string()))?,
    )
}

/// Runs an update. Returns how many rows were written, where that is known.
pub(super) async fn update(
    inner: &Inner,
    caller: &Caller,
    prepared: Prepared,
    incoming: &mut Incoming,
) -> Result<Option<u64>, Exception> {
    let dialect = inner.store.dialect();
    let marks = marks(dialect, &prepared.sql);
    if marks.parameters == 0 {
        return inner.store.update(caller, &prepared.sql).await;
    }
    if let Some(wanted) = bound_insert(dialect, &prepared.sql) {
        return insert(inner, caller, &wanted, incoming).await.map(Some);
    }
    let (mut statements, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = incoming.next().await? {
        for row in 0..batch.num_rows() {
            let statement = filled(dialect, &prepared.sql, &marks, &batch, row)?;
            bytes += statement.len();
            if bytes > MAX_STATEMENT_BYTES {
                let text = format!(
                    "the statement, once for each row of its parameters, has more than {MAX_STATEMENT_BYTES} bytes"
                );
                return Err(error::own(ErrorCode::BAD_ARGUMENTS, &text));
            }
            statements.push(statement);
        }
    }
    inner.store.update_all(caller, &statements).await
}

/// Inserts rows. A few rows are one INSERT. More are appended, which holds only some of them at a time.
async fn insert(
    inner: &Inner,
    caller: &Caller,
    wanted: &BoundInsert,
    incoming: &mut Incoming,
) -> Result<u64, Exception> {
    let dialect = inner.store.dialect();
    let columns = columns(inner, caller, wanted).await?;
    let mut held: Vec<RecordBatch> = Vec::new();
    let mut bytes = 0;
    while bytes <= MAX_INSERT_BYTES {
        match incoming.next().await? {
            Some(batch) => {
                bytes += batch.get_array_memory_size();
                held.push(for_columns(dialect, &columns, &batch)?);
            }
            None => return inner.store.insert(caller, &wanted.target, held).await,
        }
    }
    let convert = move |batch: RecordBatch| for_columns(dialect, &columns, &batch);
    append(inner, caller, &wanted.target, Stream { held, incoming, convert: Box::new(convert) }).await
}

/// Returns the columns that the parameters are for.
async fn columns(inner: &Inner, caller: &Caller, insert: &BoundInsert) -> Result<Vec<Column>, Exception> {
    let fields = inner.store.fields(caller, &insert.target).await?;
    let no_table = || error::own(ErrorCode::UNKNOWN_TABLE, &format!("Table {} does not exist", insert.target.table));
    let fields = fields.ok_or_else(no_table)?;
    Ok(match &insert.columns {
        None => fields.into_iter().map(|field| Column { name: field.name().clone(), field: Some(field) }).collect(),
        Some(names) => {
            let same = |name: &str, field: &Field| field.name() == name;
            let column = |name: &String| {
                let field = fields.iter().find(|field| same(name, field)).cloned();
                Column { name: name.clone(), field }
            };
            names.iter().map(column).collect()
        }
    })
}
