//! The relay of statements that are the backend's: bytes in both directions, as they come.
//!
//! A packet does not say how long it is, and results have types whose ends nobody here knows. So results are
//! not looked into: with its next statement, the client shows that it has read the answer to the one before.
//! An answer is read packet by packet only where the outcome has to be known: for an INSERT, and for
//! statements that change tables. Those answers have no such types.

use std::io;

use tokio::io::AsyncWriteExt;
use windrow_clickhouse::native::{read_server_packet, server, Fault};
use windrow_http::{Pass, ReadHalf, WriteHalf};

use super::wire::{read_more, Wire};

/// The end of a statement, as the backend says.
#[derive(Debug)]
pub(super) enum Ended {
    Done,
    /// The statement failed. `in_rows` says whether the client has been told what to send, and may be in the
    /// middle of it.
    Failed {
        in_rows: bool,
    },
    /// A packet came whose end can't be found. From here on nothing is looked into.
    Unreadable,
}

/// The bytes that are between a client and the backend, in each direction.
#[derive(Default)]
pub(super) struct RelayState {
    pub(super) up: Pass,
    pub(super) down: Pass,
}

/// Passes bytes on in both directions, until one of them ends.
pub(super) async fn splice(client: &mut Wire, upstream: &mut Wire, between: &mut RelayState) {
    if client.send(&std::mem::take(&mut upstream.input)).await.is_err() {
        return;
    }
    tokio::select! {
        _ = between.up.run(&mut client.read, &mut upstream.write) => {}
        _ = between.down.run(&mut upstream.read, &mut client.write) => {}
    }
}

/// The part of an answer that the client has had already, from the gateway.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct AnsweredPart {
    pub(super) header: bool,
    pub(super) profile_events: usize,
}

impl AnsweredPart {
    /// Says whether the client has had the packet already, and counts it off.
    fn it(&mut self, kind: u64) -> bool {
        match kind {
            server::TABLE_COLUMNS => self.header,
            server::DATA => std::mem::take(&mut self.header),
            server::PROFILE_EVENTS if self.profile_events > 0 => {
                self.profile_events -= 1;
                true
            }
            _ => false,
        }
    }
}

/// The form in which an answer is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) revision: u64,
    pub(super) is_compressed: bool,
}

/// The outcome of an answer that has come to its end.
pub(super) struct Answered {
    pub(super) ended: Ended,
    /// The end of the answer, which the client has not been sent yet.
    pub(super) last: Vec<u8>,
}

/// Passes an answer on, packet by packet, but for its last.
pub(super) async fn pass_answer(
    from: &mut ReadHalf,
    input: &mut Vec<u8>,
    to: &mut WriteHalf,
    form: Form,
    mut had: AnsweredPart,
) -> io::Result<Answered> {
    let mut out = Vec::new();
    let mut in_rows = had.header;
    loop {
        let packet = match read_server_packet(input, form.revision, form.is_compressed) {
            Ok(packet) => packet,
            Err(Fault::Incomplete { at_least }) => {
                flush(to, &mut out).await?;
                read_more(from, input, at_least).await?;
                continue;
            }
            Err(_) => {
                out.append(input);
                return Ok(Answered { ended: Ended::Unreadable, last: out });
            }
        };
        let ended = match packet.kind {
            server::END_OF_STREAM => Some(Ended::Done),
            server::EXCEPTION => Some(Ended::Failed { in_rows }),
            _ => None,
        };
        in_rows |= packet.kind == server::DATA;
        if !had.it(packet.kind) {
            out.extend_from_slice(&input[..packet.bytes]);
        }
        input.drain(..packet.bytes);
        if let Some(ended) = ended {
            return Ok(Answered { ended, last: out });
        }
    }
}

async fn flush(to: &mut WriteHalf, out: &mut Vec<u8>) -> io::Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    to.write_all(out).await?;
    to.flush().await?;
    out.clear();
    Ok(())
}
