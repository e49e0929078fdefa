//! Formats that other systems define: Arrow's IPC stream and file, Parquet, Avro's files, Protobuf.
//!
//! Each format is read in two steps: into columns as the payload has them (`arrow`), and from there into the
//! table's columns (`convert`), where ClickHouse's rules are. As in `windrow_columns`, a payload is not
//! parsed if its meaning is not certain. All functions are pure functions on bytes, and none trusts a length:
//! memory for what grows is granted first (`budget`).

mod arrow;
mod avro;
mod budget;
mod column;
mod convert;
mod decompress;
mod format;
mod growing;
mod input;
mod mapping;
mod number_form;
mod parquet;
mod protobuf;

pub use arrow::{check_arrow_stream, read_record_batch_of, ArrowFault};
pub use avro::{avro_schema, AvroDecoder, AvroRows};
pub use format::{format, formats};
pub use protobuf::{ProtobufPlan, ProtobufRows, ProtobufSchema};
