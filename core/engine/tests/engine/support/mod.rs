//! Helpers that the tests share: a scripted sink, and a gatherer on it whose inserts are single rows with a
//! number.

mod dead_letters;
mod journal;
mod rows;
mod sink;
mod world;

pub use journal::Machine;
pub use rows::{numbers_of, rows_for, shape_of, PASSTHROUGH};
pub use sink::{Answer, Call, Gate};
pub use world::{outcomes, Told, World};
