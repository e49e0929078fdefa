//! Brings Arrow arrays into exactly the form that DuckDB itself has for a column, or says which value can't
//! be stored.
//!
//! Nothing is left to the casts that DuckDB's appender would do. They round (1.5 becomes 2) and truncate
//! (nanoseconds). They accept texts that are no JSON, and times that no clock shows, which crash the program
//! that reads them. An appender that fails in the middle of a cast takes the process with it. So everything that
//! reaches the appender has the column's own type and has been checked:
//!
//! - integers and decimals in range, floats where no digit is lost, times in range and of a fitting unit,
//! - texts that are UTF-8, or JSON, or a name of the ENUM,
//! - values that only DuckDB can read (INTERVAL, BIT, BIGNUM, TIME WITH TIME ZONE, UUID as texts) are marked
//!   [`Fitted::through_sql`]: they go into a temporary table and from there by an INSERT, whose casts fail in good
//!   order.

mod misfit;
mod nested;
mod numbers;
mod texts;
mod times;

use std::sync::Arc;

use arrow_array::{new_empty_array, new_null_array, Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Metadata, Schema, SchemaRef};

pub use misfit::CannotStore;
pub(crate) use misfit::CannotStoreValue;

use crate::table::{ColumnInfo, TableInfo};
use crate::types::DuckType;

/// A column that values are fitted to.
pub(crate) struct Target<'a> {
    pub(crate) duck: &'a DuckType,
    /// The column's field, as DuckDB itself gives it.
    pub(crate) field: &'a Field,
}

/// An array in the form of its column.
pub(crate) struct Fit {
    pub(crate) array: ArrayRef,
    /// Field metadata that marks types which Arrow does not have.
    pub(crate) metadata: Metadata,
    /// True if DuckDB has to cast the values: the rows go through a temporary table and an INSERT.
    pub(crate) through_sql: bool,
}

impl Fit {
    pub(crate) fn plain(array: ArrayRef) -> Fit {
        Fit { array, metadata: Metadata::default(), through_sql: false }
    }

    fn marked(array: ArrayRef, field: &Field) -> Fit {
        Fit { array, metadata: field.metadata().clone(), through_sql: false }
    }

    pub(crate) fn cast_later(array: ArrayRef) -> Fit {
        Fit { array, metadata: Metadata::default(), through_sql: true }
    }

    pub(crate) fn field(&self, name: &str) -> Field {
        Field::new(name, self.array.data_type().clone(), true).with_metadata(self.metadata.clone())
    }
}

/// Rows in the form of the columns that they go into.
pub(crate) struct Fitted {
    pub(crate) batch: RecordBatch,
    /// True if DuckDB has to cast values of a column.
    pub(crate) through_sql: bool,
}

/// The mapping of batches of one schema to a table: which of its columns they have, and in which order.
#[derive(Debug, Clone)]
pub struct Fitting {
    /// Position in the batches of each column that is written, in the table's order. `None`: it is NULL in all rows.
    sources: Vec<Option<usize>>,
    targets: Vec<Column>,
    columns: Option<Vec<String>>,
}

#[derive(Debug, Clone)]
struct Column {
    info: ColumnInfo,
    duck: DuckType,
}

impl TableInfo {
    /// Matches the columns of `schema` by name (in any case, as DuckDB does) and checks their types. If
    /// `columns` are given, the schema may have only these. Columns that a batch lacks take their defaults.
    ///
    /// # Errors
    /// Fails where the table has no such column, a column is given twice, or its type can't be stored.
    pub fn fitting(&self, schema: &Schema, columns: Option<&[String]>) -> Result<Fitting, CannotStore> {
        let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        for (at, field) in schema.fields().iter().enumerate() {
            let name = field.name();
            let wanted = columns.is_none_or(|columns| columns.iter().any(|column| same(column, name)));
            let known = self.columns.iter().any(|column| same(&column.name, name) && !column.generated);
            if !wanted || !known {
                return Err(CannotStore::unknown(name, &self.name));
            }
            if schema.fields()[..at].iter().any(|earlier| same(earlier.name(), name)) {
                return Err(CannotStore::twice(name));
            }
        }
        let place = |column: &ColumnInfo| schema.fields().iter().position(|field| same(field.name(), &column.name));
        self.of_places(place).checked(schema)
    }

