//! Identities of processes, and whether the process that owns a lane still lives. That is known at once for a
//! process on the same machine; for others the lease decides.

use std::fs;

/// Returns the identity of this process: machine since its boot, namespace of process numbers, number, and
/// when it started. A number is given out again in time, and each container counts from 1: only all four
/// together name a process.
pub(super) fn own_identity() -> String {
    let pid = std::process::id();
    let place = place().unwrap_or_else(|| "elsewhere".into());
    format!("{place}/{pid}/{}", start_time(pid).unwrap_or_default())
}

/// Says whether a process is dead; true only when that is certain.
pub(super) fn is_dead(identity: &str) -> bool {
    let mut parts = identity.rsplitn(3, '/');
    let (Some(started), Some(pid), Some(where_it_ran)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Ok(pid), Some(place)) = (pid.parse::<u32>(), place()) else { return false };
    place == where_it_ran && !started.is_empty() && start_time(pid).is_none_or(|start| start != started)
}

fn place() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{}/{}", boot.trim(), namespace.to_str()?))
}

/// Returns the start in ticks since the boot. Returns `None` also for a process that has ended and waits for
/// its parent to notice.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so fields are counted from its end.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_live_and_who_ran_here_and_is_gone_is_dead() {
        let own = own_identity();
        assert!(!is_dead(&own), "{own}");
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let identity = own.replace(&format!("/{}/", std::process::id()), &format!("/{}/", child.id()));
        let identity = format!("{}/{}", identity.rsplit_once('/').unwrap().0, start_time(child.id()).unwrap());
        assert!(!is_dead(&identity), "{identity}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_dead(&identity), "{identity}");
    }

    #[test]
    fn of_others_nothing_is_known() {
        for identity in ["", "elsewhere/4000000/77", "boot/pid:[1]/4000000/77", "x/y"] {
            assert!(!is_dead(identity), "{identity}");
        }
    }
}
