//! What the project promises, beside what was measured.

use crate::report::{figure, Table};

pub struct Goals {
    table: Table,
    any: bool,
}

impl Goals {
    pub fn new() -> Self {
        Goals { table: Table::new(["goal", "measured", "met"]), any: false }
    }

    pub fn at_least(&mut self, what: &str, goal: f64, measured: f64) {
        self.add(format!("{what}: at least {goal}"), measured, measured >= goal);
    }

    pub fn at_most(&mut self, what: &str, goal: f64, measured: f64) {
        self.add(format!("{what}: at most {goal}"), measured, measured <= goal);
    }

    fn add(&mut self, what: String, measured: f64, met: bool) {
        self.any = true;
        self.table.row([what, figure(measured), if met { "yes" } else { "**no**" }.into()]);
    }

    /// Empty when the run measured nothing that a goal is about.
    pub fn to_markdown(&self) -> String {
        if self.any {
            self.table.to_markdown()
        } else {
            String::new()
        }
    }
}
