//! An insert over the native protocol: a candidate is made of the statement, taken through the stages of [`crate::insert`], and
//! answered. Its rows stand in the statement's text, or come as blocks; then nothing of it is stored before the last has come.

use std::sync::Arc;
use std::time::Duration;

use windrow_engine::DataKind;
use windrow_native::{client, revision, Answer, BlockEnd, DataReader, Fault, Input, Query, RowShape, Setting};
use windrow_sql::{InsertStatement, TableName};

use super::relay::{pass_answer, Answered, Ended, Form, Had};
use super::reply::{counters, misread, seconds_now, NOT_IMPLEMENTED};
use super::session::{no_room, Closed, Session};
use crate::admission::{Holds, Moment};
use crate::data::Room;
use crate::error::Refusal;
use crate::insert::{
    hand_over, not_taken, role, too_large, unreadable, Candidate, NotGathered, Origin, Param, Parsed, Prepared,
    Progress, Role, Summary,
};
use crate::statement::{outline, query_parameter, NotClaimed, Passage, LOOKED_THROUGH_BYTES};

/// An insert, and what was worked out for it: another whose Query packet has the same bytes needs nothing but its rows read.
pub(super) struct Latest {
    /// Behind the query id.
    packet: Vec<u8>,
    id_bytes: usize,
    query: Query,
    statement: InsertStatement,
    table: TableName,
    prepared: Arc<Prepared>,
    /// What the client is told before its rows.
    header: Vec<u8>,
}

/// Longer statements are looked at each time.
const MAX_LATEST_BYTES: usize = 16 * 1024;

/// An insert as it came.
pub(super) struct Sent<'q> {
    pub(super) query: &'q Query,
    pub(super) params: &'q [Param<'q>],
    /// Where its Query packet ends, and the tables beside it, which nobody sends with an insert.
    pub(super) length: usize,
    pub(super) statement: &'q InsertStatement,
    /// Whether its rows stand in its text.
    pub(super) is_text: bool,
}

/// What has come of an insert's rows, and what the client has been told meanwhile.
#[derive(Default)]
pub(super) struct Come {
    had: Had,
    /// Where the last packet of it ends, if all of it has come.
    pub(super) end: Option<usize>,
    /// The blocks, as a payload in the format Native.
    pub(super) payload: Vec<u8>,
    _room: Room,
}

impl Come {
    /// Of an insert whose rows stand in its text.
    fn with_text(end: usize) -> Come {
        Come { end: Some(end), ..Come::default() }
    }
}

/// Why there are no rows of an insert.
enum NoRows {
    Closed,
    /// The client has changed its mind, or has been told why not.
    Ended,
    /// They can't be kept or read here. The backend gets what has come, and what still comes.
    Forward(&'static str, Come),
}

impl From<Closed> for NoRows {
    fn from(_: Closed) -> NoRows {
        NoRows::Closed
    }
}

/// A client that waits is told nothing: its own patience is long.
struct Silent;

impl Progress for Silent {
    fn interval(&self) -> Option<Duration> {
        None
    }

    async fn tell(&mut self, _: u64, _: u64) {}
}

impl Session<'_> {
    /// The longest insert that is read into memory. DuckDB gets none past the gateway.
    pub(super) fn max_insert_bytes(&self) -> usize {
        match self.state.backend.takes_requests() {
            true => self.state.options.settings.get().http.max_decompressed_bytes,
            false => usize::try_from(self.state.max_table_bytes).unwrap_or(usize::MAX),
        }
    }

    /// The longest insert as it comes, compressed or not. One that nobody else takes is bounded by what it unpacks to.
    fn max_packed_bytes(&self) -> usize {
        match self.is_over_http() {
            true => self.max_insert_bytes(),
            false => self.state.options.settings.get().http.max_body_bytes_gathered,
        }
    }

