//! The blocks that come behind a statement: tables that go along with it, and an insert's rows.

use windrow_clickhouse::native::{client, BlockEnd, DataReader, Fault, Input, Query, RowShape};

use super::insert::SentInsert;
use super::relay::AnsweredPart;
use super::reply::{misread, seconds_now};
use super::session::{Closed, Session};
use crate::data::Room;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;

/// The rows of an insert that have come, and the part of the answer that the client has had meanwhile.
#[derive(Default)]
pub(super) struct ReceivedRows {
    pub(super) had: AnsweredPart,
    /// The position at which the last packet of the insert ends, if all of it has come.
    pub(super) end: Option<usize>,
    /// The blocks, as a payload in the format Native.
    pub(super) payload: Vec<u8>,
    _room: Room,
}

impl ReceivedRows {
    /// Makes the result for an insert whose rows stand in its text.
    pub(super) fn with_text(end: usize) -> ReceivedRows {
        ReceivedRows { end: Some(end), ..ReceivedRows::default() }
    }
}

/// The reason why there are no rows of an insert.
pub(super) enum NoRows {
    /// The connection has ended.
    Closed,
    /// The client has cancelled the insert, or has been told why it is refused.
    Ended,
    /// The rows can't be kept or read here. The backend gets those that have come, and those that still come.
    Forward(ForwardReason, ReceivedRows),
}

impl From<Closed> for NoRows {
    fn from(_: Closed) -> NoRows {
        NoRows::Closed
    }
}

/// The state of blocks that are being taken.
struct Reading {
    reader: DataReader,
    /// The position in the input at which the next packet begins.
    at: usize,
    /// The blocks, as a payload in the format Native.
    out: Vec<u8>,
    room: Room,
    /// Limit of the bytes of `out`.
    limit: usize,
    /// Says whether bytes that were read stay in the input: they may have to go to the backend as they came.
    keeps: bool,
}

impl Reading {
    fn new(revision: u64, is_compressed: bool, at: usize, limit: usize) -> Reading {
        let reader = DataReader::new(revision, is_compressed, limit);
        Reading { reader, at, out: Vec::new(), room: Room::default(), limit, keeps: true }
    }

    /// Makes the state for blocks that are not needed, however many they are. A column takes no more than
    /// `limit`.
    fn passing_over(revision: u64, is_compressed: bool, limit: usize) -> Reading {
        let reader = DataReader::new(revision, is_compressed, limit).discarding();
        Reading { reader, keeps: false, ..Reading::new(revision, is_compressed, 0, limit) }
    }
}

/// The tables that came between a statement and the empty block behind it.
pub(super) enum ExternalTables {
    Whole {
        end: usize,
        has_tables: bool,
    },
    Unreadable,
    /// The client has cancelled the statement, too, and has its answer.
    Cancelled,
}

/// The outcome of reading an insert's next packet.
enum Step {
    Block(BlockEnd),
    /// A value that a server has worked out for a statement.
    Scalar,
    Cancel,
    Unexpected(u64),
    Unreadable(Fault),
    NoRoom,
}

