//! The packets of one connection, one after the other.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use windrow_clickhouse::native::{client, Addendum, Answer, DataReader, Fault, Input, Query};
use windrow_clickhouse::{ErrorCode, Purpose};
use windrow_engine::trace::{Parent, RequestTrace};
use windrow_http::Stream;
use windrow_sql::{classify, unquote_string, Statement, TableName};

use super::handshake::{shake_hands, upstream_of, Client};
use super::insert::LatestQuery;
use super::relay::{splice, RelayState};
use super::reply::{exception, misread};
use super::rows::ExternalTables;
use super::upstream::{NotConnected, Upstream};
use super::wire::{read_more, Wire};
use crate::admission::UserKey;
use crate::data::{Peer, Room};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::{Origin, StatementOptions};
use crate::state::State;
use crate::statement::StatementContext;

/// Time that a connection may lie idle: ClickHouse's `idle_connection_timeout`.
const IDLE: Duration = Duration::from_secs(3600);
/// Time that a client may pause within a packet, or take nothing: ClickHouse's `receive_timeout`.
const SILENCE: Duration = Duration::from_secs(300);

/// Bytes of a long statement that are waited for at a time.
const READ_BYTES: usize = 1 << 20;
/// Time that a result under way has left when the gateway ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The session of one client.
pub(crate) struct Session<'s> {
    pub(crate) state: &'s Arc<State>,
    pub(super) id: u64,
    pub(crate) wire: Wire,
    pub(crate) client: Client,
    /// The addendum to the Hello, which comes in front of the first packet, whenever that is.
    pub(super) addendum: Option<Addendum>,
    /// Says whether everything is the backend's from now on: the database, roles or temporary tables are no
    /// longer those that a connection begins with, or SET said something that is not understood.
    pub(super) is_changed: bool,
    /// Settings that SET has said.
    pub(super) settings: Vec<(String, String)>,
    pub(super) between: RelayState,
    /// The replica on which the session over HTTP has begun.
    pub(super) http_session_is_at: Option<windrow_clickhouse::ReplicaId>,
    /// The insert before this one, with the results for it.
    pub(super) latest: Option<LatestQuery>,
    /// The id of the session over HTTP, where the connection is no session.
    pub(super) http_session: String,
    /// Says whether the statement that the backend answers has its data compressed.
    pub(super) is_compressed: bool,
    /// Says whether the backend answered last, and may not have come to its end.
    pub(super) is_forwarding: bool,
    /// Time from the last answer to the query at hand.
    pub(super) back_after: Option<Duration>,
    /// The moment at which the query before had its answer, for gateways of a cluster.
    pub(super) answered: Option<Instant>,
    /// The error that the query at hand was refused with, for its trace.
    refused: Option<Refusal>,
}

/// The connection can't go on.
#[derive(Debug)]
pub(super) struct Closed;

impl From<io::Error> for Closed {
    fn from(_: io::Error) -> Closed {
        Closed
    }
}

pub(crate) async fn serve(state: &Arc<State>, stream: Stream, id: u64, peer: &Peer, mut stop: watch::Receiver<bool>) {
    stream.keep_alive();
    let mut wire = Wire::new(stream, SILENCE);
    // Boxed, as below: an idle connection is to hold no more than it needs.
    let handshake = peer.permit.wait_for(Box::pin(shake_hands(state, peer, &mut wire)));
    let Some(Some(client)) = handshake.await else { return };
    let mut session = Session {
        state,
        id,
        wire,
        client,
        addendum: None,
        is_changed: false,
        settings: Vec::new(),
        between: RelayState::default(),
        http_session_is_at: None,
        latest: None,
        http_session: format!("windrow-native-{:032x}", fastrand::u128(..)),
        is_compressed: false,
        is_forwarding: false,
        back_after: None,
        answered: None,
        refused: None,
    };
    loop {
        let session_is_forwarding = session.is_forwarding;
        let next = tokio::select! {
            biased;
            next = session.next_packet() => next,
            _ = stopped(&mut stop, session_is_forwarding) => return,
        };
        let Ok(kind) = next else { return };
        if Box::pin(session.packet(kind)).await.is_err() || state.is_closing() {
            return;
        }
    }
}

/// Returns when the gateway ends; the backend's answer has a moment to come to its end.
async fn stopped(stop: &mut watch::Receiver<bool>, is_forwarding: bool) {
    // The sender goes with the server, which is the end as well.
    let _ = stop.wait_for(|stop| *stop).await;
    if is_forwarding {
        tokio::time::sleep(LAST_ANSWERS).await;
    }
}

