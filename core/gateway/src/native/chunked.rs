//! A connection whose packets are in chunks, as a stream of packets.
//!
//! The bytes of one write, up to [`MAX_BYTES`], are sent as one chunked packet. So the end of a chunked
//! packet says that something is there to be read, not that a packet has ended: results that are passed on
//! unread have ends that nobody here knows. ClickHouse and its clients read chunks as a stream.

use std::io;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use windrow_clickhouse::native::{write_chunked, ChunkReader};
use windrow_http::{ReadHalf, WriteHalf};

const MAX_BYTES: usize = 64 * 1024;

pub(super) struct Reader {
    half: ReadHalf,
    chunks: ChunkReader,
}

pub(super) struct Writer {
    half: WriteHalf,
    unsent: Vec<u8>,
    /// Number of bytes of `unsent` that have been sent.
    sent: usize,
}

impl Reader {
    pub(super) fn new(half: ReadHalf, chunks: ChunkReader) -> Reader {
        Reader { half, chunks }
    }
}

impl Writer {
    pub(super) fn new(half: WriteHalf) -> Writer {
        Writer { half, unsent: Vec::new(), sent: 0 }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.unsent.len() {
            match ready!(Pin::new(&mut self.half).poll_write(cx, &self.unsent[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.sent += count,
            }
        }
        // An idle connection keeps nothing of it.
        (self.unsent, self.sent) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Reader {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Reader { half, chunks } = self.get_mut();
        let before = buf.filled().len();
        loop {
            ready!(Pin::new(&mut *half).poll_read(cx, buf))?;
            let came = &mut buf.filled_mut()[before..];
            if came.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let kept = chunks.strip(came).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            buf.set_filled(before + kept);
            if kept > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, packets: &[u8]) -> Poll<io::Result<usize>> {
        let writer = self.get_mut();
        ready!(writer.poll_send(cx))?;
        let packets = &packets[..packets.len().min(MAX_BYTES)];
        write_chunked(&mut writer.unsent, packets);
        match writer.poll_send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // They are taken; the rest goes with the next write or flush.
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(packets.len())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let writer = self.get_mut();
        ready!(writer.poll_send(cx))?;
        Pin::new(&mut writer.half).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let writer = self.get_mut();
        ready!(writer.poll_send(cx))?;
        Pin::new(&mut writer.half).poll_shutdown(cx)
    }
}
