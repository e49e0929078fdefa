//! What a run came to.

use std::fmt;
use std::time::Duration;

use crate::engine::Engine;

/// The figures of a whole run.
#[derive(Debug, Clone)]
pub struct DemoSummary {
    pub elapsed: Duration,
    pub probes: usize,
    pub cities: usize,
    pub engine: Engine,
    /// Rows that were sent.
    pub inserted: u64,
    pub acknowledged: u64,
    /// Rows of this run in the database, counted there.
    pub found: u64,
    /// Acknowledged rows whose id is not in the database.
    pub missing: u64,
    /// Rows whose id is in the database more than once.
    pub duplicated: u64,
    pub failures: u64,
    /// The last error, if there was one.
    pub last_error: Option<String>,
    /// Measurements that failed, so that there was nothing to insert.
    pub unreachable: u64,
    pub parts_created: u64,
    pub most_active_parts: u64,
    /// How often the parts were looked at.
    pub part_samples: u64,
    pub ack_p50_ms: Option<f64>,
    pub ack_p99_ms: Option<f64>,
}

impl DemoSummary {
    pub fn is_complete(&self) -> bool {
        self.missing == 0
            && self.duplicated == 0
            && self.failures == 0
            && self.found == self.inserted
            && self.inserted > 0
    }

    pub fn parts_per_second(&self) -> f64 {
        self.parts_created as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// Rows whose insert was neither acknowledged nor refused: the run was cut off before.
    pub fn unanswered(&self) -> u64 {
        self.inserted.saturating_sub(self.acknowledged + self.failures)
    }

    /// One sentence.
    pub(crate) fn verdict(&self) -> String {
        if self.is_complete() {
            return format!("Every row was inserted, acknowledged and found in {}, by id.", self.engine.name());
        }
        if self.inserted == 0 {
            return "No row was inserted: the run ended before the first measurement, or no site answered.".to_owned();
        }
        format!(
            "Of {} rows, {} were refused, {} were not answered, {} were acknowledged and are missing, {} are stored twice.",
            self.inserted,
            self.failures,
            self.unanswered(),
            self.missing,
            self.duplicated
        )
    }
}

impl fmt::Display for DemoSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.0} ms"));
        let seconds = self.elapsed.as_secs_f64();
        writeln!(f, "UpClick ran for {seconds:.1} s with {} probes in {} cities.", self.probes, self.cities)?;
        writeln!(f, "  rows inserted        {}", self.inserted)?;
        writeln!(f, "  acknowledged         {}", self.acknowledged)?;
        writeln!(f, "  {:<20} {}", format!("found in {}", self.engine.name()), self.found)?;
        writeln!(f, "  missing              {}", self.missing)?;
        writeln!(f, "  stored twice         {}", self.duplicated)?;
        writeln!(f, "  failed inserts       {}", self.failures)?;
        if self.unreachable > 0 {
            writeln!(f, "  failed measurements  {}", self.unreachable)?;
        }
        writeln!(f, "  acknowledged after   {} (median), {} (p99)", ms(self.ack_p50_ms), ms(self.ack_p99_ms))?;
        let created = format!("{} created", self.engine.pieces());
        writeln!(f, "  {created:<20} {} ({:.2}/s)", self.parts_created, self.parts_per_second())?;
        if self.engine == Engine::ClickHouse {
            writeln!(f, "  most active parts    {} (of {} looks)", self.most_active_parts, self.part_samples)?;
        }
        if let Some(error) = &self.last_error {
            writeln!(f, "  last error           {}", error.replace(['\n', '\r'], " "))?;
        }
        f.write_str(&self.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> DemoSummary {
        DemoSummary {
            elapsed: Duration::from_secs(20),
            probes: 200,
            cities: 40,
            engine: Engine::ClickHouse,
            inserted: 400,
            acknowledged: 400,
            found: 400,
            missing: 0,
            duplicated: 0,
            failures: 0,
            last_error: None,
            unreachable: 0,
            parts_created: 21,
            most_active_parts: 4,
            part_samples: 40,
            ack_p50_ms: Some(510.0),
            ack_p99_ms: Some(1010.0),
        }
    }

    #[test]
    fn only_a_whole_run_is_complete() {
        assert!(summary().is_complete());
        assert!(summary().to_string().contains("21 (1.05/s)"));
        for broken in [
            DemoSummary { missing: 1, found: 399, ..summary() },
            DemoSummary { failures: 1, acknowledged: 399, ..summary() },
            DemoSummary { duplicated: 1, found: 401, ..summary() },
            DemoSummary { inserted: 0, acknowledged: 0, found: 0, ..summary() },
            // Neither acknowledged nor refused when the run was cut off.
            DemoSummary { inserted: 401, ..summary() },
        ] {
            assert!(!broken.is_complete(), "{broken:?}");
            assert!(!broken.verdict().starts_with("Every"));
        }
    }
}