impl<'s> Session<'s> {
    /// Waits for a packet. Meanwhile the backend's answer is passed to the client.
    async fn next_packet(&mut self) -> Result<u64, Closed> {
        let Session { wire, client, is_forwarding, between, .. } = self;
        if let Some(upstream) =
            client.upstream.as_mut().filter(|upstream| *is_forwarding && !upstream.wire.input.is_empty())
        {
            // Came behind an answer that was read to its end.
            wire.send(&std::mem::take(&mut upstream.wire.input)).await?;
        }
        if wire.input.is_empty() {
            let first = read_more(&mut wire.read, &mut wire.input, 1);
            match client.upstream.as_mut().filter(|_| *is_forwarding) {
                None => tokio::time::timeout(IDLE, first).await.map_err(|_| Closed)??,
                // A statement may run for as long as it likes.
                Some(upstream) => tokio::select! {
                    biased;
                    first = first => first?,
                    _ = between.down.run(&mut upstream.wire.read, &mut wire.write) => return Err(Closed),
                },
            }
        }
        if self.addendum.is_none() {
            let revision = self.client.revision;
            let addendum = self.wire.parse(0, |bytes| Addendum::read(bytes, revision)).await?;
            let (addendum, length) = match addendum {
                Ok(read) => read,
                Err(fault) => return self.misread(&fault).await,
            };
            self.wire.consume(length);
            if addendum.chunked.from_server {
                self.wire.write_chunks();
            }
            if addendum.chunked.from_client {
                if let Err(fault) = self.wire.read_chunks() {
                    return self.misread(&fault).await;
                }
            }
            self.addendum = Some(addendum);
        }
        match self.wire.parse(0, |bytes| Input::new(bytes).varint().map(|kind| (kind, 1))).await? {
            Ok((kind, _)) => Ok(kind),
            Err(fault) => self.misread(&fault).await,
        }
    }

    async fn packet(&mut self, kind: u64) -> Result<(), Closed> {
        match kind {
            client::QUERY => self.query().await,
            client::PING if !self.is_forwarding => {
                self.wire.consume(1);
                self.answer(false, |answer| answer.pong()).await
            }
            // There is nothing to cancel.
            client::CANCEL if !self.is_forwarding => {
                self.wire.consume(1);
                Ok(())
            }
            client::PING | client::CANCEL => {
                let packet = self.wire.input[..1].to_vec();
                self.wire.consume(1);
                self.upstream().await?.wire.send(&packet).await?;
                Ok(())
            }
            client::TABLES_STATUS_REQUEST => self.tables_status().await,
            // Of a statement that is the backend's: tables that go along with it, or rows that came behind an error.
            client::DATA | client::SCALAR if self.is_forwarding => self.pass_data().await,
            client::HELLO | client::DATA | client::SCALAR => self.refuse_packet(false, kind).await,
            _ if self.is_forwarding => self.splice().await,
            _ => self.refuse_packet(false, kind).await,
        }
    }

    /// Refuses a packet that has no place here. The connection ends: where the next packet begins can't be told.
    pub(super) async fn refuse_packet<T>(&mut self, is_compressed: bool, kind: u64) -> Result<T, Closed> {
        let (code, what) = match kind {
            client::KEEP_ALIVE => (ErrorCode::UNKNOWN_PACKET_FROM_CLIENT, "Unknown"),
            0..=client::LAST => (ErrorCode::UNEXPECTED_PACKET_FROM_CLIENT, "Unexpected"),
            _ => (ErrorCode::UNKNOWN_PACKET_FROM_CLIENT, "Unknown"),
        };
        let text = format!("{what} packet from client (number {kind})");
        self.refuse(is_compressed, &Refusal::statement(code, text)).await?;
        Err(Closed)
    }

