use std::future::Future;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsStream;

/// The bytes of a connection, plain or encrypted.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The reading half of a stream. The two halves are used at the same time: a query may be answered, or
/// cancelled, while its body still arrives.
pub enum ReadHalf {
    Plain(OwnedReadHalf),
    Tls(tokio::io::ReadHalf<Box<TlsStream<TcpStream>>>),
    /// A stream with another framing around its bytes.
    Framed(Box<dyn AsyncRead + Send + Sync + Unpin>),
}

pub enum WriteHalf {
    Plain(OwnedWriteHalf),
    Tls(tokio::io::WriteHalf<Box<TlsStream<TcpStream>>>),
    /// A stream with another framing around its bytes.
    Framed(Box<dyn AsyncWrite + Send + Sync + Unpin>),
}

impl Stream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Makes the system probe a silent peer: a peer that lost its power never closes its connection.
    pub fn keep_alive(&self) {
        const IDLE: Duration = Duration::from_secs(60);
        // Without it, a timeout has to do.
        let _ = sockopt::set_socket_keepalive(self.tcp(), true);
        let _ = sockopt::set_tcp_keepidle(self.tcp(), IDLE);
    }

    /// Returns the peer's address, or `0.0.0.0` if the peer has gone already.
    pub(crate) fn peer(&self) -> IpAddr {
        self.tcp().peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip())
    }

    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Stream::Plain(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Plain(read), WriteHalf::Plain(write))
            }
            Stream::Tls(stream) => {
                let (read, write) = tokio::io::split(stream);
                (ReadHalf::Tls(read), WriteHalf::Tls(write))
            }
        }
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ReadHalf::Plain(half) => Pin::new(half).poll_read(cx, buf),
            // A peer that goes away without TLS's goodbye is an end like any other: the framing tells whether bytes
            // lack.
            ReadHalf::Tls(half) => match ready!(Pin::new(half).poll_read(cx, buf)) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                other => Poll::Ready(other),
            },
            ReadHalf::Framed(half) => Pin::new(half).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            WriteHalf::Plain(half) => Pin::new(half).poll_write(cx, buf),
            WriteHalf::Tls(half) => Pin::new(half).poll_write(cx, buf),
            WriteHalf::Framed(half) => Pin::new(half).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            WriteHalf::Plain(half) => Pin::new(half).poll_write_vectored(cx, bufs),
            WriteHalf::Tls(half) => Pin::new(half).poll_write_vectored(cx, bufs),
            WriteHalf::Framed(half) => Pin::new(half).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, WriteHalf::Plain(_))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            WriteHalf::Plain(half) => Pin::new(half).poll_flush(cx),
            WriteHalf::Tls(half) => Pin::new(half).poll_flush(cx),
            WriteHalf::Framed(half) => Pin::new(half).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            WriteHalf::Plain(half) => Pin::new(half).poll_shutdown(cx),
            WriteHalf::Tls(half) => Pin::new(half).poll_shutdown(cx),
            WriteHalf::Framed(half) => Pin::new(half).poll_shutdown(cx),
        }
    }
}

impl WriteHalf {
    /// Writes all of `bytes` and flushes them.
    ///
    /// # Errors
    /// Fails where the peer takes no byte for `idle`, or writing fails.
    pub async fn send(&mut self, mut bytes: &[u8], idle: Duration) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = within(idle, self.write(bytes)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        match self {
            WriteHalf::Plain(_) => Ok(()),
            WriteHalf::Tls(_) | WriteHalf::Framed(_) => within(idle, self.flush()).await,
        }
    }
}

/// Runs `io` with a bound on its silence. No timer is set if the socket is ready at once.
///
/// # Errors
/// Fails with the kind `TimedOut` after `idle`, or as `io` does.
pub async fn within<T>(idle: Duration, io: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut io = std::pin::pin!(io);
    let first = std::future::poll_fn(|cx| Poll::Ready(io.as_mut().poll(cx))).await;
    if let Poll::Ready(result) = first {
        return result;
    }
    tokio::time::timeout(idle, io).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Bounds the silence of one connection, again and again. A timer that is only ever moved to a later time
/// needs no lock, so it is kept between uses.
#[derive(Default)]
pub(crate) struct IdleTimer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl IdleTimer {
    /// Runs `io` with a bound on its silence. Fails with the kind `TimedOut` after `idle`.
    pub(crate) async fn bound<T>(&mut self, idle: Duration, io: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut io = std::pin::pin!(io);
        let mut armed = false;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(result) = io.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            let sleep = match &mut self.sleep {
                Some(sleep) if armed => sleep,
                permit => {
                    armed = true;
                    arm(permit, idle)
                }
            };
            sleep.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
        })
        .await
    }
}

fn arm(permit: &mut Option<Pin<Box<Sleep>>>, idle: Duration) -> &mut Pin<Box<Sleep>> {
    let sleep = permit.get_or_insert_with(|| Box::pin(tokio::time::sleep(idle)));
    sleep.as_mut().reset(Instant::now() + idle);
    sleep
}
