//! Start, guard and stop of the ClickHouse that Windrow runs for itself.
//!
//! The engine is a child process: this executable run again with a hidden first argument
//! ([`run_engine_if_asked`]), which loads the engine's shared library or becomes a `clickhouse` binary. The
//! child ends with its holder, however the holder ends, because it watches a pipe that only the holder keeps
//! open. [`Embedded`] restarts the engine when it dies, always on the same port, and publishes its
//! [`EngineState`].

mod deduplication_log;
mod error;
mod files;
mod options;
mod xml;

mod engine;
mod guard;

pub use deduplication_log::{mend_deduplication_logs, Mended};
pub use engine::{engine_is_missing, run_engine_if_asked};
pub use error::EmbeddedError;
pub use files::Endpoint;
pub use guard::{Embedded, EngineState, StopOutcome};
pub use options::{EmbeddedOptions, EmbeddedUser, EngineLogLevel};
