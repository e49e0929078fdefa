use std::fmt;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// The error of a port that can't be opened.
#[derive(Debug)]
pub struct ListenError {
    address: SocketAddr,
    setting: &'static str,
    cause: std::io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListenError { address, setting, cause } = self;
        match cause.kind() {
            std::io::ErrorKind::AddrInUse => {
                write!(f, "{address} is taken by another program; stop it or choose another `{setting}`")
            }
            _ => write!(f, "cannot listen on {address}: {cause}; choose another `{setting}`"),
        }
    }
}

impl std::error::Error for ListenError {}

/// Length of the queue of new connections. Hundreds of writers may connect at the same moment; a client that
/// finds the queue full waits a second before it tries again.
const BACKLOG: u32 = 4096;

/// Opens a port.
///
/// # Errors
/// Fails where the address can't be used or is taken by another program; the error names `setting`.
pub fn bind(address: SocketAddr, setting: &'static str) -> Result<TcpListener, ListenError> {
    listen(address).map_err(|cause| ListenError { address, setting, cause })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A gateway that is restarted gets its port back although old connections linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