    async fn query(&mut self) -> Result<(), Closed> {
        let arrived = Instant::now();
        if let Some(latest) = self.same_again() {
            let trace = self.trace(&latest.query, arrived);
            let origin = self.origin(arrived, trace.as_ref());
            origin.mark("accept");
            let repeated = self.repeat(latest, origin).await;
            self.end_trace(trace);
            return repeated;
        }
        let revision = self.client.revision;
        let limit = self.max_insert_bytes();
        let mut room = Room::default();
        let query = loop {
            match Query::read(&self.wire.input, revision) {
                Ok((query, length)) => break Some((query, length)),
                // Too long to be kept: whatever it is, it is the backend's.
                Err(Fault::Incomplete { at_least }) if at_least > limit => break None,
                Err(Fault::Incomplete { at_least }) => {
                    // Room for what comes, not for what is announced.
                    let next = at_least.min(self.wire.input.len() + READ_BYTES);
                    if !self.state.body_room.grow(&mut room, next).await {
                        self.refuse(false, &Refusal::no_room()).await?;
                        return Err(Closed);
                    }
                    self.wire.fill(next).await?;
                }
                Err(fault) => return self.misread(&fault).await,
            }
        };
        let Some((query, length)) = query else {
            self.state.metrics.forwarded(ForwardReason::TooLarge);
            return self.splice().await;
        };
        let trace = self.trace(&query, arrived);
        let origin = self.origin(arrived, trace.as_ref());
        let done = self.run(query, length, origin).await;
        self.end_trace(trace);
        done
    }

    fn end_trace(&mut self, trace: Option<RequestTrace>) {
        let refused = self.refused.take();
        self.answered = self.state.cluster.as_ref().map(|_| Instant::now());
        if let Some(trace) = trace {
            refused.into_iter().for_each(|refusal| refusal.tell(&trace));
            trace.end();
        }
    }

    /// Begins the trace of a query, if it is traced.
    fn trace(&self, query: &Query, arrived: Instant) -> Option<RequestTrace> {
        let tracer = self.state.options.tracer.as_ref()?;
        let given = query.trace.as_ref();
        let parent =
            given.and_then(|given| Parent::new(given.trace_id, given.span_id, given.flags, given.state.as_bytes()));
        let trace = tracer.begin(parent, arrived)?;
        // What is not gathered is passed on, and all connections here are users'.
        trace.name("forward");
        trace.is_of_user();
        Some(trace)
    }

