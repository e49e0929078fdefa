//! The embedded ClickHouse, for real: it needs the engine that `make setup` installs.

mod guarding;
mod holding;
mod locking;
mod serving;
mod support;
