//! Formats that other systems define: Arrow's IPC stream and file, Parquet, Avro's files, Protobuf.
//!
//! Each is read twice: into columns as the payload has them (`arrow`), and from there into the table's
//! (`convert`), which is where ClickHouse's rules are. As in `windrow_columns`, what is not certain is not parsed. Pure
//! functions on bytes, none of which trusts a length: what grows is granted first (`budget`).

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