    pub(super) async fn insert(
        &mut self,
        query: Query,
        query_length: usize,
        statement: InsertStatement,
        origin: Origin,
    ) -> Result<(), Closed> {
        let (length, has_tables) = match self.tables_beside(&query, query_length).await? {
            Beside::Whole { end, has_tables } => (end, has_tables),
            Beside::Cancelled => return Ok(()),
            Beside::Unreadable => {
                self.state.metrics.forwarded("external_table");
                return self.splice().await;
            }
        };
        let params = self.params(&query);
        let packet = self.packet_of(&query, query_length);
        let resolved = statement.table.resolve(|parameter| query_parameter(&params, parameter));
        let text = &self.wire.input[query.text.clone()];
        let is_text = !is_blank(&text[statement.data_start..]);
        let sent = Sent { query: &query, params: &params, length, statement: &statement, is_text };
        let Some(table) = resolved else {
            return self.relay_insert(&sent, "insert_form", Come::default()).await;
        };
        let obstacle = match () {
            () if self.is_changed => Some("session"),
            () if has_tables => Some("external_table"),
            // Only what runs there has a log.
            () if sent.wants_logs() && !self.is_over_http() => Some("setting"),
            () => None,
        };
        let payload = match is_text {
            true => query.text.start + statement.data_start..query.text.end,
            false => 0..0,
        };
        let state = self.state;
        let candidate = self.candidate(&sent, &table, obstacle, &self.wire.input[payload]);
        let admitted = candidate.admit(state).await;
        if is_text {
            let parsed = match admitted {
                Ok(admitted) => admitted.parse(state).await,
                Err(why) => Err(why),
            };
            drop(candidate);
            let end = sent.length;
            return match parsed {
                Ok(parsed) => self.gather(&sent, parsed, Come::with_text(end), origin).await,
                Err(why) => self.not_gathered(&sent, why, Come::with_text(end)).await,
            };
        }
        let prepared = match admitted.map(|admitted| admitted.prepared) {
            Ok(prepared) if prepared.reads_blocks() => prepared,
            Ok(_) => {
                drop(candidate);
                return self.relay_insert(&sent, "type", Come::default()).await;
            }
            Err(why) => {
                drop(candidate);
                return self.not_gathered(&sent, why, Come::default()).await;
            }
        };
        let has_token = candidate.token().is_some();
        drop(candidate);
        let Some(header) = self.header(&sent, &prepared) else {
            return self.relay_insert(&sent, "columns", Come::default()).await;
        };
        let outcome = self.blocks(&sent, &table, prepared.clone(), &header, origin).await;
        let id_bytes = query.id.len();
        if let (Ok(()), Some(packet), false) = (&outcome, packet, has_token) {
            self.latest = Some(Latest { packet, id_bytes, query, statement, table, prepared, header });
        }
        outcome
    }

    /// A Query packet behind its id, by which it is known again.
    fn packet_of(&self, query: &Query, length: usize) -> Option<Vec<u8>> {
        let mut input = Input::new(&self.wire.input);
        input.varint().and_then(|_| input.bytes(query.id.len(), "the query id")).ok()?;
        (length <= MAX_LATEST_BYTES).then(|| self.wire.input[input.at()..length].to_vec())
    }

    /// What was worked out for the insert before, if the next packet is the same as its.
    pub(super) fn same_again(&mut self) -> Option<Latest> {
        let input = &self.wire.input;
        let latest = self.latest.take_if(|latest| {
            let mut packet = Input::new(input);
            let id = packet.varint().and_then(|_| packet.bytes(latest.id_bytes, "the query id"));
            id.is_ok_and(|id| id.len() == latest.id_bytes) && input[packet.at()..].starts_with(&latest.packet)
        })?;
        let admission = &self.state.admission;
        let (grounds, now) = (&latest.prepared.grounds, Moment::now());
        // The long way asks anew what only time can tell.
        let holds = admission.holds(grounds, now) == Holds::Surely && !admission.renew(grounds, now);
        (holds && !self.is_changed).then_some(latest)
    }

    /// The insert before, with other rows.
    pub(super) async fn repeat(&mut self, mut latest: Latest, origin: Origin) -> Result<(), Closed> {
        let mut input = Input::new(&self.wire.input);
        let id = input.varint().and_then(|_| input.text(latest.id_bytes, "the query id"));
        latest.query.id.clear();
        latest.query.id.push_str(id.unwrap_or_default());
        let length = input.at() + latest.packet.len();
        let length = match self.tables_beside(&latest.query, length).await? {
            Beside::Whole { end, has_tables: false } => end,
            Beside::Cancelled => return Ok(()),
            Beside::Whole { .. } | Beside::Unreadable => return self.splice().await,
        };
        let params = self.params(&latest.query);
        let sent = Sent { query: &latest.query, params: &params, length, statement: &latest.statement, is_text: false };
        let prepared = latest.prepared.clone();
        self.blocks(&sent, &latest.table, prepared, &latest.header, origin).await?;
        self.latest = Some(latest);
        Ok(())
    }