    /// Matches like `fitting`, but by position: the columns of batches are those of the table, or `columns`.
    ///
    /// # Errors
    /// Fails where the table has no such column, the count of columns is another, or a type can't be stored.
    pub fn fitting_in_order(&self, schema: &Schema, columns: Option<&[String]>) -> Result<Fitting, CannotStore> {
        let settable = self.columns.iter().filter(|column| !column.generated);
        let find = |name: &String| {
            let found = settable.clone().find(|column| column.name.to_lowercase() == name.to_lowercase());
            found.ok_or_else(|| CannotStore::unknown(name, &self.name))
        };
        let infos: Vec<&ColumnInfo> = match columns {
            Some(names) => names.iter().map(find).collect::<Result<_, _>>()?,
            None => settable.clone().collect(),
        };
        if infos.len() != schema.fields().len() {
            return Err(CannotStore::count(infos.len(), schema.fields().len(), &self.name));
        }
        let place = |column: &ColumnInfo| infos.iter().position(|info| info.name == column.name);
        self.of_places(place).checked(schema)
    }

    /// Decides which columns are written. Columns that were not given are written as NULL, unless one of them
    /// has a default. Then only the given columns are written, which takes DuckDB longer.
    fn of_places(&self, place: impl Fn(&ColumnInfo) -> Option<usize>) -> Fitting {
        let settable: Vec<_> = self.columns.iter().filter(|column| !column.generated).collect();
        let takes_defaults = settable.iter().any(|column| column.has_default && place(column).is_none());
        let written: Vec<_> = match takes_defaults {
            true => settable.into_iter().filter(|column| place(column).is_some()).collect(),
            false => settable,
        };
        Fitting {
            sources: written.iter().map(|column| place(column)).collect(),
            columns: takes_defaults.then(|| written.iter().map(|column| column.name.clone()).collect()),
            targets: written.into_iter().map(Column::of).collect(),
        }
    }
}

impl Column {
    fn of(info: &ColumnInfo) -> Column {
        let duck = DuckType::parse(&info.duckdb_type).unwrap_or(DuckType::Plain(info.duckdb_type.clone()));
        Column { info: info.clone(), duck }
    }
}

impl Fitting {
    /// Returns the columns that are written, in the table's order. `None`: all of them.
    pub fn columns(&self) -> Option<&[String]> {
        self.columns.as_deref()
    }

    /// Returns rows in the form that [`Transaction::ingest`](crate::Transaction::ingest) takes with
    /// [`columns`](Fitting::columns).
    ///
    /// # Errors
    /// Fails where a value can't be stored exactly, or the batch is not of the schema.
    pub fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, CannotStore> {
        Ok(self.fit(batch)?.batch)
    }

    pub(crate) fn fit(&self, batch: &RecordBatch) -> Result<Fitted, CannotStore> {
        let (mut fields, mut arrays, mut through_sql) = (Vec::new(), Vec::new(), false);
        for (source, target) in self.sources.iter().zip(&self.targets) {
            let name = &target.info.name;
            let fitted = target.of_batch(batch, *source)?;
            through_sql |= fitted.through_sql;
            fields.push(fitted.field(name));
            arrays.push(fitted.array);
        }
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &rows);
        Ok(Fitted { batch: batch.map_err(|error| CannotStore::other(&error.to_string()))?, through_sql })
    }

    /// Checks the types with a batch without rows.
    fn checked(self, schema: &Schema) -> Result<Fitting, CannotStore> {
        let arrays = schema.fields().iter().map(|field| new_empty_array(field.data_type())).collect();
        let rows = RecordBatchOptions::new().with_row_count(Some(0));
        let empty = RecordBatch::try_new_with_options(Arc::new(schema.clone()), arrays, &rows);
        self.fit(&empty.map_err(|error| CannotStore::other(&error.to_string()))?)?;
        Ok(self)
    }
}

