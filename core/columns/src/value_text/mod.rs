//! Numbers, days and times as ClickHouse writes them as text.

pub mod number;
pub mod time;

use std::io::Write;

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a vector cannot fail");
}
