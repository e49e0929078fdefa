//! The crate from outside: how a source is cut, and what is sent.

mod cutting;
mod files;
mod sending;
mod support;
