//! Tests of the crate from outside: payloads as ClickHouse and pyarrow write them become the rows that
//! ClickHouse stored for them, and hostile bytes do no harm.

mod hostile;
mod payloads;
mod protobuf;
mod rules;
mod support;