    fn origin<'t>(&mut self, arrived: Instant, trace: Option<&'t RequestTrace>) -> Origin<'t> {
        self.back_after =
            self.state.cluster.as_ref().map(|_| self.answered.map_or(Duration::MAX, |answered| arrived - answered));
        Origin { connection_id: self.id, arrived, back_after: self.back_after, trace }
    }

    /// Runs a query whose packet has come.
    async fn run(&mut self, query: Query, length: usize, origin: Origin<'_>) -> Result<(), Closed> {
        origin.mark("accept");
        let is_whole = query.stage == windrow_clickhouse::native::STAGE_COMPLETE;
        match classify_without_end(&self.wire.input[query.text.clone()]) {
            // Of a server that runs a part of it here.
            Statement::Insert(_) if !is_whole => self.forward(&query, length, None, ForwardReason::Stage).await,
            Statement::Insert(statement) => self.insert(query, length, statement, origin).await,
            Statement::SystemFlushAsyncInsertQueue { tables } => self.flush_queue(&query, length, tables).await,
            Statement::Other(statement) => {
                self.forward(&query, length, Some(&statement), ForwardReason::of_statement(&statement)).await
            }
            Statement::Incomplete => self.forward(&query, length, None, ForwardReason::Unclear).await,
        }
    }

    /// Stores the inserts that have been gathered, before the backend says that its own are stored.
    async fn flush_queue(&mut self, query: &Query, length: usize, tables: Vec<TableName>) -> Result<(), Closed> {
        let flushed = self.context(query).flush_gathered(tables).await;
        match flushed {
            Ok(_) => self.forward(query, length, None, ForwardReason::OtherStatement).await,
            Err(refusal) => self.refuse_with_data(query, length, &refusal).await,
        }
    }

    async fn tables_status(&mut self) -> Result<(), Closed> {
        if let Err(error) = self.upstream().await {
            self.refuse(false, &error.refusal()).await?;
            return Err(Closed);
        }
        // Read to its end, so that what comes behind it is looked at.
        let read = |bytes: &[u8]| {
            let mut input = Input::new(bytes);
            input.varint()?;
            for _ in 0..input.count(1000, "the list of tables")? {
                input.bytes(1 << 10, "the name of a database")?;
                input.bytes(1 << 10, "the name of a table")?;
            }
            Ok(((), input.at()))
        };
        let length = match self.wire.parse(0, read).await? {
            Ok(((), length)) => length,
            Err(fault) => return self.misread(&fault).await,
        };
        self.is_forwarding = true;
        let upstream = self.client.upstream.as_mut().ok_or(Closed)?;
        upstream.wire.send(&self.wire.input[..length]).await?;
        self.wire.consume(length);
        Ok(())
    }

    /// Passes on a table beside a statement of the backend's, or the empty block behind the last of them.
    async fn pass_data(&mut self) -> Result<(), Closed> {
        let max_bytes = self.max_insert_bytes();
        let mut reader = DataReader::new(self.client.revision, self.is_compressed, max_bytes).discarding();
        let Session { wire, client, .. } = self;
        let upstream = client.upstream.as_mut().ok_or(Closed)?;
        loop {
            let taken = match reader.read(&wire.input, &mut Vec::new()) {
                Ok(taken) => taken,
                Err(_) => return self.splice().await,
            };
            upstream.wire.send(&wire.input[..taken.bytes]).await?;
            wire.consume(taken.bytes);
            if taken.end.is_some() {
                return Ok(());
            }
            wire.fill(wire.input.len() + 1).await?;
        }
    }

    /// Returns the backend's side of this connection, which is opened if it has to be.
    pub(super) async fn upstream(&mut self) -> Result<&mut Upstream, NotConnected> {
        self.upstream_for(Purpose::Statement).await
    }

    /// Returns the same, but at the replica that statements of this purpose go to. A session in which
    /// something was set or made stays where it is.
    pub(super) async fn upstream_for(&mut self, purpose: Purpose) -> Result<&mut Upstream, NotConnected> {
        // One that the backend has closed meanwhile is made anew, unless something of the session was in it.
        let is_gone = |upstream: &mut Upstream| upstream.wire.has_ended();
        let is_as_begun = !self.is_changed && self.settings.is_empty();
        if is_as_begun && !self.is_forwarding && self.client.upstream.as_mut().is_some_and(is_gone) {
            self.client.upstream = None;
            self.between = RelayState::default();
        }
        if is_as_begun {
            self.move_upstream(purpose).await?;
        }
        if self.client.upstream.is_none() {
            let Some(clickhouse) = self.state.backend.clickhouse() else {
                return Err(NotConnected::Unreachable("there is none".to_owned()));
            };
            let addendum = self.addendum.clone().unwrap_or_default();
            let key = self.user_key(&Query::default());
            self.client.upstream = Some(upstream_of(clickhouse, &self.client, &key, &addendum, purpose).await?);
        }
        self.client.upstream.as_mut().ok_or_else(|| NotConnected::Unreachable("there is none".to_owned()))
    }

    /// Connects to the replica that is asked for this purpose, if it is another one. The client has sent its
    /// next statement, so it has read the answer to the one before.
    async fn move_upstream(&mut self, purpose: Purpose) -> Result<(), NotConnected> {
        let (Some(upstream), Some(clickhouse)) = (&self.client.upstream, self.state.backend.clickhouse()) else {
            return Ok(());
        };
        let Some(better) =
            clickhouse.native()?.better_than(upstream, purpose).filter(|_| upstream.wire.input.is_empty())
        else {
            return Ok(());
        };
        let addendum = self.addendum.clone().unwrap_or_default();
        let key = self.user_key(&Query::default());
        if let Ok(moved) = upstream_of(clickhouse, &self.client, &key, &addendum, purpose).await {
            self.client.upstream = Some(moved);
            self.between = RelayState::default();
        }
        if let Some(upstream) = &mut self.client.upstream {
            upstream.tried = Some(better);
        }
        Ok(())
    }

    /// Passes everything on between the client and the backend. From here on, nothing of this connection is
    /// looked into.
    pub(super) async fn splice(&mut self) -> Result<(), Closed> {
        if let Err(error) = self.upstream().await {
            self.refuse(false, &error.refusal()).await?;
            return Err(Closed);
        }
        self.wire.flush().await?;
        let Session { wire, client, between, .. } = self;
        let upstream = client.upstream.as_mut().ok_or(Closed)?;
        let first = std::mem::take(&mut wire.input);
        if !first.is_empty() {
            let sending = async {
                // What came before it goes before it.
                upstream.wire.write.send(&first, SILENCE).await
            };
            tokio::select! {
                sent = sending => sent?,
                _ = between.down.run(&mut upstream.wire.read, &mut wire.write) => return Err(Closed),
            }
        }
        splice(wire, &mut upstream.wire, between).await;
        Err(Closed)
    }

    /// Returns the statement's quota key, or else the connection's.
    pub(super) fn quota_key<'q>(&'q self, query: &'q Query) -> &'q str {
        let of_connection = || self.addendum.as_ref().map_or("", |addendum| addendum.quota_key.as_str());
        if query.quota_key.is_empty() {
            of_connection()
        } else {
            &query.quota_key
        }
    }

    pub(super) fn user_key(&self, query: &Query) -> UserKey {
        let hello = &self.client.hello;
        UserKey {
            credentials: self.client.credentials.clone(),
            roles: Vec::new(),
            quota_key: self.quota_key(query).to_owned(),
            database: Some(hello.database.clone()).filter(|database| !database.is_empty()),
        }
    }

    /// Returns a statement's settings and parameters. The settings from SET stand in front of them.
    fn options<'q>(&self, query: &'q Query) -> StatementOptions<'q> {
        let mut options = StatementOptions::default();
        for (name, value) in &self.settings {
            if query.settings.iter().all(|setting| setting.name != *name) {
                options.set(name.clone(), value.clone());
            }
        }
        for setting in &query.settings {
            let is_custom = setting.flags & windrow_clickhouse::native::FLAG_CUSTOM != 0;
            match unquote_string(&setting.value).filter(|_| is_custom) {
                Some(value) => options.set(&setting.name, value),
                None => options.set(&setting.name, &setting.value),
            }
        }
        for parameter in &query.parameters {
            match unquote_string(&parameter.value) {
                Some(value) => options.set_query_parameter(&parameter.name, value),
                None => options.set_query_parameter(&parameter.name, &parameter.value),
            }
        }
        options
    }

    pub(super) fn context<'q>(&self, query: &'q Query) -> StatementContext<'q>
    where
        's: 'q,
    {
        StatementContext {
            state: self.state,
            user_key: self.user_key(query),
            names_user: true,
            options: self.options(query),
            query_id: Some(query.id.as_str()).filter(|id| !id.is_empty()),
            came_by_hop: false,
            stays_here: false,
        }
    }

    /// Queues an answer, which is sent with the next one.
    pub(super) fn queue(&mut self, is_compressed: bool, write: impl FnOnce(&mut Answer<'_>)) {
        let mut out = Vec::new();
        write(&mut Answer { out: &mut out, revision: self.client.revision, is_compressed });
        self.wire.queue(&out);
    }

    pub(super) async fn answer(
        &mut self,
        is_compressed: bool,
        write: impl FnOnce(&mut Answer<'_>),
    ) -> Result<(), Closed> {
        let mut out = Vec::new();
        write(&mut Answer { out: &mut out, revision: self.client.revision, is_compressed });
        self.wire.send(&out).await?;
        Ok(())
    }

    pub(super) async fn refuse(&mut self, is_compressed: bool, refusal: &Refusal) -> Result<(), Closed> {
        self.state.metrics.refused(refusal);
        self.refused = self.state.options.tracer.is_some().then(|| refusal.clone());
        self.answer(is_compressed, |answer| exception(answer, refusal)).await
    }

    /// Refuses a statement, and takes what the client has sent behind it.
    pub(super) async fn refuse_with_data(
        &mut self,
        query: &Query,
        length: usize,
        refusal: &Refusal,
    ) -> Result<(), Closed> {
        let beside = self.tables_beside(query, length).await?;
        if let ExternalTables::Cancelled = beside {
            return Ok(());
        }
        self.refuse(query.is_compressed, refusal).await?;
        match beside {
            ExternalTables::Whole { end, .. } => {
                self.wire.consume(end);
                Ok(())
            }
            ExternalTables::Unreadable | ExternalTables::Cancelled => Err(Closed),
        }
    }

    pub(super) async fn misread<T>(&mut self, fault: &Fault) -> Result<T, Closed> {
        self.refuse(false, &misread(fault)).await?;
        Err(Closed)
    }
}

/// Classifies a statement. An INSERT whose rows come as blocks may end in a semicolon.
fn classify_without_end(text: &[u8]) -> Statement {
    let statement = classify(text);
    match (&statement, text.trim_ascii_end().strip_suffix(b";")) {
        (Statement::Other(other), Some(before)) if other.insert_form.is_some() => match classify(before) {
            Statement::Insert(insert) if insert.data_start == before.len() => Statement::Insert(insert),
            _ => statement,
        },
        _ => statement,
    }
}

impl From<NotConnected> for Closed {
    fn from(_: NotConnected) -> Closed {
        Closed
    }
}
