//! Tests of the crate from outside: with bytes of ClickHouse and of other tools, and with hostile ones.

mod encodings;
mod golden;
mod hashes;
mod hostile;
mod streams;
