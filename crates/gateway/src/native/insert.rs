//! An insert over the native protocol: a candidate is made of the statement, taken through the stages of [`crate::insert`], and
//! answered. Its rows stand in the statement's text, or come as blocks; then nothing of it is stored before the last has come.

use std::sync::Arc;
use std::time::Duration;

use windrow_native::{client, revision, Answer, BlockEnd, DataReader, Fault, Input, Query, Setting};
use windrow_sql::{InsertStatement, TableName};

use super::relay::{copy, pass_answer, Ended, Form, Had};
use super::reply::{counters, misread, seconds_now, UNEXPECTED_PACKET_FROM_CLIENT};
use super::session::{params, Closed, Session};
use crate::admission::{Holds, Moment};
use crate::data::Room;
use crate::error::Refusal;
use crate::insert::{
    hand_over, role, Candidate, NotGathered, Origin, Param, Parsed, Prepared, Progress, Role, Summary,
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
struct Sent<'q> {
    query: &'q Query,
    params: &'q [Param<'q>],
    /// Where its Query packet ends, and the tables beside it, which nobody sends with an insert.
    length: usize,
    /// Whether its rows stand in its text.
    is_text: bool,
}

/// An insert whose rows have all come.
struct Rows {
    payload: Vec<u8>,
    /// Where the last packet of it ends.
    end: usize,
    /// What the client has been told meanwhile.
    had: Had,
    _room: Room,
}

