//! The opaque way: payloads that stay the text they came as, and may all the same be joined with others.

mod rows;

pub use rows::OpaqueRows;
