//! UpClick: probes all over the world measure how fast web sites answer, and each inserts its one row at once.
//!
//! It is the load that asynchronous inserts are made for: hundreds of small writers that can't batch among themselves.
//! [`run`] plays all probes against a gateway, shows what it and the database make of it while it lasts, and in the end
//! looks up every single row. Real sites are measured by URL; without any, the demo serves two itself, with the delays
//! that distance would cause, so that it works offline.
//!
//! `probe.rs` is the life of one probe; `watch.rs` asks the database what came of it; `run.rs` ties them together; the
//! rest are their parts, most of them pure.

mod calendar;
mod cities;
mod cpu;
mod display;
mod engine;
mod errors;
mod options;
mod percentiles;
mod plain;
mod probe;
mod probe_results;
mod rate;
mod run;
mod screen;
mod signals;
mod sites;
mod snapshot;
mod store;
mod style;
mod summary;
mod target;
mod terminal;
mod watch;

pub use engine::Engine;
pub use errors::DemoError;
pub use options::{DemoOptions, Output, PidSource};
pub use run::run;
pub use summary::DemoSummary;
pub use terminal::draws_on_terminal;
