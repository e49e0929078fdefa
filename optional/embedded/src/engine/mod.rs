//! The engine itself: its location, its configuration, and the child process that it runs in.

mod child;
pub(crate) mod config;
mod holder;
mod locate;

pub use child::run_engine_if_asked;
pub(crate) use child::HIDDEN_COMMAND;
pub use locate::engine_is_missing;
pub(crate) use locate::locate;
