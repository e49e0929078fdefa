//! The processor time that a process has used.

use std::fs;

/// Returns the processor time in seconds that all threads of a process have used, or `None` when it is gone
/// or can't be seen.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // SAFETY: sysconf only reads a constant of the system.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    (ticks_per_second > 0).then_some(())?;
    Some(ticks_of(&stat)? as f64 / ticks_per_second as f64)
}

/// Returns user and system time. The fields are counted after the name, which may have spaces and brackets itself.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_right_fields_whatever_the_name() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 1 2 3 4 700 55 9 9 20 0 30 0 1 2 3";
        assert_eq!(ticks_of(stat), Some(755));
        for end in 0..stat.find(" 9 9").expect("the field after the times") {
            let shorter = ticks_of(&stat[..end]);
            assert!(shorter.is_none_or(|ticks| ticks < 755), "{end}: {shorter:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn sees_this_process() {
        assert!(cpu_seconds(std::process::id()).is_some());
        assert_eq!(cpu_seconds(u32::MAX), None);
    }
}
