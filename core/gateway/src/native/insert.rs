//! An insert over the native protocol: a candidate is made of the statement, taken through the stages of
//! [`crate::insert`], and answered. Its rows stand in the statement's text, or come as blocks; then nothing
//! of the insert is stored before the last block.

use std::borrow::Cow;
use std::sync::Arc;

use windrow_clickhouse::native::{revision, Answer, Input, Query, RowShape, Setting};
use windrow_clickhouse::{ErrorCode, Purpose};
use windrow_sql::{InsertStatement, TableName};

use super::relay::{pass_answer, Answered, Ended, Form};
use super::reply::{counters, seconds_now};
use super::rows::{ExternalTables, NoRows, ReceivedRows};
use super::session::{Closed, Session};
use crate::admission::{Holds, Moment};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::ingest::{accept, accept_admitted, Accepted, RowSource};
use crate::insert::{
    not_taken, role, too_large, unreadable, Candidate, NotGathered, Origin, Prepared, Role, RowsForm, SentRows, Silent,
    Summary,
};
use crate::statement::{outline, Passage, StatementContext, LOOKED_THROUGH_BYTES};

/// An insert, with the results for it: another insert with the same bytes in its Query packet needs only its
/// rows read.
pub(super) struct LatestQuery {
    /// Bytes of the Query packet behind the query id.
    packet: Vec<u8>,
    id_bytes: usize,
    pub(super) query: Query,
    statement: InsertStatement,
    table: TableName,
    prepared: Arc<Prepared>,
    /// Packets that the client is sent before its rows.
    header: Vec<u8>,
}

/// Longest Query packet that is kept. Longer statements are looked at each time.
const MAX_LATEST_BYTES: usize = 16 * 1024;

/// An insert as it came.
pub(super) struct SentInsert<'q> {
    pub(super) query: &'q Query,
    pub(super) context: &'q StatementContext<'q>,
    /// The position at which its Query packet ends, with the tables beside it, which nobody sends with an insert.
    pub(super) length: usize,
    pub(super) statement: &'q InsertStatement,
    /// Says whether its rows stand in its text.
    pub(super) is_text: bool,
}

/// Rows in a statement's text, or in the blocks behind it.
struct RowsOfStatement<'r, 's, 'q> {
    session: &'r mut Session<'s>,
    sent: &'q SentInsert<'q>,
    origin: Origin<'q>,
    /// Packets that the client is sent before the rows. They are known for a repeat.
    header: Option<Cow<'q, [u8]>>,
    prepared: Option<Arc<Prepared>>,
    come: Result<ReceivedRows, Closed>,
}

impl<'r, 's, 'q> RowsOfStatement<'r, 's, 'q> {
    fn new(
        session: &'r mut Session<'s>,
        sent: &'q SentInsert<'q>,
        origin: Origin<'q>,
        header: Option<&'q [u8]>,
    ) -> RowsOfStatement<'r, 's, 'q> {
        let come = if sent.is_text { ReceivedRows::with_text(sent.length) } else { ReceivedRows::default() };
        RowsOfStatement { session, sent, origin, header: header.map(Cow::from), prepared: None, come: Ok(come) }
    }

    /// Takes the blocks behind the statement.
    async fn blocks(&mut self, prepared: &Arc<Prepared>) -> Result<ReceivedRows, NoRows> {
        let forward = |reason| NoRows::Forward(reason, ReceivedRows::default());
        if !prepared.reads_blocks() {
            return Err(forward(ForwardReason::Type));
        }
        let header = match self.header.take() {
            Some(header) => header,
            None => self.session.header(self.sent, prepared).ok_or(forward(ForwardReason::Columns))?.into(),
        };
        let header = self.header.insert(header);
        // What is more than a batch may have is not gathered by a backend that takes it as it is.
        let limit = match self.session.is_over_http() {
            true => self.session.max_insert_bytes(),
            false => self.session.max_insert_bytes().min(prepared.kind.limits.max_data_size_bytes as usize),
        };
        let come = self.session.rows(self.sent, limit, prepared.row_shape(), header).await?;
        self.origin.mark("rows");
        Ok(come)
    }
}

impl RowSource for RowsOfStatement<'_, '_, '_> {
    async fn rows(&mut self, prepared: &Arc<Prepared>) -> Result<SentRows<'_>, NotGathered> {
        if self.sent.is_text {
            let text = &self.session.wire.input[self.sent.query.text.clone()];
            return Ok(SentRows::Bytes(&text[self.sent.statement.data_start..]));
        }
        self.prepared = Some(prepared.clone());
        match self.blocks(prepared).await {
            Ok(come) => self.come = Ok(come),
            Err(NoRows::Forward(reason, come)) => {
                self.come = Ok(come);
                return Err(reason.into());
            }
            Err(NoRows::Ended) => return Err(NotGathered::NoRows),
            Err(NoRows::Closed) => {
                self.come = Err(Closed);
                return Err(NotGathered::NoRows);
            }
        }
        Ok(SentRows::Bytes(self.come.as_ref().map_or(&[], |come| &come.payload)))
    }
}

