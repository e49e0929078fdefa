#![no_main]

#[path = "shared.rs"]
mod shared;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use windrow_block::{read_values, ReadPlan};

static PLAN: LazyLock<ReadPlan> = LazyLock::new(shared::plan);

fuzz_target!(|payload: &[u8]| shared::check(read_values(payload, &PLAN), &PLAN));
