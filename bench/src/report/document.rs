//! docs/benchmarks.md: the method, written by hand in this crate, and one region per benchmark, replaced by its last
//! full run. Every region names the command that fills it, so no figure stands there without one.

use std::fs;
use std::path::Path;

use crate::error::BenchError;

const METHOD: &str = include_str!("method.md");
/// The order of the page, whatever the order of the runs.
pub const REGIONS: [&str; 18] = [
    "inserts",
    "tables",
    "durability",
    "replay",
    "journal",
    "formats",
    "bulk",
    "parsing",
    "culprit",
    "select",
    "idle",
    "article",
    "clients",
    "results",
    "writer",
    "duckdb",
    "appends",
    "kafka",
];

/// What one benchmark has to say.
#[derive(Debug, Clone)]
pub struct Section {
    pub name: &'static str,
    pub title: &'static str,
    /// What to type to measure it again.
    pub command: String,
    pub body: String,
    /// File names and contents, for the folder beside the page.
    pub charts: Vec<(String, String)>,
}

impl Section {
    fn to_markdown(&self, machine: &str) -> String {
        format!(
            "## {}\n\n`{}`\n\n{}\n\n{}\n",
            self.title,
            self.command,
            wrapped(machine.trim()),
            wrapped(self.body.trim())
        )
    }
}

/// Prose in lines of at most 110 characters; tables, code, headings and pictures as they are.
fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if is_code || line.starts_with(['|', '#', '!', '<', '`']) {
            lines.push(line.to_owned());
            continue;
        }
        let indent = if line.starts_with("- ") { "  " } else { "" };
        let mut current = String::new();
        for word in line.split(' ') {
            if current.chars().count() + 1 + word.chars().count() > 110 {
                lines.push(std::mem::replace(&mut current, indent.to_owned() + word));
            } else {
                current += if current.is_empty() { "" } else { " " };
                current += word;
            }
        }
        lines.push(current);
    }
    lines.join("\n")
}

/// Puts a section into `docs/benchmarks.md` of the given folder, and its charts beside it.
pub fn write_section(docs: &Path, section: &Section, machine: &str) -> Result<(), BenchError> {
    let charts = docs.join("benchmarks");
    fs::create_dir_all(&charts).map_err(BenchError::io("creating docs/benchmarks"))?;
    for (name, svg) in &section.charts {
        fs::write(charts.join(name), svg).map_err(BenchError::io(format!("writing {name}")))?;
    }
    let page = docs.join("benchmarks.md");
    let old = fs::read_to_string(&page).unwrap_or_default();
    let new = compose(&old, section.name, &section.to_markdown(machine));
    fs::write(&page, new).map_err(BenchError::io("writing docs/benchmarks.md"))
}

fn compose(old: &str, name: &str, text: &str) -> String {
    let mut page = METHOD.trim().to_owned() + "\n";
    for region in REGIONS {
        let inner = if region == name { Some(text) } else { region_of(old, region) };
        if let Some(inner) = inner {
            page.push_str(&format!("\n{}\n{}\n{}\n", begin(region), inner.trim(), end(region)));
        }
    }
    page
}

fn region_of<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&begin(name))?;
    Some(rest.split_once(&end(name))?.0)
}

fn begin(name: &str) -> String {
    format!("<!-- begin {name}: written by bench/run, edits are lost -->")
}

fn end(name: &str) -> String {
    format!("<!-- end {name} -->")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_and_nothing_else() {
        let long = "word ".repeat(60);
        let (table, code) = (format!("| {long}|"), format!("```\n{long}\n```"));
        let page = wrapped(&format!("- {long}\n\n{table}\n{code}"));
        let words = page.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>();
        assert!(words.iter().all(|line| line.chars().count() <= 110) && words[1].starts_with("  word"), "{page}");
        assert!(page.ends_with(&format!("\n\n{table}\n{code}")), "{page}");
    }

    #[test]
    fn a_section_replaces_its_own_region_only_and_keeps_the_order_of_the_page() {
        let first = compose("", "article", "old article");
        let both = compose(&first, "inserts", "inserts one");
        let again = compose(&both, "article", "new article");
        assert!(again.starts_with(METHOD.trim()));
        assert!(again.find("inserts one").unwrap() < again.find("new article").unwrap());
        assert!(!again.contains("old article"));
        assert_eq!(compose(&again, "article", "new article"), again);
    }
}
