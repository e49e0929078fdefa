//! Tests with a real embedded ClickHouse: they need the engine that `make setup` installs.

mod guarding;
mod holding;
mod serving;
mod support;
