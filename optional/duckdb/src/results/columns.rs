use arrow_array::RecordBatch;
use arrow_schema::Schema;
use windrow_columns::DataType;

use crate::results::error::ResultError;
use crate::results::shape::Shape;
use crate::results::values::Column;

/// A result's columns, with the names and the ClickHouse types under which they are written.
#[derive(Debug, Clone)]
pub struct Columns {
    names: Vec<String>,
    shapes: Vec<Shape>,
}

impl Columns {
    /// Finds the types of a result's columns. `first` is the result's first batch, if it has one: only its
    /// values have the names of an ENUM.
    ///
    /// # Errors
    /// Fails where a column has a type that ClickHouse's formats have nothing for.
    pub fn of(schema: &Schema, first: Option<&RecordBatch>) -> Result<Columns, ResultError> {
        let mut columns = Columns { names: Vec::new(), shapes: Vec::new() };
        for (at, field) in schema.fields().iter().enumerate() {
            // An array of another type than was announced is not looked into here, and refused when it is written.
            let values = first.and_then(|batch| batch.columns().get(at));
            let values = values.filter(|array| array.data_type() == field.data_type());
            let refused = |data_type| ResultError::Type { column: field.name().clone(), data_type };
            columns.shapes.push(Shape::of(field, values).map_err(refused)?);
            columns.names.push(field.name().clone());
        }
        Ok(columns)
    }

    pub(crate) fn none() -> Columns {
        Columns { names: Vec::new(), shapes: Vec::new() }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn types(&self) -> Vec<DataType> {
        self.shapes.iter().map(Shape::data_type).collect()
    }

    pub(crate) fn type_names(&self) -> Vec<String> {
        self.types().iter().map(ToString::to_string).collect()
    }

    /// Reads the columns of a batch, which have to be those of the result.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<Vec<Column>, ResultError> {
        if batch.num_columns() != self.shapes.len() {
            return Err(ResultError::Data(format!("a batch has {} columns", batch.num_columns())));
        }
        let column = |(at, shape): (usize, &Shape)| {
            let array = batch.column(at);
            let other = || ResultError::Data(format!("column {} came as {}", self.names[at], array.data_type()));
            Column::of(array, shape).ok_or_else(other)
        };
        self.shapes.iter().enumerate().map(column).collect()
    }
}
