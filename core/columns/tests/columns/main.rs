//! The crate from outside: what the readers take, what they leave, and that hostile bytes do no harm.

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
mod results;
mod row_binary;
mod samples;
mod settings;
mod sharding;
mod support;
mod types;
mod values;
