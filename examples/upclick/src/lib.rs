//! UpClick: probes all over the world measure how fast web sites answer, and each inserts its one row at once.
//!
//! It is the load that asynchronous inserts are made for: hundreds of small writers that can't batch among
//! themselves. [`run`] lets all probes insert each row through a gateway, and also straight into a database
//! if asked. It shows the outcome while the run lasts, on the terminal and on a page with a map, and in the
//! end looks up every single row. Real sites are measured by URL; without any, the demo serves two itself,
//! with the delays that distance would cause, so that it works offline.
//!
//! `probe.rs` is the life of one probe. `side.rs` is one way for its rows: through Windrow, or straight.
//! `watch.rs` queries the database for the rows. `observer.rs` makes one picture of all that, and `run.rs`
//! ties them together. The other files are their parts, most of them pure. `otel/` is another scene: agents
//! that send OpenTelemetry's logs, traces and metrics.

mod calendar;
mod cities;
mod cpu;
mod display;
mod engine;
mod errors;
mod local_server;
mod observer;
mod options;
mod otel;
mod page;
mod percentiles;
mod plain;
mod probe;
mod probe_results;
mod rate;
mod run;
mod screen;
mod side;
mod sites;
mod snapshot;
mod stop;
mod store;
mod style;
mod summary;
mod target;
mod terminal;
mod watch;

pub use engine::Engine;
pub use errors::DemoError;
pub use options::{Browser, DemoOptions, Destination, Inserts, Output, PidSource};
pub use otel::{run_otel, OtelOptions, OtelSummary};
pub use run::run;
pub use snapshot::Averages;
pub use stop::StopRequests;
pub use summary::{DemoSummary, SideSummary};
pub use terminal::terminal_columns;
