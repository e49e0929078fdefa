//! The report that every client program prints: its checks, and the inserts that it sent to each table.

use serde_json::{json, Map, Value};
use std::error::Error;

pub type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

#[derive(Default)]
pub struct Report {
    checks: Vec<Value>,
    sent: Map<String, Value>,
}

impl Report {
    pub fn note(&mut self, name: &str, outcome: Outcome) {
        let detail = match &outcome {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        self.checks.push(json!({"name": name, "ok": outcome.is_ok(), "detail": detail}));
    }

    pub fn sends(&mut self, table: &str, inserts: usize) {
        self.sent.insert(table.to_owned(), json!(inserts));
    }

    pub fn print(self) {
        println!("{}", json!({"finished": true, "checks": self.checks, "sent": self.sent}));
    }
}

pub fn equal<T: PartialEq + std::fmt::Debug>(got: T, expected: T) -> Outcome {
    if got == expected {
        Ok(())
    } else {
        Err(format!("got {got:?}, expected {expected:?}").into())
    }
}
