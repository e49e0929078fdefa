//! The crate from outside: payloads that the readers take, payloads that they leave, and hostile bytes that
//! do no harm.

mod appending;
mod building;
mod defaults;
mod delimited;
mod golden;
mod hostile;
mod json;
mod json_formats;
mod msgpack;
mod native;
mod native_payloads;
mod other_types;
mod partition;
mod passthrough;
mod render;

mod row_binary;
mod samples;
mod settings;
mod sharding;
mod support;
mod type_names;
mod types;
mod values;
