//! The summary of a run.

use std::fmt;
use std::time::Duration;

use crate::engine::Engine;
use crate::snapshot::Averages;

/// The figures of a whole run.
#[derive(Debug, Clone)]
pub struct DemoSummary {
    pub elapsed: Duration,
    pub probes: usize,
    pub cities: usize,
    pub sides: Vec<SideSummary>,
    /// Measurements that failed, so that there was nothing to insert.
    pub unreachable: u64,
    /// The last of them, if there was one.
    pub last_error: Option<String>,
}

/// The figures of one way for rows to go.
#[derive(Debug, Clone)]
pub struct SideSummary {
    pub name: String,
    /// Says whether the rows went without Windrow.
    pub is_straight: bool,
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
    /// The error of looking the rows up, if that failed.
    pub unread: Option<String>,
    pub failures: u64,
    /// Refusals for too many parts, after which the row was tried again.
    pub refusals: u64,
    /// The last error, if there was one.
    pub last_error: Option<String>,
    pub parts_created: u64,
    pub most_active_parts: u64,
    /// Count of active parts, and of parts that are merged but not yet removed.
    pub all_parts: Option<u64>,
    /// Count of looks at the parts.
    pub part_samples: u64,
    pub average: Averages,
    pub ack_p50_ms: Option<f64>,
    pub ack_p99_ms: Option<f64>,
}

impl SideSummary {
    pub fn is_complete(&self) -> bool {
        self.missing == 0
            && self.duplicated == 0
            && self.failures == 0
            && self.found == self.inserted
            && self.inserted > 0
    }

    /// Returns how many rows' inserts were neither acknowledged nor refused: the run was cut off before.
    pub fn unanswered(&self) -> u64 {
        self.inserted.saturating_sub(self.acknowledged + self.failures)
    }

