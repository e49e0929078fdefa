//! The memory that this process may use: the basis of the default of `gather.max_buffer_bytes`.

use std::fs;

const FLOOR_BYTES: u64 = 64 << 20;
const WHEN_UNKNOWN_BYTES: u64 = 256 << 20;

/// Returns a tenth of the machine's (or the container's) memory, at least 64 MiB; 256 MiB where it can't be
/// found out.
pub(crate) fn default_buffer_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of_meminfo(&text));
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    share_of(machine, container)
}

fn share_of(machine_bytes: Option<u64>, container_bytes: Option<u64>) -> u64 {
    let available = match (machine_bytes, container_bytes) {
        (Some(machine), Some(container)) => machine.min(container),
        (Some(known), None) | (None, Some(known)) => known,
        (None, None) => return WHEN_UNKNOWN_BYTES,
    };
    // Whole MiB, so that it can be read.
    (available / 10).max(FLOOR_BYTES) >> 20 << 20
}

fn total_of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_tenth_of_the_smaller_limit() {
        assert_eq!(share_of(Some(16 << 30), None), 1638 << 20);
        assert_eq!(share_of(Some(16 << 30), Some(2 << 30)), 204 << 20);
        assert_eq!(share_of(Some(100 << 20), None), FLOOR_BYTES);
        assert_eq!(share_of(None, None), WHEN_UNKNOWN_BYTES);
    }

    #[test]
    fn reads_meminfo() {
        assert_eq!(total_of_meminfo("MemTotal:       24683912 kB\nMemFree: 1 kB\n"), Some(24683912 * 1024));
        assert_eq!(total_of_meminfo("MemFree: 1 kB\n"), None);
        assert_eq!(total_of_meminfo("MemTotal: lots kB\n"), None);
    }
}
