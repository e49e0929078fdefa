//! What this process takes of the machine, as Linux tells it. Elsewhere nothing is known.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ProcessUsage {
    /// User and system time of all threads since the start.
    pub(super) cpu_seconds: f64,
    pub(super) memory_bytes: u64,
}

pub(super) fn process_usage() -> Option<ProcessUsage> {
    usage_of(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The fields are counted after the name, which may hold spaces and brackets itself.
fn usage_of(stat: &str) -> Option<ProcessUsage> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let resident_pages: u64 = fields.nth(8)?.parse().ok()?;
    Some(ProcessUsage {
        cpu_seconds: (user + system) as f64 / clock_ticks_per_second() as f64,
        memory_bytes: resident_pages * page_size() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_right_fields_whatever_the_name() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 1 2 3 4 700 55 9 9 20 0 30 0 1 2 3";
        let usage = usage_of(stat).unwrap();
        assert_eq!(usage.cpu_seconds, 755.0 / clock_ticks_per_second() as f64);
        assert_eq!(usage.memory_bytes, 3 * page_size() as u64);
        assert!(usage_of(&stat[..stat.len() - 2]).is_none());
    }
}
