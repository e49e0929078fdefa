//! Tests of the database from outside: statements, types, transactions, results in every format.

mod first;
#[path = "../support/number.rs"]
mod number;
mod results;
mod statements;
#[path = "../support/mod.rs"]
mod support;
mod together;
mod types;
