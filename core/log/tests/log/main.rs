//! The log from outside: what is read back, also from damaged files.

mod damage;
mod log;
mod support;