    /// An insert that is admitted, and whose rows come as blocks.
    async fn blocks(
        &mut self,
        sent: &Sent<'_>,
        table: &TableName,
        prepared: Arc<Prepared>,
        header: &[u8],
        origin: Origin,
    ) -> Result<(), Closed> {
        // What is more than a batch may have is not gathered by a backend that takes it as it is.
        let limit = match self.is_over_http() {
            true => self.max_insert_bytes(),
            false => self.max_insert_bytes().min(prepared.kind.limits.max_data_size_bytes as usize),
        };
        let come = match self.rows(sent, limit, prepared.row_shape(), header).await {
            Ok(come) => come,
            Err(NoRows::Closed) => return Err(Closed),
            Err(NoRows::Ended) => return Ok(()),
            Err(NoRows::Forward(reason, come)) => return self.relay_insert(sent, reason, come).await,
        };
        let candidate = self.candidate(sent, table, None, &come.payload);
        let parsed = candidate.admitted_as(prepared).parse(self.state).await;
        drop(candidate);
        let takes_requests = self.state.backend.takes_requests();
        match parsed {
            // What a block leaves out gets the default of its type, not of its column, as ClickHouse does it for clients.
            Ok(parsed) if takes_requests && !parsed.has_all_columns() => self.relay_insert(sent, "columns", come).await,
            Ok(parsed) => self.gather(sent, parsed, come, origin).await,
            Err(why) => self.not_gathered(sent, why, come).await,
        }
    }

