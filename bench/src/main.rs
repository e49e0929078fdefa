mod error;
mod load;
mod process;
mod sql;
mod wire;
fn main() {}
