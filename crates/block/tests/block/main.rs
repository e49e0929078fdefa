//! The crate from outside: what the readers take, what they leave, and that hostile bytes do no harm.

mod appending;
mod building;
mod defaults;
mod delimited;
mod hostile;
mod json;
mod json_formats;
mod native;
mod partition;
mod other_types;
mod render;
mod samples;
mod settings;
mod support;
mod types;
mod values;
