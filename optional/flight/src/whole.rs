//! Request bodies that end only where their client ended them.
//!
//! If a client cancels a stream, or its connection is given up because no ping is answered, the stream looks
//! to the layers below as if it had come to its end: rows that were cut off would be stored as if they were
//! all. Here that is an error.

use std::pin::Pin;
use std::task::{ready, Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::body::Body;
use tonic::{Code, Status};

pub(crate) struct Whole<B = Body> {
    body: B,
}

impl<B> Whole<B> {
    pub(crate) fn new(body: B) -> Whole<B> {
        Whole { body }
    }
}

impl<B: http_body::Body<Data = Bytes, Error = Status> + Unpin> http_body::Body for Whole<B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            // So ends a connection that is closed without a fault.
            None if !self.body.is_end_stream() => Some(Err(cut_off())),
            // Of requests, this too is taken for an end.
            Some(Err(status)) if status.code() == Code::Cancelled => Some(Err(cut_off())),
            other => other,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn cut_off() -> Status {
    Status::aborted("the client has cut off its stream, or is gone")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use http_body::Body as _;

    use super::*;

    /// Frames of a body. `is_whole` says whether the end comes after them.
    struct Frames {
        frames: VecDeque<Result<Bytes, Status>>,
        is_whole: bool,
    }

    impl http_body::Body for Frames {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(self.frames.pop_front().map(|frame| frame.map(Frame::data)))
        }

        fn is_end_stream(&self) -> bool {
            self.is_whole && self.frames.is_empty()
        }
    }

    async fn ends(frames: Vec<Result<Bytes, Status>>, is_whole: bool) -> (usize, Option<Code>) {
        let mut body = Whole::new(Frames { frames: frames.into(), is_whole });
        let mut taken = 0;
        loop {
            match poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                Some(Ok(_)) => taken += 1,
                Some(Err(status)) => return (taken, Some(status.code())),
                None => return (taken, None),
            }
        }
    }

    #[tokio::test]
    async fn only_what_was_ended_has_an_end() {
        let frame = || Ok(Bytes::from_static(b"x"));
        assert_eq!(ends(vec![frame(), frame()], true).await, (2, None));
        assert_eq!(ends(vec![], true).await, (0, None));
        assert_eq!(ends(vec![frame()], false).await, (1, Some(Code::Aborted)));
        assert_eq!(ends(vec![frame(), Err(Status::cancelled(""))], false).await, (1, Some(Code::Aborted)));
        assert_eq!(ends(vec![Err(Status::unavailable(""))], false).await, (0, Some(Code::Unavailable)));
    }
}