/// Why there are no rows of an insert.
enum NoRows {
    Closed,
    /// The client has changed its mind, or has been told why not.
    Ended,
    /// They can't be kept or read here. The backend gets what has come, and what still comes.
    Forward(&'static str, Had),
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
    pub(super) fn max_insert_bytes(&self) -> usize {
        self.state.options.settings.get().http.max_decompressed_bytes
    }

    pub(super) async fn insert(
        &mut self,
        query: Query,
        query_length: usize,
        mut statement: InsertStatement,
        origin: Origin,
    ) -> Result<(), Closed> {
        let Some((length, has_tables)) = self.tables_beside(&query, query_length).await? else {
            self.state.metrics.forwarded("external_table");
            return self.splice().await;
        };
        let params = params(&query);
        let packet = self.packet_of(&query, query_length);
        let text = &self.wire.input[query.text.clone()];
        let is_text = !is_blank(&text[statement.data_start..]);
        let sent = Sent { query: &query, params: &params, length, is_text };
        let Some(table) = statement.table.resolve(|parameter| query_parameter(&params, parameter)) else {
            return self.relay_insert(&sent, "insert_form", Had::default(), None).await;
        };
        if !is_text {
            // Whatever format is named: blocks are blocks.
            statement.format = "Native".to_owned();
        }
        let obstacle = match (self.is_changed, has_tables) {
            (true, _) => Some("session"),
            (_, true) => Some("external_table"),
            _ => None,
        };
        let payload = match is_text {
            true => query.text.start + statement.data_start..query.text.end,
            false => 0..0,
        };
        let state = self.state;
        let candidate = self.candidate(&sent, &statement, &table, obstacle, &self.wire.input[payload]);
        let admitted = candidate.admit(state).await;
        if is_text {
            let parsed = match admitted {
                Ok(admitted) => admitted.parse(state).await,
                Err(why) => Err(why),
            };
            drop(candidate);
            let end = sent.length;
            return match parsed {
                Ok(parsed) => self.gather(&sent, parsed, end, Had::default(), origin).await,
                Err(why) => self.not_gathered(&sent, why, Had::default(), Some(end)).await,
            };
        }
        let prepared = match admitted.map(|admitted| admitted.prepared) {
            Ok(prepared) if prepared.reads_blocks() => prepared,
            Ok(_) => {
                drop(candidate);
                return self.relay_insert(&sent, "type", Had::default(), None).await;
            }
            Err(why) => {
                drop(candidate);
                return self.not_gathered(&sent, why, Had::default(), None).await;
            }
        };
        let has_token = candidate.token().is_some();
        drop(candidate);
        let Some(header) = self.header(&sent, &prepared) else {
            return self.relay_insert(&sent, "columns", Had::default(), None).await;
        };
        let outcome = self.blocks(&sent, &statement, &table, prepared.clone(), &header, origin).await;
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
        let Some((length, false)) = self.tables_beside(&latest.query, length).await? else {
            return self.splice().await;
        };
        let params = params(&latest.query);
        let sent = Sent { query: &latest.query, params: &params, length, is_text: false };
        let prepared = latest.prepared.clone();
        self.blocks(&sent, &latest.statement, &latest.table, prepared, &latest.header, origin).await?;
        self.latest = Some(latest);
        Ok(())
    }

    /// An insert that is admitted, and whose rows come as blocks.
    async fn blocks(
        &mut self,
        sent: &Sent<'_>,
        statement: &InsertStatement,
        table: &TableName,
        prepared: Arc<Prepared>,
        header: &[u8],
        origin: Origin,
    ) -> Result<(), Closed> {
        let rows = match self.rows(sent, &prepared, header).await {
            Ok(rows) => rows,
            Err(NoRows::Closed) => return Err(Closed),
            Err(NoRows::Ended) => return Ok(()),
            Err(NoRows::Forward(reason, had)) => return self.relay_insert(sent, reason, had, None).await,
        };
        let candidate = self.candidate(sent, statement, table, None, &rows.payload);
        let parsed = candidate.admitted_as(prepared).parse(self.state).await;
        drop(candidate);
        let Rows { end, had, .. } = rows;
        match parsed {
            // What a block leaves out gets the default of its type, not of its column, as ClickHouse does it for clients.
            Ok(parsed) if !parsed.has_all_columns() => self.relay_insert(sent, "columns", had, Some(end)).await,
            Ok(parsed) => self.gather(sent, parsed, end, had, origin).await,
            Err(why) => self.not_gathered(sent, why, had, Some(end)).await,
        }
    }

    fn candidate<'c>(
        &'c self,
        sent: &Sent<'c>,
        statement: &InsertStatement,
        table: &TableName,
        obstacle: Option<&'static str>,
        payload: &'c [u8],
    ) -> Candidate<'c> {
        let query = sent.query;
        let of_connection = || self.addendum.as_ref().map_or("", |addendum| addendum.quota_key.as_str());
        Candidate {
            credentials: &self.client.credentials,
            statement: statement.clone(),
            table: table.clone(),
            payload,
            params: sent.params,
            quota_key: if query.quota_key.is_empty() { of_connection() } else { &query.quota_key },
            database: Some(self.client.hello.database.as_str()).filter(|database| !database.is_empty()),
            query_id: Some(query.id.as_str()).filter(|id| !id.is_empty()),
            obstacle,
        }
    }

    /// Reads up to the empty block that says that no more tables come with a statement. Tells where it ends, and whether there
    /// were any. `None`: a block can't be read.
    pub(super) async fn tables_beside(
        &mut self,
        query: &Query,
        length: usize,
    ) -> Result<Option<(usize, bool)>, Closed> {
        let (mut at, mut has_tables) = (length, false);
        let mut reader = DataReader::new(self.client.revision, query.is_compressed, self.max_insert_bytes());
        let mut out = Vec::new();
        let mut room = Room::default();
        loop {
            match self.step(&mut reader, &mut at, &mut out, &mut room).await? {
                Step::Block(end) if end.is_last() => return Ok(Some((at, has_tables))),
                Step::Block(_) => {
                    has_tables = true;
                    out.clear();
                }
                Step::Unreadable(_) | Step::NoRoom => return Ok(None),
                Step::Cancel | Step::Unexpected(_) => return Err(Closed),
            }
        }
    }

    /// What tells the client which columns it is to send.
    fn header(&self, sent: &Sent<'_>, prepared: &Prepared) -> Option<Vec<u8>> {
        let columns = prepared.header()?;
        let mut out = Vec::new();
        let (revision, is_compressed) = (self.client.revision, sent.query.is_compressed);
        let mut answer = Answer { out: &mut out, revision, is_compressed };
        if sent.setting("input_format_defaults_for_omitted_fields").is_none_or(|value| value != "0") {
            answer.table_columns(&prepared.grounds.schema.description());
        }
        answer.header(columns.into_iter());
        Some(out)
    }

    /// Takes the client's blocks up to the empty one.
    async fn rows(&mut self, sent: &Sent<'_>, prepared: &Prepared, header: &[u8]) -> Result<Rows, NoRows> {
        // A client that does not wait for it has sent its rows already.
        self.wire.queue(header);
        let is_compressed = sent.query.is_compressed;
        let max_bytes = self.max_insert_bytes();
        let mut reader = DataReader::new(self.client.revision, is_compressed, max_bytes);
        let mut had = Had { header: true, profile_events: 0 };
        let (mut at, mut payload, mut room) = (sent.length, Vec::new(), Room::default());
        loop {
            match self.step(&mut reader, &mut at, &mut payload, &mut room).await? {
                Step::Block(end) if end.is_last() => return Ok(Rows { payload, end: at, had, _room: room }),
                Step::Block(_) => {
                    if self.tells_events(sent.query) {
                        self.queue(is_compressed, |answer| answer.profile_events("", seconds_now(), &[]));
                        had.profile_events += 1;
                    }
                    if payload.len() as u64 > prepared.kind.limits.max_data_size_bytes || payload.len() > max_bytes {
                        return Err(NoRows::Forward("too_large", had));
                    }
                }
                Step::Unreadable(Fault::Unsupported(_) | Fault::TooLarge(_)) => {
                    return Err(NoRows::Forward("type", had));
                }
                Step::Unreadable(fault) => {
                    self.refuse(is_compressed, &misread(&fault)).await?;
                    return Err(NoRows::Closed);
                }
                Step::NoRoom => {
                    let text = "Windrow holds as many inserts as it may. Nothing was stored; try again later";
                    self.refuse(is_compressed, &Refusal::too_busy(text.to_owned())).await?;
                    return Err(NoRows::Closed);
                }
                Step::Cancel => {
                    self.wire.consume(at);
                    self.answer(is_compressed, |answer| answer.end_of_stream()).await?;
                    return Err(NoRows::Ended);
                }
                Step::Unexpected(kind) => {
                    let text = format!("Unexpected packet from client (number {kind}): Data was expected");
                    self.refuse(is_compressed, &Refusal::statement(UNEXPECTED_PACKET_FROM_CLIENT, text)).await?;
                    return Err(NoRows::Closed);
                }
            }
        }
    }

    /// Takes the next packet, from `at` on. Its bytes stay where they are.
    async fn step(
        &mut self,
        reader: &mut DataReader,
        at: &mut usize,
        out: &mut Vec<u8>,
        room: &mut Room,
    ) -> Result<Step, Closed> {
        loop {
            let kind = self.wire.parse(*at, |bytes| Input::new(bytes).varint().map(|kind| (kind, 1))).await?;
            match kind.map(|(kind, _)| kind) {
                Ok(client::DATA) => break,
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
        }
        loop {
            match reader.read(&self.wire.input[*at..], out) {
                Ok(taken) => {
                    *at += taken.bytes;
                    if let Some(end) = taken.end {
                        return Ok(Step::Block(end));
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
    async fn gather(
        &mut self,
        sent: &Sent<'_>,
        parsed: Parsed,
        end: usize,
        had: Had,
        origin: Origin,
    ) -> Result<(), Closed> {
        let claim = match sent.query.id.is_empty() {
            true => Ok(None),
            false => self.context(sent.query, self.user_key(sent.query), sent.params).claim_for_insert().await,
        };
        let claim = match claim {
            Ok(claim) => claim,
            Err(NotClaimed::Forward) => return self.relay_insert(sent, "query_id", had, Some(end)).await,
            Err(NotClaimed::Refused(refusal)) => {
                self.wire.consume(end);
                return self.refuse(sent.query.is_compressed, &refusal).await;
            }
        };
        self.is_forwarding = false;
        // While the insert waits, its bytes are not needed any more.
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
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut handed => break outcome,
                    // Who has gone is not waited for here; its insert is stored all the same.
                    () = self.pings() => break handed.await,
                }
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

    async fn tell_success(&mut self, query: &Query, summary: &Summary, is_async: bool) -> Result<(), Closed> {
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

    /// `end`: all of it has come.
    async fn not_gathered(
        &mut self,
        sent: &Sent<'_>,
        why: NotGathered,
        had: Had,
        end: Option<usize>,
    ) -> Result<(), Closed> {
        match why {
            NotGathered::Refused(refusal) if refusal.is_unknown_setting() && !sent.has_important_settings() => {
                // ClickHouse passes over what it doesn't know, unless it is marked as important.
                self.relay_insert(sent, "setting", had, end).await
            }
            NotGathered::Refused(refusal) => {
                self.wire.consume(end.unwrap_or(sent.length));
                self.refuse(sent.query.is_compressed, &refusal).await
            }
            NotGathered::Forward(reason) => self.relay_insert(sent, reason, had, end).await,
            NotGathered::NotRead { unread, .. } => self.relay_insert(sent, unread.reason, had, end).await,
        }
    }

    /// The insert as it came is the backend's. `had`: what the client has been told already. `end`: all of it has come.
    async fn relay_insert(
        &mut self,
        sent: &Sent<'_>,
        reason: &'static str,
        had: Had,
        end: Option<usize>,
    ) -> Result<(), Closed> {
        self.state.metrics.forwarded(reason);
        let query = sent.query;
        let is_whole = sent.is_text || end.is_some();
        let end = end.unwrap_or(sent.length);
        let context = self.context(query, self.user_key(query), sent.params);
        let claimed = context.claim_for_forwarded().await;
        let text = &self.wire.input[query.text.clone()];
        let outline = outline(&text[..text.len().min(LOOKED_THROUGH_BYTES)]);
        let (additions, passage) = match (&claimed, outline) {
            (Ok(_), Some(outline)) => context.settle_deduplication(&outline).await,
            _ => (Vec::new(), Passage::Nameless),
        };
        drop(context);
        let refusal = match (&claimed, &passage) {
            (Err(refusal), _) | (_, Passage::Refused(refusal)) => Some(refusal.clone()),
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.wire.consume(end);
            self.refuse(query.is_compressed, &refusal).await?;
            return if is_whole || !had.header { Ok(()) } else { Err(Closed) };
        }
        if matches!(passage, Passage::Repeat) && is_whole {
            self.wire.consume(end);
            return self.tell_success(query, &Summary::default(), false).await;
        }
        if self.upstream().await.is_err() {
            let is_in_sync = is_whole || !had.header;
            self.wire.consume(end);
            let refusal =
                Refusal::unreachable("its native port does not answer (see the setting `backend_native.address`)");
            self.refuse(query.is_compressed, &refusal).await?;
            return if is_in_sync { Ok(()) } else { Err(Closed) };
        }
        self.wire.flush().await?;
        let first = self.without_own_settings(sent, &additions, is_whole.then_some(end));
        (self.is_forwarding, self.is_compressed) = (false, query.is_compressed);
        let form = Form { revision: self.client.revision, is_compressed: query.is_compressed };
        let discards = matches!(passage, Passage::Repeat);
        if discards {
            // Blocks of a repeat: the client is to send them to nobody.
            return self.refuse_repeat(sent, end).await;
        }
        let has_header = had.header;
        let Session { wire, client, .. } = self;
        let back = &mut client.upstream.as_mut().ok_or(Closed)?.wire;
        let mut sent_first = false;
        let ended = {
            let to_backend = async {
                back.write.send(&first, back.idle).await?;
                sent_first = true;
                match is_whole {
                    true => std::future::pending().await,
                    false => copy(&mut wire.read, &mut back.write).await,
                }
            };
            let to_client = pass_answer(&mut back.read, &mut back.input, &mut wire.write, form, had, || async {});
            tokio::select! {
                biased;
                ended = to_client => ended?,
                gone = to_backend => {
                    let _: std::io::Result<()> = gone;
                    return Err(Closed);
                }
            }
        };
        self.state.conclude(passage, matches!(ended, Ended::Done)).await;
        match ended {
            Ended::Done => Ok(()),
            // What the client goes on to send is the backend's to pass over.
            Ended::Failed if is_whole && sent_first => Ok(()),
            Ended::Failed if is_whole => Err(Closed),
            Ended::Failed if !has_header => {
                self.is_forwarding = true;
                Ok(())
            }
            Ended::Failed | Ended::Unreadable => self.splice().await,
        }
    }

    /// The insert is stored, and its blocks have not come yet.
    async fn refuse_repeat(&mut self, sent: &Sent<'_>, end: usize) -> Result<(), Closed> {
        self.wire.consume(end);
        let text = "This insert has been stored before, by its deduplication token. Nothing is stored again";
        self.refuse(sent.query.is_compressed, &Refusal::statement(REPEATED, text.to_owned())).await
    }

    /// What has come of the insert, with other settings: without Windrow's own, and with these. With `end` up to there; what is
    /// behind it is another statement's.
    fn without_own_settings(
        &mut self,
        sent: &Sent<'_>,
        additions: &[(&'static str, &'static str)],
        end: Option<usize>,
    ) -> Vec<u8> {
        let query = sent.query;
        let mut bytes: Vec<u8> = match end {
            Some(end) => self.wire.input.drain(..end).collect(),
            None => std::mem::take(&mut self.wire.input),
        };
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

/// ClickHouse has no code for it.
const REPEATED: i32 = 388;

/// What came next of an insert.
enum Step {
    Block(BlockEnd),
    Cancel,
    Unexpected(u64),
    Unreadable(Fault),
    NoRoom,
}

impl Sent<'_> {
    fn setting(&self, name: &str) -> Option<&str> {
        self.query.settings.iter().rev().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }

    fn has_important_settings(&self) -> bool {
        self.query.settings.iter().any(Setting::is_important)
    }
}

/// Nothing is left of a statement but blanks and its end.
fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b';')
}
