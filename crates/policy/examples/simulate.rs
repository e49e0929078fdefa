//! Prints the comparison of `balanced` with ClickHouse's own queue as Markdown.

#[path = "../simulation/mod.rs"]
mod simulation;

fn main() {
    let comparisons: Vec<_> = simulation::scenarios::all().iter().map(simulation::compare).collect();
    print!("{}", simulation::markdown(&comparisons));
}