impl Column {
    fn of_batch(&self, batch: &RecordBatch, source: Option<usize>) -> Result<Fit, CannotStore> {
        let (name, own) = (&self.info.name, &self.info.field);
        let Some(source) = source else {
            return Ok(Fit::marked(new_null_array(own.data_type(), batch.num_rows()), own));
        };
        let array = batch.columns().get(source).ok_or_else(|| CannotStore::missing(name))?;
        let target = Target { duck: &self.duck, field: own };
        fit(array, batch.schema_ref().field(source), &target).map_err(|misfit| misfit.of_column(name))
    }
}

/// Brings one array into the form of one column.
pub(crate) fn fit(array: &ArrayRef, source: &Field, target: &Target) -> Result<Fit, CannotStoreValue> {
    let unpacked = unpacked(array)?;
    if unpacked.data_type() == &DataType::Null {
        return Ok(Fit::marked(new_null_array(target.field.data_type(), array.len()), target.field));
    }
    match target.duck {
        DuckType::Plain(name) => plain(&unpacked, source, name, target),
        DuckType::Decimal { precision, scale } => numbers::decimal(&unpacked, *precision, *scale).map(Fit::plain),
        DuckType::Enum(names) => texts::name_of(&unpacked, names).map(Fit::plain),
        DuckType::List(inner) => nested::list(&unpacked, inner, target.field),
        DuckType::Array(inner, length) => nested::fixed_list(&unpacked, inner, *length, target.field),
        DuckType::Struct(fields) => nested::record(&unpacked, fields, target.field),
        DuckType::Map(key, value) => nested::map(&unpacked, key, value, target.field),
    }
}

fn plain(array: &ArrayRef, source: &Field, name: &str, target: &Target) -> Result<Fit, CannotStoreValue> {
    let own = target.field.data_type();
    match name {
        "BOOLEAN" => numbers::boolean(array, source).map(Fit::plain),
        "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "UTINYINT" | "USMALLINT" | "UINTEGER" | "UBIGINT" => {
            numbers::integer(array, own).map(Fit::plain)
        }
        "HUGEINT" | "UHUGEINT" => {
            let wide = numbers::huge(array, name == "HUGEINT")?;
            Ok(Fit::marked(wide, target.field))
        }
        "FLOAT" | "DOUBLE" => numbers::float(array, own).map(Fit::plain),
        "VARCHAR" => texts::text(array).map(Fit::plain),
        "JSON" => texts::json(array).map(Fit::plain),
        "BLOB" => texts::bytes(array).map(Fit::plain),
        "UUID" if matches!(array.data_type(), DataType::FixedSizeBinary(16)) => {
            Ok(Fit::marked(array.clone(), target.field))
        }
        "INTERVAL" if texts::is_text(array) => texts::text(array).map(Fit::cast_later),
        "INTERVAL" => times::interval(array).map(Fit::plain),
        "UUID" | "BIT" | "BIGNUM" | "TIME WITH TIME ZONE" => texts::text(array).map(Fit::cast_later),
        "DATE" => times::date(array).map(Fit::plain),
        "TIME" | "TIME_NS" => times::time(array, own).map(Fit::plain),
        _ if matches!(own, DataType::Timestamp(..)) => times::timestamp(array, own).map(Fit::plain),
        _ => Err(CannotStoreValue::of_type(array.data_type(), name)),
    }
}

/// Unfolds dictionaries and runs, and turns Arrow's several layouts of texts and lists into the plain one.
fn unpacked(array: &ArrayRef) -> Result<ArrayRef, CannotStoreValue> {
    let to = match array.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::LargeList(item) | DataType::ListView(item) => DataType::List(item.clone()),
        DataType::LargeListView(item) => DataType::LargeList(item.clone()),
        _ => return Ok(array.clone()),
    };
    let unfolded = arrow_cast::cast(array, &to).map_err(|error| CannotStoreValue::other(&error.to_string()))?;
    match unfolded.data_type() == array.data_type() {
        true => Ok(unfolded),
        false => unpacked(&unfolded),
    }
}
