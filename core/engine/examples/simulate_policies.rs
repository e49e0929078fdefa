//! Prints, as Markdown, the comparison of `balanced` with ClickHouse's own queue, and that of many tables on one
//! backend which flush as if alone with those that flush in turn.

#[path = "../tests/engine/policy/mod.rs"]
mod simulation;

use simulation::report::{many_tables_markdown, markdown};
use simulation::{many, scenarios};

fn main() {
    let comparisons: Vec<_> = scenarios::all().iter().map(simulation::compare).collect();
    print!("{}", markdown(&comparisons));
    let contrasts: Vec<_> = many::all().iter().map(many::compare).collect();
    print!("\n{}", many_tables_markdown(&contrasts));
}
