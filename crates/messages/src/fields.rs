//! The rows that a format makes of messages' values: one face for readers that keep their memory from message to message.

use windrow_block::{Parsed, Series, SeriesError};
use windrow_interchange::ProtobufRows;

use crate::format::Kind;
use crate::plan::MessagePlan;

pub(crate) enum FieldRows<'p> {
    Payload(Series<'p>),
    Protobuf(ProtobufRows<'p>),
}

impl<'p> FieldRows<'p> {
    pub(crate) fn new(plan: &'p MessagePlan) -> Self {
        match &plan.format.kind {
            Kind::Protobuf { .. } => {
                let protobuf = plan.protobuf.as_ref().expect("it was made with the plan");
                FieldRows::Protobuf(ProtobufRows::new(protobuf, &plan.fields))
            }
            Kind::Payload(format) => {
                FieldRows::Payload(Series::new(format, &plan.fields).expect("the plan was checked when it was made"))
            }
        }
    }

    /// Reads all rows of a value, or leaves no trace of it.
    #[inline]
    pub(crate) fn read(&mut self, value: &[u8]) -> Result<usize, SeriesError> {
        match self {
            FieldRows::Payload(series) => series.read(value),
            FieldRows::Protobuf(rows) => rows.read(value),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            FieldRows::Payload(series) => series.bytes(),
            FieldRows::Protobuf(rows) => rows.bytes(),
        }
    }

    pub(crate) fn take(&mut self) -> Parsed {
        match self {
            FieldRows::Payload(series) => series.take(),
            FieldRows::Protobuf(rows) => rows.take(),
        }
    }
}
