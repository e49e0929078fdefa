//! Bytes that go from one connection to another as they are.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stream::{ReadHalf, WriteHalf};

const COPIED_BYTES: usize = 64 * 1024;

/// Sends on whatever comes, for ever: it ends with an error, which is `UnexpectedEof` if `from` has come to its end. Between two
/// plain connections the kernel moves the bytes (splice), and they are never copied here.
pub async fn pass(from: &mut ReadHalf, to: &mut WriteHalf) -> io::Error {
    #[cfg(target_os = "linux")]
    if let (ReadHalf::Plain(from), WriteHalf::Plain(to)) = (&*from, &*to) {
        return match splice::pass(from.as_ref(), to.as_ref()).await {
            Ok(never) => match never {},
            Err(error) => error,
        };
    }
    match copy(from, to).await {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

async fn copy(from: &mut ReadHalf, to: &mut WriteHalf) -> io::Result<std::convert::Infallible> {
    let mut buffer = vec![0; COPIED_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // What has been read is written before more is read.
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
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

    /// What lies between the two at most. The system grants no more to who is not root.
    const PIPE_BYTES: usize = 1 << 20;

    pub(super) async fn pass(from: &TcpStream, to: &TcpStream) -> io::Result<Infallible> {
        from.readable().await?;
        let (outlet, inlet) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller one does as well.
        let _ = fcntl_setpipe_size(&inlet, PIPE_BYTES);
        loop {
            let mut left = from.async_io(Interest::READABLE, || splice(from, &inlet)).await?;
            if left == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            while left > 0 {
                left -= to.async_io(Interest::WRITABLE, || splice_out(&outlet, to, left)).await?;
            }
        }
    }

    fn splice(from: &TcpStream, pipe: &OwnedFd) -> io::Result<usize> {
        moved(from, pipe, PIPE_BYTES)
    }

    fn splice_out(pipe: &OwnedFd, to: &TcpStream, bytes: usize) -> io::Result<usize> {
        moved(pipe, to, bytes)
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
    async fn all_of_it_arrives_and_the_end_is_told() {
        let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
        let sent: Vec<u8> = (0..5_000_000u32).map(|number| (number / 7) as u8).collect();
        let expected = sent.clone();
        let passing = tokio::spawn(async move {
            let ((mut from, _write), (_read, mut to)) =
                (Stream::Plain(from).into_split(), Stream::Plain(to).into_split());
            pass(&mut from, &mut to).await.kind()
        });
        let sending = tokio::spawn(async move { sender.write_all(&sent).await });
        let mut received = vec![0; expected.len()];
        receiver.read_exact(&mut received).await.unwrap();
        assert!(received == expected);
        sending.await.unwrap().unwrap();
        assert_eq!(passing.await.unwrap(), io::ErrorKind::UnexpectedEof);
    }
}
