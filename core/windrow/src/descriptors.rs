//! The number of files and connections that the process may have open at a time.

use windrow_settings::Settings;

/// The number of descriptors for logs, ports, and the runtime.
const OWN: u64 = 100;
/// The smallest limit: with fewer descriptors, not even the start would come to its end.
const LEAST: u64 = 32;

/// Raises the limit to all that the operating system grants: many shells and service managers start with
/// 1024, and grant far more.
pub(crate) fn raise_limit(settings: &Settings) -> Result<(), String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a pointer to a struct that lives as long as they run.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return Ok(());
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
            limit = raised;
        }
    }
    if limit.rlim_cur < LEAST {
        let limit = limit.rlim_cur;
        return Err(format!("only {limit} files may be open, and Windrow needs {LEAST} at least: raise `ulimit -n`"));
    }
    let wanted = wanted(settings);
    if limit.rlim_cur < wanted {
        tracing::warn!(
            limit = limit.rlim_cur,
            wanted,
            "the limit of open files is lower than the connections that may come: raise `ulimit -n`, or lower \
             `http.max_connections` and `backend_pool.max_connections`"
        );
    }
    Ok(())
}

/// Returns the number of descriptors for all connections. The backend has two pools: for flushes, and for
/// forwarded requests.
fn wanted(settings: &Settings) -> u64 {
    let [clients, backend] =
        [settings.http.max_connections, settings.backend_pool.max_connections].map(|count| count as u64);
    let flight = if settings.flight.listen.is_some() { crate::flight::MAX_CONNECTIONS as u64 } else { 0 };
    clients + flight + windrow_gateway::MAX_ADMIN_CONNECTIONS as u64 + 2 * backend + OWN
}
