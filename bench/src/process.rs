//! What the processes under test cost: CPU time and memory, from /proc.

use std::collections::HashMap;
use std::fs;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
}

impl Usage {
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            resident_bytes: self.resident_bytes + other.resident_bytes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    cpu_ticks: u64,
    resident_pages: u64,
}

/// All zero when the process is gone.
pub fn usage(pid: u32) -> Usage {
    stat_of(pid).map(to_usage).unwrap_or_default()
}

/// The processes that `pid` started, and those that they started.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(stat) = stat_of(child) {
            children.entry(stat.parent).or_default().push(child);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let own = children.remove(&parent).unwrap_or_default();
        found.extend(&own);
        open.extend(own);
    }
    found
}

/// Lets `peak_resident_bytes` begin anew. The kernel does so for one's own processes.
pub fn reset_peak(pid: u32) -> bool {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").is_ok()
}

pub fn peak_resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    kib * 1024
}

/// Raises the number of files that may be open to what the system allows, and returns it.
pub fn raise_open_files() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a pointer to a live rlimit.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 0;
        }
        let wanted = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) == 0 {
            limit = wanted;
        }
    }
    limit.rlim_cur
}

pub fn own_cpu_seconds() -> f64 {
    usage(std::process::id()).cpu_seconds
}

fn stat_of(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field is the program's name in parentheses and may hold spaces and parentheses itself.
fn parse_stat(text: &str) -> Option<Stat> {
    let after_name = &text[text.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        cpu_ticks: number(11)? + number(12)?,
        resident_pages: number(21)?,
    })
}

fn to_usage(stat: Stat) -> Usage {
    Usage {
        cpu_seconds: stat.cpu_ticks as f64 / system_value(libc::_SC_CLK_TCK, 100) as f64,
        resident_bytes: stat.resident_pages * system_value(libc::_SC_PAGESIZE, 4096),
    }
}

fn system_value(name: libc::c_int, otherwise: u64) -> u64 {
    // SAFETY: sysconf takes no pointers and has no preconditions.
    u64::try_from(unsafe { libc::sysconf(name) }).ok().filter(|value| *value > 0).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 100 1000000 512 18446744073";

    #[test]
    fn reads_a_line_whose_name_holds_parentheses() {
        assert_eq!(parse_stat(LINE), Some(Stat { parent: 7, cpu_ticks: 300, resident_pages: 512 }));
    }

    #[test]
    fn a_line_that_breaks_off_is_refused() {
        for end in 0..LINE.find("512").unwrap() {
            assert_eq!(parse_stat(&LINE[..end]), None, "{end} bytes");
        }
    }

    #[test]
    fn finds_itself_and_its_children() {
        let own = usage(std::process::id());
        assert!(own.resident_bytes > 100_000, "{own:?}");
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let found = descendants(std::process::id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "{found:?}");
    }
}
