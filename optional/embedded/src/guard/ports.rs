//! The two ports that the engine listens on, chosen once and kept for as long as the gateway runs.
//!
//! Each port is bound here too, with `SO_REUSEPORT` and without listening: the engine may share it, no client
//! gets a connection from the gateway itself, and while the engine is down the system gives the port to no
//! other program. So the endpoint stays valid, and the gateway's credentials can't reach a stranger who took
//! the port over.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

pub(super) struct Ports {
    pub(super) http: u16,
    pub(super) native: u16,
    _reserved: [TcpSocket; 2],
}

impl Ports {
    pub(super) fn reserve() -> io::Result<Ports> {
        let (http, native) = (bind()?, bind()?);
        Ok(Ports { http: http.local_addr()?.port(), native: native.local_addr()?.port(), _reserved: [http, native] })
    }
}

fn bind() -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_reserved_port_goes_to_nobody_else_and_takes_no_connection() {
        let ports = Ports::reserve().expect("two ports");
        assert_ne!(ports.http, ports.native);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.http));
        TcpListener::bind(address).await.expect_err("the port is reserved");
        tokio::net::TcpStream::connect(address).await.expect_err("nobody listens");
        let engine = TcpSocket::new_v4().expect("a socket");
        engine.set_reuseport(true).expect("an option");
        engine.bind(address).expect("the engine may share it");
        let listener = engine.listen(16).expect("it listens");
        for _ in 0..20 {
            let (connected, accepted) = tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
            connected.expect("connected");
            accepted.expect("all connections reach the one who listens");
        }
    }
}
