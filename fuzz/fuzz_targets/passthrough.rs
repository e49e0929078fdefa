#![no_main]
//! Joins payloads of any bytes: a payload does not change its neighbours. The first byte chooses the format.

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use windrow_columns::{PassthroughFormat, PassthroughPlan, PassthroughSettings};

const COLUMNS: [(&str, &str); 3] = [("id", "UInt64"), ("tags", "Array(String)"), ("data", "JSON")];

static PLANS: LazyLock<Vec<PassthroughPlan>> = LazyLock::new(|| {
    let plan = |format| PassthroughPlan::new(COLUMNS, &PassthroughSettings::of(format)).expect("the columns are known");
    PassthroughFormat::all().map(plan).collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((choice, payload)) = input.split_first() else { return };
    let plan = &PLANS[*choice as usize % PLANS.len()];
    let Ok(one) = plan.join(payload) else { return };
    let text = [one.rows.text(), one.rows.text()].concat();
    let both = plan.join(&[one.header.as_slice(), &text].concat()).expect("what may be joined is joined");
    assert_eq!(both.rows.text(), text);
    assert_eq!(both.rows.count(), 2 * one.rows.count());
});
