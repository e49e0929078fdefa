//! A table as appends see it.

use std::sync::OnceLock;

use arrow_schema::{Schema, SchemaRef};
use windrow_adbc::SqlDatabase;
use windrow_clickhouse::ErrorCode;
use windrow_duckdb::{CannotStore, Fitting, TableInfo};

use crate::answer::Column;
use crate::error::AppendError;
use crate::errors;
use crate::request::OpenRequest;

pub(crate) struct SqlTable {
    pub(super) info: TableInfo,
    /// The columns that the opening named.
    wanted: Option<Vec<String>>,
    /// The way in which the first batch that was read goes into the table. It binds the others.
    bound: OnceLock<Bound>,
    /// True if columns that batches haven't are left to the database. DuckDB stores whole rows faster.
    writes_given: bool,
    version: String,
}

struct Bound {
    schema: SchemaRef,
    fitting: Fitting,
}

pub(super) async fn look_up(database: &SqlDatabase, opening: &OpenRequest) -> Result<SqlTable, AppendError> {
    let name = database.table_ref(&opening.database, &opening.table);
    let version = database.version_suffix().to_owned();
    let error = |code, text: String| AppendError::from(windrow_clickhouse::Exception::new(code, &text, &version));
    let shown = format!("{}.{}", opening.database, opening.table);
    if database.is_windrows(&name) {
        return Err(error(
            ErrorCode::ACCESS_DENIED,
            format!("{shown} is Windrow's own: nothing can be appended to it"),
        ));
    }
    let info = database.table(&name).await.map_err(errors::of_asking)?;
    if !database.has_transactions() {
        return Err(errors::no_transactions(&version));
    }
    let info = info.ok_or_else(|| error(ErrorCode::UNKNOWN_TABLE, format!("Table {shown} does not exist")))?;
    if info.is_view {
        return Err(error(ErrorCode::NOT_IMPLEMENTED, format!("{shown} is a view: nothing can be appended to it")));
    }
    let is_known = |name: &String| {
        info.columns.iter().any(|column| !column.generated && column.name.to_lowercase() == name.to_lowercase())
    };
    if let Some(unknown) = opening.columns.iter().flatten().find(|name| !is_known(name)) {
        let text = format!("There is no column {unknown} in table {shown} to append to");
        return Err(error(ErrorCode::NO_SUCH_COLUMN_IN_TABLE, text).with_status(400));
    }
    let writes_given = matches!(database, SqlDatabase::Adbc(_));
    Ok(SqlTable {
        info,
        wanted: opening.columns.clone(),
        bound: OnceLock::new(),
        writes_given,
        version: version.clone(),
    })
}

impl SqlTable {
    pub(super) fn columns(&self) -> usize {
        self.info.columns.len()
    }

    /// Returns the columns that batches may have.
    pub(super) fn open_columns(&self) -> Vec<Column> {
        let is_wanted = |name: &str| {
            self.wanted
                .as_ref()
                .is_none_or(|wanted| wanted.iter().any(|other| other.to_lowercase() == name.to_lowercase()))
        };
        let columns = self.info.columns.iter().filter(|column| !column.generated && is_wanted(&column.name));
        let shown = columns.map(|column| Column {
            name: column.name.clone(),
            data_type: match &column.data_type {
                Ok(data_type) => data_type.native_name().to_string(),
                Err(_) => column.duckdb_type.clone(),
            },
        });
        shown.collect()
    }

    /// Returns how batches of `schema` go into the table. Fails where `schema` is not the first batch's.
    pub(super) fn fitting(&self, schema: &Schema) -> Result<Fitting, AppendError> {
        if let Some(bound) = self.bound.get() {
            return self.bound_to(bound, schema);
        }
        let given = || schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        let fitting = match self.writes_given {
            true => self.info.given(&given()).fitting(schema, self.wanted.as_deref()),
            false => self.info.fitting(schema, self.wanted.as_deref()),
        };
        let fitting = fitting.map_err(|not_held| self.not_held(&not_held))?;
        let bound = self.bound.get_or_init(|| Bound { schema: schema.clone().into(), fitting });
        self.bound_to(bound, schema)
    }

    fn bound_to(&self, bound: &Bound, schema: &Schema) -> Result<Fitting, AppendError> {
        let (first, these) = (bound.schema.fields(), schema.fields());
        let alike = first.len() == these.len()
            && first
                .iter()
                .zip(these)
                .all(|(one, other)| one.name() == other.name() && one.data_type() == other.data_type());
        match alike {
            true => Ok(bound.fitting.clone()),
            false => {
                let text = "All batches of an append have the same columns of the same types; this one's differ from the first one's";
                Err(self.error(ErrorCode::INCORRECT_DATA, text))
            }
        }
    }

    /// Returns the columns that are written, where it isn't all of them.
    pub(super) fn written_columns(&self) -> Option<Vec<String>> {
        self.bound.get().and_then(|bound| bound.fitting.columns()).map(<[String]>::to_vec)
    }

    pub(super) fn not_held(&self, not_held: &CannotStore) -> AppendError {
        let error = AppendError::from(not_held.exception(&self.version));
        // What a client sends that doesn't fit is its own fault, whatever status the code has elsewhere.
        error.with_status(400)
    }

    fn error(&self, code: ErrorCode, text: &str) -> AppendError {
        AppendError::from(windrow_clickhouse::Exception::new(code, text, &self.version))
    }
}
