//! The tables that are printed.

use std::fmt::Write;

use super::books::{Load, Outcome};

#[derive(Clone, Debug)]
pub struct Comparison {
    pub name: String,
    pub rate: Option<f64>,
    pub adaptive: Outcome,
    /// Figures of ClickHouse's algorithm with one flush at a time, where that makes a difference.
    pub in_order: Option<Outcome>,
    pub balanced: Outcome,
}

pub fn markdown(comparisons: &[Comparison]) -> String {
    let mut text = String::from(
        "| arrivals | inserts/s | policy | wait p50 ms | wait p99 ms | held mean ms | inserts/part | parts/s |\n\
         |---|---:|---|---:|---:|---:|---:|---:|\n",
    );
    for comparison in comparisons {
        row(&mut text, comparison, "adaptive", &comparison.adaptive);
        if let Some(in_order) = &comparison.in_order {
            row(&mut text, comparison, "adaptive, in order", in_order);
        }
        row(&mut text, comparison, "balanced", &comparison.balanced);
    }
    text
}

fn row(text: &mut String, comparison: &Comparison, policy: &str, outcome: &Outcome) {
    let name = &comparison.name;
    // An open loop has a rate; a closed one reaches one.
    let rate = comparison.rate.unwrap_or(outcome.inserts_per_s);
    let Outcome { wait_p50_ms, wait_p99_ms, held_mean_ms, inserts_per_part, parts_per_s, .. } = outcome;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "| {name} | {rate:.0} | {policy} | {wait_p50_ms:.1} | {wait_p99_ms:.1} | {held_mean_ms:.1} | {inserts_per_part:.2} | {parts_per_s:.2} |"
    );
}

/// Figures of many tables on one backend, each as if it were alone and with the policy above them.
#[derive(Clone, Debug)]
pub struct Contrast {
    pub name: String,
    pub tables: usize,
    pub alone: Load,
    pub in_turn: Load,
}

pub fn many_tables_markdown(contrasts: &[Contrast]) -> String {
    let mut text = String::from(
        "| arrivals | tables | flushes | inserts/s | wait p50 ms | wait p99 ms | longest ms | inserts/part | parts/s | CPUs busy |\n\
         |---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for Contrast { name, tables, alone, in_turn } in contrasts {
        for (flushes, load) in [("as if alone", alone), ("in turn", in_turn)] {
            let Load { inserts_per_s, waits, inserts_per_part, parts_per_s, cpu_share } = load;
            let (p50_ms, p99_ms, max_ms) = (waits.p50_ms, waits.p99_ms, waits.max_ms);
            let busy = cpu_share * 100.0;
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {name} | {tables} | {flushes} | {inserts_per_s:.0} | {p50_ms:.0} | {p99_ms:.0} | {max_ms:.0} \
                 | {inserts_per_part:.2} | {parts_per_s:.1} | {busy:.0} % |"
            );
        }
    }
    text
}