impl Session<'_> {
    /// Returns the length of the longest insert that is read into memory. DuckDB gets none past the gateway.
    pub(super) fn max_insert_bytes(&self) -> usize {
        match self.state.backend.takes_requests() {
            true => self.state.options.settings.get().http.max_decompressed_bytes,
            false => usize::try_from(self.state.max_table_bytes).unwrap_or(usize::MAX),
        }
    }

    pub(super) async fn insert(
        &mut self,
        query: Query,
        query_length: usize,
        statement: InsertStatement,
        origin: Origin<'_>,
    ) -> Result<(), Closed> {
        let (length, has_tables) = match self.tables_beside(&query, query_length).await? {
            ExternalTables::Whole { end, has_tables } => (end, has_tables),
            ExternalTables::Cancelled => return Ok(()),
            ExternalTables::Unreadable => {
                self.state.metrics.forwarded(ForwardReason::ExternalTable);
                return self.splice().await;
            }
        };
        let context = self.context(&query);
        let packet = self.packet_of(&query, query_length);
        let resolved = statement.table.resolve(|parameter| context.options.query_parameter(parameter));
        let text = &self.wire.input[query.text.clone()];
        let is_text = !is_blank(&text[statement.data_start..]);
        let sent = SentInsert { query: &query, context: &context, length, statement: &statement, is_text };
        let Some(table) = resolved else {
            return self.relay_insert(&sent, ForwardReason::InsertForm, ReceivedRows::default()).await;
        };
        let obstacle = match () {
            () if self.is_changed => Some(ForwardReason::Session),
            () if has_tables => Some(ForwardReason::ExternalTable),
            // Only what runs there has a log.
            () if sent.wants_logs() && !self.is_over_http() => Some(ForwardReason::Setting),
            // In a list of settings it is a setting that nobody has, and no query parameter.
            () if query.settings.iter().any(|setting| setting.name.starts_with("param_")) => {
                Some(ForwardReason::Setting)
            }
            () => None,
        };
        let candidate = Candidate { obstacle, ..sent.candidate(&table) };
        let mut source = RowsOfStatement::new(self, &sent, origin, None);
        let accepted = accept(&context, &candidate, origin, &mut source).await;
        let (come, prepared, header) = (source.come, source.prepared, source.header);
        let outcome = self.finish(&sent, accepted, come, origin).await;
        let (id_bytes, has_token) = (query.id.len(), candidate.token.is_some());
        if let (Ok(()), Some(packet), Some(prepared), Some(header), false) =
            (&outcome, packet, prepared, header, has_token)
        {
            let header = header.into_owned();
            self.latest = Some(LatestQuery { packet, id_bytes, query, statement, table, prepared, header });
        }
        outcome
    }

    /// Returns the part of a Query packet behind its id, by which the packet is known again.
    fn packet_of(&self, query: &Query, length: usize) -> Option<Vec<u8>> {
        let mut input = Input::new(&self.wire.input);
        input.varint().and_then(|_| input.bytes(query.id.len(), "the query id")).ok()?;
        (length <= MAX_LATEST_BYTES).then(|| self.wire.input[input.at()..length].to_vec())
    }

    /// Takes the results for the insert before, if the next packet is the same as that insert's.
    pub(super) fn same_again(&mut self) -> Option<LatestQuery> {
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

    /// Handles the insert before with other rows.
    pub(super) async fn repeat(&mut self, mut latest: LatestQuery, origin: Origin<'_>) -> Result<(), Closed> {
        let mut input = Input::new(&self.wire.input);
        let id = input.varint().and_then(|_| input.text(latest.id_bytes, "the query id"));
        latest.query.id.clear();
        latest.query.id.push_str(id.unwrap_or_default());
        let length = input.at() + latest.packet.len();
        let length = match self.tables_beside(&latest.query, length).await? {
            ExternalTables::Whole { end, has_tables: false } => end,
            ExternalTables::Cancelled => return Ok(()),
            ExternalTables::Whole { .. } | ExternalTables::Unreadable => return self.splice().await,
        };
        let context = self.context(&latest.query);
        let sent = SentInsert {
            query: &latest.query,
            context: &context,
            length,
            statement: &latest.statement,
            is_text: false,
        };
        let candidate = sent.candidate(&latest.table);
        let mut source = RowsOfStatement::new(self, &sent, origin, Some(&latest.header));
        let accepted = accept_admitted(&context, &candidate, latest.prepared.clone(), origin, &mut source).await;
        let come = source.come;
        self.finish(&sent, accepted, come, origin).await?;
        self.latest = Some(latest);
        Ok(())
    }

    /// Ends an insert whose rows have come, or that is known not to be gathered.
    async fn finish(
        &mut self,
        sent: &SentInsert<'_>,
        accepted: Result<Accepted, NotGathered>,
        come: Result<ReceivedRows, Closed>,
        origin: Origin<'_>,
    ) -> Result<(), Closed> {
        let come = come?;
        match accepted {
            Ok(accepted) => self.gather(sent, accepted, come, origin).await,
            Err(why) => self.not_gathered(sent, why, come).await,
        }
    }

    /// Returns the packets that tell the client which columns it must send.
    fn header(&self, sent: &SentInsert<'_>, prepared: &Prepared) -> Option<Vec<u8>> {
        Some(self.header_with(sent, &prepared.grounds.schema.description(), &prepared.header()?))
    }

    pub(super) fn header_with(&self, sent: &SentInsert<'_>, description: &str, columns: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        let (revision, is_compressed) = (self.client.revision, sent.query.is_compressed);
        let mut answer = Answer { out: &mut out, revision, is_compressed };
        if sent.setting("input_format_defaults_for_omitted_fields").is_none_or(|value| value != "0") {
            answer.table_columns(description);
        }
        answer.header(columns.iter().copied());
        out
    }

    /// Says whether the client counts on a packet of counters for each of its blocks.
    pub(super) fn tells_events(&self, query: &Query) -> bool {
        query.is_initial && self.client.revision >= revision::PROFILE_EVENTS_IN_INSERT
    }

    /// Hands the rows over, waits for the outcome, and tells the client.
    async fn gather(
        &mut self,
        sent: &SentInsert<'_>,
        accepted: Accepted,
        come: ReceivedRows,
        origin: Origin<'_>,
    ) -> Result<(), Closed> {
        let end = come.end.unwrap_or(sent.length);
        self.is_forwarding = false;
        // While the insert waits, its bytes are not needed any more.
        drop(come);
        self.wire.consume(end);
        if accepted.parsed.waits() {
            self.wire.flush().await?;
        }
        let is_async = accepted.parsed.is_async();
        let state = self.state;
        // A client's own patience is long.
        let mut progress = Silent;
        // Who has gone is not waited for here; its insert is stored all the same.
        let outcome = self.wire.until_done(accepted.store(state, origin, &mut progress)).await;
        let told = match outcome {
            Ok(summary) => self.tell_success(sent.query, &summary, is_async).await,
            Err(refusal) => self.refuse(sent.query.is_compressed, &refusal).await,
        };
        origin.mark("acknowledge");
        told
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

    async fn not_gathered(
        &mut self,
        sent: &SentInsert<'_>,
        why: NotGathered,
        come: ReceivedRows,
    ) -> Result<(), Closed> {
        let is_alone = !self.state.backend.takes_requests();
        let (reason, unread) = match why {
            NotGathered::Refused(refusal)
                if !refusal.is_unknown_setting() || sent.has_important_settings() || is_alone =>
            {
                return self.refuse_insert(sent, &come, &refusal).await;
            }
            // ClickHouse passes over what it doesn't know, unless it is marked as important.
            NotGathered::Refused(_) => (ForwardReason::Setting, None),
            NotGathered::Forward(reason) => (reason, None),
            NotGathered::Elsewhere(owner) => {
                return self.insert_over_http(sent, come, (&[], Purpose::Statement), Passage::Elsewhere(owner)).await;
            }
            NotGathered::NoRows => return Ok(()),
            NotGathered::NotRead { unread, .. } => (unread.reason, Some(unread)),
        };
        if is_alone && !(sent.is_text && unread.is_some() && sent.statement.format.eq_ignore_ascii_case("Values")) {
            // Nobody else takes what is not gathered, but for SQL that looked like plain values.
            let format = &sent.statement.format;
            let refusal = match (reason, unread) {
                (ForwardReason::TooLarge, _) => too_large(self.state.max_table_bytes),
                (_, Some(unread)) => unreadable(format, unread, &come.payload),
                (reason, None) => not_taken(reason),
            };
            return self.refuse_insert(sent, &come, &refusal).await;
        }
        self.relay_insert(sent, reason, come).await
    }

    /// Refuses an insert. The connection goes on if nothing of the insert can still come.
    async fn refuse_insert(
        &mut self,
        sent: &SentInsert<'_>,
        come: &ReceivedRows,
        refusal: &Refusal,
    ) -> Result<(), Closed> {
        self.wire.consume(come.end.unwrap_or(sent.length));
        self.refuse(sent.query.is_compressed, refusal).await?;
        match come.end.is_some() || !come.had.header {
            true => Ok(()),
            false => Err(Closed),
        }
    }

    /// Passes the insert on to the backend as it came.
    async fn relay_insert(
        &mut self,
        sent: &SentInsert<'_>,
        reason: ForwardReason,
        come: ReceivedRows,
    ) -> Result<(), Closed> {
        self.state.metrics.forwarded(reason);
        let query = sent.query;
        let is_whole = sent.is_text || come.end.is_some();
        let end = come.end.unwrap_or(sent.length);
        let context = sent.context;
        let claimed = context.claim_for_forwarded().await;
        let text = &self.wire.input[query.text.clone()];
        let outline = outline(&text[..text.len().min(LOOKED_THROUGH_BYTES)]);
        let purpose = context.purpose(outline.as_ref());
        let (additions, passage) = match (&claimed, outline) {
            // Behind USE, a name without a database is another table's.
            (Ok(_), Some(outline)) if self.state.backend.takes_requests() && !self.is_changed => {
                context.settle_deduplication(&outline).await
            }
            _ => (Vec::new(), Passage::Nameless),
        };
        let refusal = match (&claimed, &passage) {
            (Err(refusal), _) | (_, Passage::Refused(refusal)) => Some(refusal.clone()),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return self.refuse_insert(sent, &come, &refusal).await;
        }
        let is_repeat = matches!(passage, Passage::Repeat);
        let is_elsewhere = matches!(passage, Passage::Elsewhere(_));
        if is_repeat || is_elsewhere || self.is_over_http() {
            let come = match self.rest_of(sent, come, is_repeat).await {
                Ok(come) => come,
                Err(NoRows::Closed | NoRows::Forward(..)) => return Err(Closed),
                Err(NoRows::Ended) => return Ok(()),
            };
            if is_repeat {
                self.wire.consume(come.end.unwrap_or(end));
                return self.tell_success(query, &Summary::default(), false).await;
            }
            return self.insert_over_http(sent, come, (&additions, purpose), passage).await;
        }
        if let Err(error) = self.upstream_for(purpose).await {
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

    /// Takes the rest of an insert that is not passed on as it comes.
    async fn rest_of(
        &mut self,
        sent: &SentInsert<'_>,
        come: ReceivedRows,
        is_repeat: bool,
    ) -> Result<ReceivedRows, NoRows> {
        if sent.is_text || come.end.is_some() {
            return Ok(come);
        }
        if is_repeat && come.had.header {
            return self.pass_over(sent, come.had).await;
        }
        if come.had.header {
            let text = if self.is_over_http() { UNREADABLE_OVER_HTTP } else { UNREADABLE_FOR_OWNER };
            let refusal = Refusal::statement(ErrorCode::NOT_IMPLEMENTED, text.to_owned());
            self.refuse(sent.query.is_compressed, &refusal).await?;
            return Err(NoRows::Closed);
        }
        let Some(header) = self.header_of_table(sent).await else {
            let text = "Windrow can't tell which columns the insert has to bring. Nothing was stored";
            self.wire.consume(sent.length);
            self.refuse(sent.query.is_compressed, &Refusal::statement(ErrorCode::NOT_IMPLEMENTED, text.to_owned()))
                .await?;
            return Err(NoRows::Ended);
        };
        self.rows(sent, self.max_insert_bytes(), RowShape::default(), &header).await
    }

    /// Takes the bytes of a statement, up to `end`, without Windrow's own settings and with these additions.
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

const UNREADABLE_FOR_OWNER: &str = "Windrow can't read these blocks, or they are too large, and another gateway owns \
     this insert by its deduplication token. Nothing was stored; send it over HTTP";
const UNREADABLE_OVER_HTTP: &str = "Windrow can't read these blocks, or they are too large, and the backend is \
     reached over HTTP alone. Nothing was stored";

impl SentInsert<'_> {
    fn setting(&self, name: &str) -> Option<&str> {
        let in_text = self.statement.settings.iter().rev().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
        in_text.or_else(|| self.context.options.setting(name))
    }

    fn candidate<'c>(&'c self, table: &'c TableName) -> Candidate<'c> {
        Candidate {
            sender: &self.context.user_key,
            statement: self.statement,
            table,
            form: if self.is_text { RowsForm::Text } else { RowsForm::Blocks },
            options: &self.context.options,
            gathering: None,
            token: self.context.options.token(self.statement),
            query_id: self.context.query_id,
            obstacle: None,
        }
    }

    /// Says whether the client wants to see the server's log of the insert. (After a fatal error there is
    /// nothing to tell.)
    fn wants_logs(&self) -> bool {
        self.setting("send_logs_level").is_some_and(|level| !matches!(level, "none" | "fatal"))
    }

    fn has_important_settings(&self) -> bool {
        self.query.settings.iter().any(Setting::is_important)
    }
}

/// Says whether only blanks and the end of a statement are left.
fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b';')
}