impl Session<'_> {
    /// Returns the length of the longest insert as it comes, compressed or not. An insert that no other
    /// server takes is bounded by what it unpacks to.
    fn max_packed_bytes(&self) -> usize {
        match self.is_over_http() {
            true => self.max_insert_bytes(),
            false => self.state.options.settings.get().http.max_body_bytes_gathered,
        }
    }

    /// Reads up to the empty block that says that no more tables come with a statement.
    pub(super) async fn tables_beside(&mut self, query: &Query, length: usize) -> Result<ExternalTables, Closed> {
        let mut reading = Reading::new(self.client.revision, query.is_compressed, length, self.max_insert_bytes());
        let mut has_tables = false;
        loop {
            match self.step(&mut reading).await? {
                Step::Block(end) if end.is_last() => return Ok(ExternalTables::Whole { end: reading.at, has_tables }),
                Step::Block(_) | Step::Scalar => {
                    has_tables = true;
                    reading.out.clear();
                }
                Step::Unreadable(_) | Step::NoRoom => return Ok(ExternalTables::Unreadable),
                step => {
                    return match self.without_rows(query.is_compressed, step, reading.at).await? {
                        NoRows::Ended => Ok(ExternalTables::Cancelled),
                        NoRows::Closed | NoRows::Forward(..) => Err(Closed),
                    };
                }
            }
        }
    }

    /// Takes the client's blocks up to the empty one.
    pub(super) async fn rows(
        &mut self,
        sent: &SentInsert<'_>,
        limit: usize,
        shape: RowShape,
        header: &[u8],
    ) -> Result<ReceivedRows, NoRows> {
        // A client that does not wait for it has sent its rows already.
        self.wire.queue(header);
        let is_compressed = sent.query.is_compressed;
        let mut had = AnsweredPart { header: true, profile_events: 0 };
        let mut reading = Reading::new(self.client.revision, is_compressed, sent.length, limit);
        reading.reader = reading.reader.expecting(shape);
        loop {
            match self.step(&mut reading).await? {
                Step::Block(end) if end.is_last() => {
                    let Reading { at, out: payload, room, .. } = reading;
                    return Ok(ReceivedRows { had, end: Some(at), payload, _room: room });
                }
                Step::Block(_) => {
                    if self.tells_events(sent.query) {
                        self.queue(is_compressed, |answer| answer.profile_events("", seconds_now(), &[]));
                        had.profile_events += 1;
                    }
                }
                Step::Unreadable(Fault::TooLarge(_)) => {
                    return Err(NoRows::Forward(
                        ForwardReason::TooLarge,
                        ReceivedRows { had, ..ReceivedRows::default() },
                    ));
                }
                Step::Unreadable(Fault::Unsupported(_)) => {
                    return Err(NoRows::Forward(ForwardReason::Type, ReceivedRows { had, ..ReceivedRows::default() }));
                }
                step => return Err(self.without_rows(is_compressed, step, reading.at).await?),
            }
        }
    }

    /// Takes the next packet. Its bytes stay in the input, unless none are kept.
    async fn step(&mut self, reading: &mut Reading) -> Result<Step, Closed> {
        let max_packed = self.max_packed_bytes();
        let Reading { reader, at, out, room, limit, keeps } = reading;
        let kind = loop {
            let kind = self.wire.parse(*at, |bytes| Input::new(bytes).varint().map(|kind| (kind, 1))).await?;
            match kind.map(|(kind, _)| kind) {
                Ok(kind @ (client::DATA | client::SCALAR)) => break kind,
                Ok(client::PING) => {
                    self.wire.input.remove(*at);
                    self.answer(false, |answer| answer.pong()).await?;
                }
                Ok(client::CANCEL) => {
                    *at += 1;
                    return Ok(Step::Cancel);
                }
                Ok(kind) => return Ok(Step::Unexpected(kind)),
                Err(fault) => return Ok(Step::Unreadable(fault)),
            }
        };
        loop {
            match reader.read(&self.wire.input[*at..], out) {
                Ok(taken) => {
                    *at += taken.bytes;
                    if !*keeps {
                        self.wire.consume(std::mem::take(at));
                        out.clear();
                    }
                    if out.len() > *limit || self.wire.input.len() > max_packed {
                        return Ok(Step::Unreadable(Fault::TooLarge("an insert")));
                    }
                    if let Some(end) = taken.end {
                        return Ok(if kind == client::SCALAR { Step::Scalar } else { Step::Block(end) });
                    }
                }
                Err(fault) => return Ok(Step::Unreadable(fault)),
            }
            self.wire.fill(self.wire.input.len() + 1).await?;
            if !self.state.body_room.grow(room, self.wire.input.len() + out.len()).await {
                return Ok(Step::NoRoom);
            }
        }
    }

    /// Takes the rows of an insert that is stored already, however many they are. `had` is the part of
    /// the answer that the client has had.
    pub(super) async fn pass_over(
        &mut self,
        sent: &SentInsert<'_>,
        mut had: AnsweredPart,
    ) -> Result<ReceivedRows, NoRows> {
        let is_compressed = sent.query.is_compressed;
        self.wire.consume(sent.length);
        let mut reading = Reading::passing_over(self.client.revision, is_compressed, self.max_insert_bytes());
        loop {
            match self.step(&mut reading).await? {
                Step::Block(end) if end.is_last() => {
                    return Ok(ReceivedRows { had, end: Some(0), ..ReceivedRows::default() })
                }
                Step::Block(_) if had.profile_events > 0 => had.profile_events -= 1,
                Step::Block(_) if self.tells_events(sent.query) => {
                    self.queue(is_compressed, |answer| answer.profile_events("", seconds_now(), &[]));
                }
                Step::Block(_) => {}
                step => return Err(self.without_rows(is_compressed, step, reading.at).await?),
            }
        }
    }

    /// Answers a packet that is no block. `at` is the position at which it ends.
    async fn without_rows(&mut self, is_compressed: bool, step: Step, at: usize) -> Result<NoRows, Closed> {
        let refusal = match step {
            Step::Cancel => {
                self.wire.consume(at);
                self.answer(is_compressed, |answer| answer.end_of_stream()).await?;
                return Ok(NoRows::Ended);
            }
            Step::Scalar => return self.refuse_packet(is_compressed, client::SCALAR).await,
            Step::Unexpected(kind) => return self.refuse_packet(is_compressed, kind).await,
            Step::Unreadable(fault) => misread(&fault),
            Step::NoRoom | Step::Block(_) => Refusal::no_room(),
        };
        self.refuse(is_compressed, &refusal).await?;
        Ok(NoRows::Closed)
    }
}