    fn candidate<'c>(
        &'c self,
        sent: &Sent<'c>,
        table: &'c TableName,
        obstacle: Option<&'static str>,
        payload: &'c [u8],
    ) -> Candidate<'c> {
        let query = sent.query;
        let of_connection = || self.addendum.as_ref().map_or("", |addendum| addendum.quota_key.as_str());
        Candidate {
            credentials: &self.client.credentials,
            statement: sent.statement,
            table,
            payload,
            data_kind: if sent.is_text { DataKind::Parsed } else { DataKind::Preprocessed },
            params: sent.params,
            quota_key: if query.quota_key.is_empty() { of_connection() } else { &query.quota_key },
            database: Some(self.client.hello.database.as_str()).filter(|database| !database.is_empty()),
            query_id: Some(query.id.as_str()).filter(|id| !id.is_empty()),
            obstacle,
        }
    }

    /// Reads up to the empty block that says that no more tables come with a statement.
    pub(super) async fn tables_beside(&mut self, query: &Query, length: usize) -> Result<Beside, Closed> {
        let mut reading = Reading::new(self.client.revision, query.is_compressed, length, self.max_insert_bytes());
        let mut has_tables = false;
        loop {
            match self.step(&mut reading).await? {
                Step::Block(end) if end.is_last() => return Ok(Beside::Whole { end: reading.at, has_tables }),
                Step::Block(_) | Step::Scalar => {
                    has_tables = true;
                    reading.out.clear();
                }
                Step::Unreadable(_) | Step::NoRoom => return Ok(Beside::Unreadable),
                Step::Cancel => {
                    self.wire.consume(reading.at);
                    self.answer(query.is_compressed, |answer| answer.end_of_stream()).await?;
                    return Ok(Beside::Cancelled);
                }
                Step::Unexpected(kind) => return self.refuse_packet(query.is_compressed, kind).await,
            }
        }
    }

    /// What tells the client which columns it is to send.
    fn header(&self, sent: &Sent<'_>, prepared: &Prepared) -> Option<Vec<u8>> {
        Some(self.header_with(sent, &prepared.grounds.schema.description(), &prepared.header()?))
    }

    pub(super) fn header_with(&self, sent: &Sent<'_>, description: &str, columns: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        let (revision, is_compressed) = (self.client.revision, sent.query.is_compressed);
        let mut answer = Answer { out: &mut out, revision, is_compressed };
        if sent.setting("input_format_defaults_for_omitted_fields").is_none_or(|value| value != "0") {
            answer.table_columns(description);
        }
        answer.header(columns.iter().copied());
        out
    }

    /// Takes the client's blocks up to the empty one.
    async fn rows(&mut self, sent: &Sent<'_>, limit: usize, shape: RowShape, header: &[u8]) -> Result<Come, NoRows> {
        // A client that does not wait for it has sent its rows already.
        self.wire.queue(header);
        let is_compressed = sent.query.is_compressed;
        let mut had = Had { header: true, profile_events: 0 };
        let mut reading = Reading::new(self.client.revision, is_compressed, sent.length, limit);
        reading.reader = reading.reader.expecting(shape);
        loop {
            match self.step(&mut reading).await? {
                Step::Block(end) if end.is_last() => {
                    let Reading { at, out: payload, room, .. } = reading;
                    return Ok(Come { had, end: Some(at), payload, _room: room });
                }
                Step::Block(_) => {
                    if self.tells_events(sent.query) {
                        self.queue(is_compressed, |answer| answer.profile_events("", seconds_now(), &[]));
                        had.profile_events += 1;
                    }
                }
                Step::Unreadable(Fault::TooLarge(_)) => {
                    return Err(NoRows::Forward("too_large", Come { had, ..Come::default() }));
                }
                Step::Unreadable(Fault::Unsupported(_)) => {
                    return Err(NoRows::Forward("type", Come { had, ..Come::default() }));
                }
                Step::Unreadable(fault) => {
                    self.refuse(is_compressed, &misread(&fault)).await?;
                    return Err(NoRows::Closed);
                }
                Step::NoRoom => {
                    self.refuse(is_compressed, &no_room()).await?;
                    return Err(NoRows::Closed);
                }
                Step::Cancel => {
                    self.wire.consume(reading.at);
                    self.answer(is_compressed, |answer| answer.end_of_stream()).await?;
                    return Err(NoRows::Ended);
                }
                Step::Scalar => return Ok(self.refuse_packet(is_compressed, client::SCALAR).await?),
                Step::Unexpected(kind) => return Ok(self.refuse_packet(is_compressed, kind).await?),
            }
        }
    }

    /// Takes the next packet. Its bytes stay where they are, unless none are kept.
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

    /// Whether the client counts on a packet of counters for each of its blocks.
    fn tells_events(&self, query: &Query) -> bool {
        query.is_initial && self.client.revision >= revision::PROFILE_EVENTS_IN_INSERT
    }

    /// Hands the rows over, waits for the outcome, and tells it.
    async fn gather(&mut self, sent: &Sent<'_>, parsed: Parsed, come: Come, origin: Origin) -> Result<(), Closed> {
        let end = come.end.unwrap_or(sent.length);
        let claim = match sent.query.id.is_empty() {
            true => Ok(None),
            false => self.context(sent.query, self.user_key(sent.query), sent.params).claim_for_insert().await,
        };
        let claim = match claim {
            Ok(claim) => claim,
            Err(NotClaimed::Forward) => return self.relay_insert(sent, "query_id", come).await,
            Err(NotClaimed::Refused(refusal)) => {
                self.wire.consume(end);
                return self.refuse(sent.query.is_compressed, &refusal).await;
            }
        };
        self.is_forwarding = false;
        // While the insert waits, its bytes are not needed any more.
        drop(come);
        self.wire.consume(end);
        if parsed.waits() {
            self.wire.flush().await?;
        }
        let is_async = parsed.is_async();
        let state = self.state;
        let outcome = {
            let mut progress = Silent;
            let handed = hand_over(state, parsed, origin, &mut progress);
            tokio::pin!(handed);
            tokio::select! {
                biased;
                outcome = &mut handed => outcome,
                // Who has gone is not waited for here; its insert is stored all the same.
                () = self.pings() => handed.await,
            }
        };
        // Who has its answer may use its id again.
        drop(claim);
        match outcome {
            Ok(summary) => self.tell_success(sent.query, &summary, is_async).await,
            Err(refusal) => self.refuse(sent.query.is_compressed, &refusal).await,
        }
    }

    /// Answers pings while an insert waits, until something else comes, or nothing any more.
    async fn pings(&mut self) {
        loop {
            match self.wire.input.first() {
                Some(byte) if u64::from(*byte) == client::PING => {
                    self.wire.consume(1);
                    if self.answer(false, |answer| answer.pong()).await.is_err() {
                        return;
                    }
                }
                Some(_) => return,
                None => {
                    if super::wire::read_more(&mut self.wire.read, &mut self.wire.input, 1).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    pub(super) async fn tell_success(
        &mut self,
        query: &Query,
        summary: &Summary,
        is_async: bool,
    ) -> Result<(), Closed> {
        let (tells_events, revision) = (self.tells_events(query), self.client.revision);
        let counters = counters(summary, is_async);
        self.answer(query.is_compressed, |answer: &mut Answer<'_>| {
            if is_async && revision >= revision::PROGRESS_IN_ASYNC_INSERT {
                answer.progress(summary.rows, summary.bytes, summary.elapsed_ns);
            }
            if tells_events {
                answer.profile_events("", seconds_now(), &counters);
            }
            answer.end_of_stream();
        })
        .await
    }

    async fn not_gathered(&mut self, sent: &Sent<'_>, why: NotGathered, come: Come) -> Result<(), Closed> {
        let is_alone = !self.state.backend.takes_requests();
        let (reason, unread) = match why {
            NotGathered::Refused(refusal)
                if !refusal.is_unknown_setting() || sent.has_important_settings() || is_alone =>
            {
                return self.refuse_insert(sent, &come, &refusal).await;
            }
            // ClickHouse passes over what it doesn't know, unless it is marked as important.
            NotGathered::Refused(_) => ("setting", None),
            NotGathered::Forward(reason) => (reason, None),
            NotGathered::NotRead { unread, .. } => (unread.reason, Some(unread)),
        };
        if is_alone && !(sent.is_text && unread.is_some() && sent.statement.format.eq_ignore_ascii_case("Values")) {
            // Nobody else takes what is not gathered, but for SQL that looked like plain values.
            let format = &sent.statement.format;
            let refusal = match (reason, unread) {
                ("too_large", _) => too_large(self.state.max_table_bytes),
                (_, Some(unread)) => unreadable(format, unread, &come.payload),
                (reason, None) => not_taken(reason),
            };
            return self.refuse_insert(sent, &come, &refusal).await;
        }
        self.relay_insert(sent, reason, come).await
    }

    /// The connection goes on, if nothing of the insert can still come.
    async fn refuse_insert(&mut self, sent: &Sent<'_>, come: &Come, refusal: &Refusal) -> Result<(), Closed> {
        self.wire.consume(come.end.unwrap_or(sent.length));
        self.refuse(sent.query.is_compressed, refusal).await?;
        match come.end.is_some() || !come.had.header {
            true => Ok(()),
            false => Err(Closed),
        }
    }

    /// The insert as it came is the backend's.
    async fn relay_insert(&mut self, sent: &Sent<'_>, reason: &'static str, come: Come) -> Result<(), Closed> {
        self.state.metrics.forwarded(reason);
        let query = sent.query;
        let is_whole = sent.is_text || come.end.is_some();
        let end = come.end.unwrap_or(sent.length);
        let context = self.context(query, self.user_key(query), sent.params);
        let claimed = context.claim_for_forwarded().await;
        let text = &self.wire.input[query.text.clone()];
        let outline = outline(&text[..text.len().min(LOOKED_THROUGH_BYTES)]);
        // Over HTTP it is settled there, if the gateway's own port is asked.
        let (additions, passage) = match (&claimed, outline) {
            // Behind USE, a name without a database is another table's.
            (Ok(_), Some(outline)) if self.state.backend.takes_requests() && !self.is_changed => {
                context.settle_deduplication(&outline).await
            }
            _ => (Vec::new(), Passage::Nameless),
        };
        drop(context);
        let refusal = match (&claimed, &passage) {
            (Err(refusal), _) | (_, Passage::Refused(refusal)) => Some(refusal.clone()),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return self.refuse_insert(sent, &come, &refusal).await;
        }
        let is_repeat = matches!(passage, Passage::Repeat);
        if is_repeat || self.is_over_http() {
            let come = match self.rest_of(sent, come, is_repeat).await {
                Ok(come) => come,
                Err(NoRows::Closed | NoRows::Forward(..)) => return Err(Closed),
                Err(NoRows::Ended) => return Ok(()),
            };
            if is_repeat {
                self.wire.consume(come.end.unwrap_or(end));
                return self.tell_success(query, &Summary::default(), false).await;
            }
            return self.insert_over_http(sent, come, &additions, passage).await;
        }
        if let Err(error) = self.upstream().await {
            let refusal = error.refusal();
            return self.refuse_insert(sent, &come, &refusal).await;
        }
        self.wire.flush().await?;
        let up_to = if is_whole { end } else { self.wire.input.len() };
        let first = self.without_own_settings(query, &additions, up_to);
        (self.is_forwarding, self.is_compressed) = (false, query.is_compressed);
        let form = Form { revision: self.client.revision, is_compressed: query.is_compressed };
        let Session { wire, client, between, .. } = self;
        let back = &mut client.upstream.as_mut().ok_or(Closed)?.wire;
        let mut sent_first = false;
        let Answered { ended, last } = {
            let to_backend = async {
                back.write.send(&first, back.idle).await?;
                sent_first = true;
                match is_whole {
                    true => std::future::pending().await,
                    false => Err(between.up.run(&mut wire.read, &mut back.write).await),
                }
            };
            let to_client = pass_answer(&mut back.read, &mut back.input, &mut wire.write, form, come.had);
            tokio::select! {
                biased;
                answered = to_client => answered?,
                gone = to_backend => {
                    let _: std::io::Result<()> = gone;
                    return Err(Closed);
                }
            }
        };
        // A client that cancels in the middle hears the same as one whose rows are stored.
        self.state.conclude(passage, is_whole && matches!(ended, Ended::Done)).await;
        self.wire.send(&last).await?;
        match ended {
            Ended::Done => Ok(()),
            Ended::Failed { .. } if !sent_first => Err(Closed),
            Ended::Failed { .. } if sent.is_text => Ok(()),
            Ended::Failed { in_rows: true } if is_whole => Ok(()),
            // Its rows came behind the error: this connection has nothing more to say.
            Ended::Failed { in_rows: false } if is_whole => Err(Closed),
            Ended::Failed { in_rows: false } => {
                self.is_forwarding = true;
                Ok(())
            }
            // What the client goes on to send is the backend's to pass over; where it ends, nobody here can tell.
            Ended::Failed { in_rows: true } | Ended::Unreadable => self.splice().await,
        }
    }

    /// Takes what has not come yet of an insert that is not passed on as it comes.
    async fn rest_of(&mut self, sent: &Sent<'_>, come: Come, is_repeat: bool) -> Result<Come, NoRows> {
        if sent.is_text || come.end.is_some() {
            return Ok(come);
        }
        if is_repeat && come.had.header {
            return self.pass_over(sent, come.had).await;
        }
        if come.had.header {
            let refusal = Refusal::statement(NOT_IMPLEMENTED, UNREADABLE_OVER_HTTP.to_owned());
            self.refuse(sent.query.is_compressed, &refusal).await?;
            return Err(NoRows::Closed);
        }
        let Some(header) = self.header_of_table(sent).await else {
            let text = "Windrow can't tell which columns the insert has to bring. Nothing was stored";
            self.wire.consume(sent.length);
            self.refuse(sent.query.is_compressed, &Refusal::statement(NOT_IMPLEMENTED, text.to_owned())).await?;
            return Err(NoRows::Ended);
        };
        self.rows(sent, self.max_insert_bytes(), RowShape::default(), &header).await
    }

    /// Takes the rows of an insert that is stored already, however many they are. `had` is what the client was told of them.
    async fn pass_over(&mut self, sent: &Sent<'_>, mut had: Had) -> Result<Come, NoRows> {
        let is_compressed = sent.query.is_compressed;
        self.wire.consume(sent.length);
        let mut reading = Reading::passing_over(self.client.revision, is_compressed, self.max_insert_bytes());
        loop {
            match self.step(&mut reading).await? {
                Step::Block(end) if end.is_last() => return Ok(Come { had, end: Some(0), ..Come::default() }),
                Step::Block(_) if had.profile_events > 0 => had.profile_events -= 1,
                Step::Block(_) if self.tells_events(sent.query) => {
                    self.queue(is_compressed, |answer| answer.profile_events("", seconds_now(), &[]));
                }
                Step::Block(_) => {}
                Step::Unreadable(fault) => {
                    self.refuse(is_compressed, &misread(&fault)).await?;
                    return Err(NoRows::Closed);
                }
                Step::Cancel => {
                    self.wire.consume(reading.at);
                    self.answer(is_compressed, |answer| answer.end_of_stream()).await?;
                    return Err(NoRows::Ended);
                }
                Step::Scalar => return Ok(self.refuse_packet(is_compressed, client::SCALAR).await?),
                Step::Unexpected(kind) => return Ok(self.refuse_packet(is_compressed, kind).await?),
                Step::NoRoom => {
                    self.refuse(is_compressed, &no_room()).await?;
                    return Err(NoRows::Closed);
                }
            }
        }
    }

    /// What has come of a statement, up to `end`, with other settings: without Windrow's own, and with these.
    pub(super) fn without_own_settings(
        &mut self,
        query: &Query,
        additions: &[(&'static str, &'static str)],
        end: usize,
    ) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.wire.input.drain(..end).collect();
        if let Some(blanked) =
            windrow_sql::blank_settings(&bytes[query.text.clone()], |name| role(name) == Role::Windrow)
        {
            bytes[query.text.clone()].copy_from_slice(&blanked);
        }
        let is_own = |setting: &&Setting| role(&setting.name) == Role::Windrow;
        if !additions.is_empty() || query.settings.iter().any(|setting| is_own(&setting)) {
            let mut settings: Vec<Setting> = query.settings.iter().filter(|it| !is_own(it)).cloned().collect();
            let added = |(name, value): &(&str, &str)| Setting {
                name: (*name).to_owned(),
                flags: 0,
                value: (*value).to_owned(),
            };
            settings.extend(additions.iter().map(added));
            let mut list = Vec::new();
            Setting::write_all(&settings, &mut list);
            bytes.splice(query.settings_place.clone(), list);
        }
        bytes
    }
}

const UNREADABLE_OVER_HTTP: &str = "Windrow can't read these blocks, or they are too large, and the backend is \
     reached over HTTP alone. Nothing was stored";

/// Blocks that are being taken.
struct Reading {
    reader: DataReader,
    /// Where in what has come the next packet begins.
    at: usize,
    /// The blocks, as a payload in the format Native.
    out: Vec<u8>,
    room: Room,
    /// So many bytes of that, and no more.
    limit: usize,
    /// What has been read stays: it may have to go to the backend as it came.
    keeps: bool,
}

impl Reading {
    fn new(revision: u64, is_compressed: bool, at: usize, limit: usize) -> Reading {
        let reader = DataReader::new(revision, is_compressed, limit);
        Reading { reader, at, out: Vec::new(), room: Room::default(), limit, keeps: true }
    }

    /// Blocks of which nothing is needed, however many they are.
    /// A column takes no more than `limit`.
    fn passing_over(revision: u64, is_compressed: bool, limit: usize) -> Reading {
        let reader = DataReader::new(revision, is_compressed, limit).discarding();
        Reading { reader, keeps: false, ..Reading::new(revision, is_compressed, 0, limit) }
    }
}

/// What came between a statement and the empty block behind it.
pub(super) enum Beside {
    Whole {
        end: usize,
        has_tables: bool,
    },
    Unreadable,
    /// The statement too: the client has heard so.
    Cancelled,
}

/// What came next of an insert.
enum Step {
    Block(BlockEnd),
    /// A value that a server has worked out for a statement.
    Scalar,
    Cancel,
    Unexpected(u64),
    Unreadable(Fault),
    NoRoom,
}

impl Sent<'_> {
    fn setting(&self, name: &str) -> Option<&str> {
        let in_text = self.statement.settings.iter().rev().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
        in_text.or_else(|| self.params.iter().rev().find(|param| param.name() == name)?.text())
    }

    /// Whether its client is to see what the server logs of it. (Of what is fatal nothing is left to be told.)
    fn wants_logs(&self) -> bool {
        self.setting("send_logs_level").is_some_and(|level| !matches!(level, "none" | "fatal"))
    }

    fn has_important_settings(&self) -> bool {
        self.query.settings.iter().any(Setting::is_important)
    }
}

/// Nothing is left of a statement but blanks and its end.
fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b';')
}
