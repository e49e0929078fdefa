//! Settings of files, variables and the command line together.

mod common;
mod kafka;
mod load;
