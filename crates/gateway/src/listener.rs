use std::fmt;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// A port that can't be had.
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
            _ => write!(f, "cannot listen on {address} (`{setting}`): {cause}"),
        }
    }
}

impl std::error::Error for ListenError {}

/// Opens a port; `setting` is named in the error.
pub async fn bind(address: SocketAddr, setting: &'static str) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|cause| ListenError { address, setting, cause })
}
