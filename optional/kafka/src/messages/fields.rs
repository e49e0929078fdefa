//! The rows that a format makes of messages' values: one interface for readers that keep their memory from
//! message to message.

use windrow_columns::{Parsed, Series, SeriesError};
use windrow_interchange::ProtobufRows;

use crate::messages::avro::AvroMessages;
use crate::messages::format::Kind;
use crate::messages::plan::MessagePlan;

pub(crate) enum FieldRows<'p> {
    Payload(Series<'p>),
    Protobuf(ProtobufRows<'p>),
    Avro(AvroMessages<'p>),
}

/// The cause why a value became no rows.
pub(crate) enum FieldError {
    Refused(SeriesError),
    /// The schema does not fit the table.
    Schema(String),
    MissingSchema(u32),
}

impl<'p> FieldRows<'p> {
    pub(crate) fn new(plan: &'p MessagePlan) -> Self {
        match &plan.format.kind {
            Kind::Protobuf { .. } => {
                let protobuf = plan.protobuf.as_ref().expect("it was made with the plan");
                FieldRows::Protobuf(ProtobufRows::new(protobuf, &plan.fields))
            }
            Kind::Avro | Kind::AvroConfluent => FieldRows::Avro(AvroMessages::new(plan)),
            Kind::Payload(format) => {
                FieldRows::Payload(Series::new(format, &plan.fields).expect("the plan was checked when it was made"))
            }
        }
    }

    /// Reads all rows of a value, or leaves no trace of it.
    #[inline]
    pub(crate) fn read(&mut self, value: &[u8]) -> Result<usize, FieldError> {
        match self {
            FieldRows::Payload(series) => series.read(value).map_err(FieldError::Refused),
            FieldRows::Protobuf(rows) => rows.read(value).map_err(FieldError::Refused),
            FieldRows::Avro(messages) => messages.read(value),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            FieldRows::Payload(series) => series.bytes(),
            FieldRows::Protobuf(rows) => rows.bytes(),
            FieldRows::Avro(messages) => messages.bytes(),
        }
    }

    pub(crate) fn take(&mut self) -> Parsed {
        match self {
            FieldRows::Payload(series) => series.take(),
            FieldRows::Protobuf(rows) => rows.take(),
            FieldRows::Avro(messages) => messages.take(),
        }
    }
}
