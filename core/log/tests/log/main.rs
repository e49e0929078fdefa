//! Tests of the log from outside: the records that are read back, also from damaged files.

mod damage;
mod log;
mod support;
