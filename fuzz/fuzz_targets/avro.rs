#![no_main]

#[path = "shared.rs"]
mod shared;

fuzz_format!("Avro");
