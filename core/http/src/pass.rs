//! Bytes that go from one connection to another unchanged.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stream::{ReadHalf, WriteHalf};

const COPIED_BYTES: usize = 64 * 1024;

/// One direction between two connections. Bytes that were read and not sent yet stay here when
/// [`run`](Pass::run) is dropped, and the next run goes on with them: nothing is lost.
#[derive(Default)]
pub struct Pass {
    #[cfg(target_os = "linux")]
    pipe: Option<splice::Pipe>,
    copied: Vec<u8>,
    unsent: Range<usize>,
}

impl Pass {
    /// Sends on everything that comes, until an error ends it, which is `UnexpectedEof` if `from` has come to
    /// its end. Between two plain connections the kernel moves the bytes (splice), and they are never copied
    /// here.
    pub async fn run(&mut self, from: &mut ReadHalf, to: &mut WriteHalf) -> io::Error {
        #[cfg(target_os = "linux")]
        if let (ReadHalf::Plain(from), WriteHalf::Plain(to)) = (&*from, &*to) {
            return match splice::pass(&mut self.pipe, from.as_ref(), to.as_ref()).await {
                Ok(never) => match never {},
                Err(error) => error,
            };
        }
        match self.copy(from, to).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn copy(&mut self, from: &mut ReadHalf, to: &mut WriteHalf) -> io::Result<std::convert::Infallible> {
        self.copied.resize(COPIED_BYTES, 0);
        loop {
            while !self.unsent.is_empty() {
                self.unsent.start += to.write(&self.copied[self.unsent.clone()]).await?;
            }
            to.flush().await?;
            let count = from.read(&mut self.copied).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unsent = 0..count;
        }
    }
}

#[cfg(target_os = "linux")]
mod splice {
    use std::convert::Infallible;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::pipe::{fcntl_setpipe_size, pipe_with, PipeFlags, SpliceFlags};
    use tokio::io::Interest;
    use tokio::net::TcpStream;

    /// The size of the pipe between two connections, in bytes. The system grants no more to a user who is not
    /// root.
    const PIPE_BYTES: usize = 1 << 20;

    pub(super) struct Pipe {
        outlet: OwnedFd,
        inlet: OwnedFd,
        /// Bytes that lie in the pipe.
        left: usize,
    }

    impl Pipe {
        fn new() -> io::Result<Pipe> {
            let (outlet, inlet) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            // A smaller one does as well.
            let _ = fcntl_setpipe_size(&inlet, PIPE_BYTES);
            Ok(Pipe { outlet, inlet, left: 0 })
        }
    }

    pub(super) async fn pass(pipe: &mut Option<Pipe>, from: &TcpStream, to: &TcpStream) -> io::Result<Infallible> {
        if pipe.is_none() {
            // Not before it is needed: two files for each connection are many.
            from.readable().await?;
            *pipe = Some(Pipe::new()?);
        }
        let Some(pipe) = pipe else { return Err(io::ErrorKind::Other.into()) };
        loop {
            while pipe.left > 0 {
                pipe.left -= to.async_io(Interest::WRITABLE, || moved(&pipe.outlet, to, pipe.left)).await?;
            }
            pipe.left = from.async_io(Interest::READABLE, || moved(from, &pipe.inlet, PIPE_BYTES)).await?;
            if pipe.left == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn moved(from: impl AsFd, to: impl AsFd, bytes: usize) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        Ok(rustix::pipe::splice(from, None, to, None, bytes, flags)?)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::Stream;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (one.unwrap(), other.unwrap().0)
    }

    #[tokio::test]
    async fn all_of_it_arrives_however_often_it_is_interrupted() {
        let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
        let sent: Vec<u8> = (0..5_000_000u32).map(|number| (number / 7) as u8).collect();
        let expected = sent.clone();
        let passing = tokio::spawn(async move {
            let ((mut from, _write), (_read, mut to)) =
                (Stream::Plain(from).into_split(), Stream::Plain(to).into_split());
            let mut pass = Pass::default();
            loop {
                tokio::select! {
                    error = pass.run(&mut from, &mut to) => return error.kind(),
                    () = tokio::task::yield_now() => {}
                }
            }
        });
        let sending = tokio::spawn(async move { sender.write_all(&sent).await });
        let mut received = vec![0; expected.len()];
        receiver.read_exact(&mut received).await.unwrap();
        assert!(received == expected);
        sending.await.unwrap().unwrap();
        assert_eq!(passing.await.unwrap(), io::ErrorKind::UnexpectedEof);
    }
}
