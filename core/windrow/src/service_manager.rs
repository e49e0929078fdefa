//! Messages to the service manager, systemd or one that speaks like it: datagrams to the socket that it names
//! in NOTIFY_SOCKET (sd_notify(3)). Without such a socket, nothing is sent.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The message that all ports are served. It is also sent when the settings were read anew.
pub(crate) const READY: &str = "READY=1";
pub(crate) const RELOADING: &str = "RELOADING=1";
pub(crate) const STOPPING: &str = "STOPPING=1";
const ALIVE: &str = "WATCHDOG=1";

/// Time limit of a send: nobody waits longer for a manager that doesn't read.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Time after which the manager ends a service that is silent.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    pub(crate) fn of_process() -> Result<ServiceManager, String> {
        let named = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let Some(name) = named else { return Ok(ServiceManager { socket: None, watchdog: None }) };
        let watchdog = watchdog(std::env::var_os("WATCHDOG_USEC"), std::env::var_os("WATCHDOG_PID"));
        ServiceManager::at(&name, watchdog)
            .map_err(|error| format!("NOTIFY_SOCKET is {}, which can't be written to: {error}", name.display()))
    }

    fn at(name: &OsStr, watchdog: Option<Duration>) -> io::Result<ServiceManager> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(ServiceManager { socket: Some((socket, address(name)?)), watchdog })
    }

    /// Sends a state. A manager that is gone is no reason to end.
    pub(crate) fn tell(&self, state: &str) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            tracing::warn!(%error, state, "the service manager could not be told");
        }
    }

    /// Sends a sign of life twice in the manager's time, while the runtime still gets around to its tasks.
    /// Never ends.
    pub(crate) async fn feed_watchdog(&self) {
        let Some(period) = self.watchdog else { return std::future::pending().await };
        let mut tick = tokio::time::interval(period / 2);
        loop {
            tick.tick().await;
            self.tell(ALIVE);
        }
    }
}

/// Returns the socket's address. `@` stands for the zero byte that abstract names begin with.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.as_bytes().strip_prefix(b"@") {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(name)
}

/// Returns the watchdog's time, if it is meant for this process: a child inherits both variables.
fn watchdog(microseconds: Option<OsString>, pid: Option<OsString>) -> Option<Duration> {
    let number = |text: OsString| text.to_str()?.parse::<u64>().ok();
    let is_ours = pid.is_none_or(|pid| number(pid) == Some(std::process::id().into()));
    microseconds.and_then(number).filter(|&period| is_ours && period > 0).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).expect("a datagram comes");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn a_socket_is_named_by_a_path_or_abstractly() {
        let unique = format!("windrow-service-manager-{}", std::process::id());
        let path = std::env::temp_dir().join(&unique);
        let mut named = vec![(path.clone().into_os_string(), UnixDatagram::bind(&path).expect("the path is free"))];
        if cfg!(target_os = "linux") {
            let name = OsString::from(format!("@{unique}"));
            let address = address(&name).expect("a name that is short enough");
            named.push((name, UnixDatagram::bind_addr(&address).expect("the name is free")));
        }
        for (name, socket) in named {
            ServiceManager::at(&name, None).expect("an address").tell(READY);
            assert_eq!(received(&socket), "READY=1", "{}", name.display());
        }
        std::fs::remove_file(path).expect("it was made above");
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_fed_twice_in_its_time() {
        let path = std::env::temp_dir().join(format!("windrow-watchdog-{}", std::process::id()));
        let socket = UnixDatagram::bind(&path).expect("the path is free");
        let manager = ServiceManager::at(path.as_os_str(), Some(Duration::from_secs(60))).expect("an address");
        let fed = tokio::time::timeout(Duration::from_secs(70), manager.feed_watchdog()).await;
        assert!(fed.is_err(), "it never ends");
        socket.set_nonblocking(true).expect("a socket of this process");
        let said = (0..3).map(|_| received(&socket));
        assert!(said.into_iter().all(|text| text == "WATCHDOG=1"), "at 0, 30 and 60 s");
        assert!(socket.recv(&mut [0; 64]).is_err(), "and no more");
        std::fs::remove_file(path).expect("it was made above");
    }

    #[test]
    fn a_watchdog_of_another_process_is_not_ours() {
        let text = |text: &str| Some(OsString::from(text));
        let own = std::process::id().to_string();
        assert_eq!(watchdog(text("1500000"), None), Some(Duration::from_millis(1500)));
        assert_eq!(watchdog(text("1500000"), text(&own)), Some(Duration::from_millis(1500)));
        assert_eq!(watchdog(text("1500000"), text("1")), None);
        assert_eq!(watchdog(None, text(&own)), None);
        assert_eq!((watchdog(text("0"), None), watchdog(text("soon"), None)), (None, None));
    }
}
