//! The crate from outside: bytes of ClickHouse and of other tools, and hostile ones.

mod encodings;
mod golden;
mod hashes;
mod hostile;
mod streams;