    /// Returns the verdict as one sentence.
    fn verdict(&self) -> String {
        let (name, database) = (capitalised(&self.name), self.engine.name());
        if self.is_complete() {
            return format!("{name}: every row was inserted, acknowledged and found in {database}, by id.");
        }
        if let Some(error) = &self.unread {
            return format!("{name}: the rows could not be looked up: {error}");
        }
        if self.inserted == 0 {
            return "No row was inserted: the run ended before the first measurement, or no site answered.".to_owned();
        }
        format!(
            "{name}: of {} rows, {} were refused, {} were not answered, {} were acknowledged and are missing, \
             {} are stored twice.",
            self.inserted,
            self.failures,
            self.unanswered(),
            self.missing,
            self.duplicated
        )
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

impl DemoSummary {
    pub fn is_complete(&self) -> bool {
        self.sides.iter().all(SideSummary::is_complete)
    }

    pub(crate) fn verdict(&self) -> String {
        match &self.sides[..] {
            [one, other] if one.is_complete() && other.is_complete() => {
                let database = one.engine.name();
                format!("Every row was inserted, acknowledged and found in {database}, by id, both ways.")
            }
            sides => sides.iter().map(SideSummary::verdict).collect::<Vec<_>>().join("\n"),
        }
    }

    /// Returns a sentence that compares straight inserts with those through Windrow.
    fn comparison(&self) -> Option<String> {
        let through = self.sides.iter().find(|side| !side.is_straight)?;
        let straight = self.sides.iter().find(|side| side.is_straight)?;
        // Of unlike amounts of rows it would say nothing.
        if !self.is_complete() {
            return None;
        }
        let became = straight.average.became(&through.average, through.engine);
        let of_core = if became.contains("CPU") { " of a core" } else { "" };
        Some(format!("{became}{of_core}."))
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, label: &str, value: impl Fn(&SideSummary) -> String) -> fmt::Result {
        let cells: String = self.sides.iter().map(|side| format!("  {:>26}", value(side))).collect();
        writeln!(f, "  {label:<20}{}", cells.trim_end())
    }
}

impl fmt::Display for DemoSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.0} ms"));
        let seconds = self.elapsed.as_secs_f64();
        writeln!(f, "UpClick ran for {seconds:.1} s with {} probes in {} cities.", self.probes, self.cities)?;
        let Some(first) = self.sides.first() else { return Ok(()) };
        self.row(f, "", |side| side.name.clone())?;
        self.row(f, "rows inserted", |side| side.inserted.to_string())?;
        self.row(f, "acknowledged", |side| side.acknowledged.to_string())?;
        self.row(f, &format!("found in {}", first.engine.name()), |side| side.found.to_string())?;
        self.row(f, "missing", |side| side.missing.to_string())?;
        self.row(f, "stored twice", |side| side.duplicated.to_string())?;
        self.row(f, "failed inserts", |side| side.failures.to_string())?;
        if self.sides.iter().any(|side| side.refusals > 0) {
            self.row(f, "too many parts", |side| format!("{} times, tried again", side.refusals))?;
        }
        self.row(f, "acknowledged after", |side| format!("{}, {} (p99)", ms(side.ack_p50_ms), ms(side.ack_p99_ms)))?;
        self.row(f, &format!("{} created", first.engine.pieces()), |side| {
            format!("{} ({:.1}/s)", side.parts_created, side.average.parts_per_second)
        })?;
        if first.engine == Engine::ClickHouse {
            self.row(f, "most active parts", |side| {
                format!("{} (of {} looks)", side.most_active_parts, side.part_samples)
            })?;
            let count = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
            self.row(f, "all parts at the end", |side| count(side.all_parts))?;
            let percent = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} % of a core"));
            self.row(f, "ClickHouse's CPU", |side| percent(side.average.database_cpu_percent))?;
        }
        if self.unreachable > 0 {
            writeln!(f, "  failed measurements {:>28}", self.unreachable)?;
        }
        for error in self.sides.iter().filter_map(|side| side.last_error.as_ref()).chain(&self.last_error) {
            writeln!(f, "  last error: {}", error.replace(['\n', '\r', '\x1b'], " "))?;
        }
        f.write_str(&self.verdict())?;
        match self.comparison() {
            Some(comparison) => write!(f, "\n{comparison}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through() -> SideSummary {
        SideSummary {
            name: "through Windrow".to_owned(),
            is_straight: false,
            engine: Engine::ClickHouse,
            inserted: 400,
            acknowledged: 400,
            found: 400,
            missing: 0,
            duplicated: 0,
            unread: None,
            failures: 0,
            refusals: 0,
            last_error: None,
            parts_created: 21,
            most_active_parts: 4,
            all_parts: Some(21),
            part_samples: 40,
            average: Averages { parts_per_second: 1.05, database_cpu_percent: Some(6.2) },
            ack_p50_ms: Some(510.0),
            ack_p99_ms: Some(1010.0),
        }
    }

    fn straight() -> SideSummary {
        let average = Averages { parts_per_second: 20.0, database_cpu_percent: Some(57.0) };
        SideSummary { name: "straight to ClickHouse".to_owned(), is_straight: true, average, ..through() }
    }

    fn summary(sides: Vec<SideSummary>) -> DemoSummary {
        DemoSummary {
            elapsed: Duration::from_secs(20),
            probes: 200,
            cities: 40,
            sides,
            unreachable: 0,
            last_error: None,
        }
    }

    #[test]
    fn only_a_whole_run_is_complete() {
        assert!(through().is_complete());
        assert!(summary(vec![through()]).to_string().contains("21 (1.1/s)"));
        for broken in [
            SideSummary { missing: 1, found: 399, ..through() },
            SideSummary { failures: 1, acknowledged: 399, ..through() },
            SideSummary { duplicated: 1, found: 401, ..through() },
            SideSummary { inserted: 0, acknowledged: 0, found: 0, ..through() },
            // Neither acknowledged nor refused when the run was cut off.
            SideSummary { inserted: 401, ..through() },
            SideSummary { missing: 1, found: 399, ..straight() },
            SideSummary { missing: 400, found: 0, unread: Some("it is gone".to_owned()), ..straight() },
        ] {
            assert!(!broken.is_complete(), "{broken:?}");
            assert!(!broken.verdict().contains("every"));
            assert!(!summary(vec![through(), broken]).is_complete());
        }
        let refused = SideSummary { refusals: 7, ..straight() };
        assert!(refused.is_complete());
        assert!(summary(vec![through(), refused]).to_string().contains("7 times, tried again"));
    }

    #[test]
    fn both_sides_stand_beside_each_other_and_end_in_a_sentence() {
        let text = summary(vec![through(), straight()]).to_string();
        assert!(text.ends_with("20 parts/s became 1.1; ClickHouse's CPU 57 % became 6 % of a core."), "{text}");
        assert!(
            text.contains("found in ClickHouse                          400                         400"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
