//! ClickHouse's Native format as a client reads it: results in columns, block by block as the bytes come in.
//!
//! Pure functions on bytes: no I/O, no tasks, no clock, no Python.

mod arrow;
mod column;
mod decode;

pub use arrow::{arrow_array, arrow_schema, arrow_stream, ArrowColumn, ArrowError, ArrowOptions, Unsuited};
pub use column::{Block, Column, Header};
pub use decode::{BlockDecoder, ColumnName, DecodeError, Problem};
