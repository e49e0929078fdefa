//! The steps that settle everything about an insert before its payload is looked at.

use std::sync::Arc;

use windrow_columns::{DataType, Format, PassthroughFormat, ReadPlans};
use windrow_engine::{
    sink::{Destination, Form},
    AckLevel, DataKind, InsertKind,
};
use windrow_settings::Settings;
use windrow_sql::{InsertStatement, TableName};

use super::backend_reader::BackendReader;
use super::dedup_plan::DedupPlan;
use super::dedup_settings::DefaultProfile;
use super::logged_query::logged_query;
use super::not_taken::not_admitted;
use super::own_settings::{OwnSettings, RequestedSettings, TableSays};
use super::prepare_backend_reader::{may_be_asked_for, BackendReaderRequest};
use super::prepare_passthrough::PassthroughRequest;
use super::prepared::Prepared;
use super::readers::{ParsingReader, PassthroughReader, Readers};
use super::settings_by_role::SettingsByRole;
use crate::admission::{
    Account, Admission, Cutting, Grounds, KeptGrounds, Moment, NotAdmitted, Probe, Sharding, TableKey, TableSchema,
    Target, UserContext, UserKey, Window,
};
use crate::clickhouse_settings::unknown_setting;
use crate::forward_reason::ForwardReason;

/// An insert's request, without its payload.
#[derive(Clone)]
pub(crate) struct InsertRequest {
    pub(crate) sender: UserKey,
    /// Settings from beside the statement, then from the statement; the last of a name wins.
    pub(crate) settings: Vec<(String, String)>,
    /// Settings of gathering that the protocol itself has, as in a [`Candidate`](super::Candidate).
    pub(crate) gathering: Option<RequestedSettings>,
    pub(crate) statement: InsertStatement,
    pub(crate) data_kind: DataKind,
    /// Types that columns are sent in, as in a [`Candidate`](super::Candidate).
    pub(crate) sent_as: Vec<DataType>,
    pub(crate) table: TableName,
}

/// Resources of the gateway that an insert is prepared with.
#[derive(Clone, Copy)]
pub(crate) struct PrepareWith<'a> {
    pub(crate) settings: &'a Settings,
    /// The number of reloads before the settings were read.
    pub(crate) reloads: u64,
    pub(crate) plans: &'a ReadPlans,
    /// Kept answers that the insert goes by while the backend can't be asked.
    pub(crate) kept: Option<&'a KeptGrounds>,
}

impl InsertRequest {
    /// Says whether the request itself says which shard its rows are for.
    fn names_shard(&self, user: &UserContext) -> bool {
        let mut all = user.changed_settings.iter().chain(&self.settings);
        all.rfind(|(name, _)| name == "insert_shard_id").is_some_and(|(_, value)| value != "0")
    }
}

/// Settles everything about an insert that doesn't depend on its payload, with no answer from before `since`.
pub(crate) async fn prepare(
    admission: &Admission,
    with: PrepareWith<'_>,
    request: &InsertRequest,
    since: Moment,
) -> Result<Prepared, NotAdmitted> {
    let alone_here = !admission.backend().takes_requests();
    let preparation = Preparation { admission, with, request, since, alone_here };
    let mut prepared = preparation.prepare(true).await;
    if matches!(prepared, Ok(None)) {
        // The rows go through the Distributed table.
        prepared = preparation.prepare(false).await;
    }
    match prepared {
        // There is nobody to forward it to.
        Err(NotAdmitted::Forward(reason)) if alone_here => Err(preparation.refusal(reason).await),
        Err(error) => Err(error),
        Ok(prepared) => prepared.ok_or(NotAdmitted::Forward(ForwardReason::ShardingKey)),
    }
}

/// Context of all steps that prepare an insert.
struct Preparation<'a> {
    admission: &'a Admission,
    with: PrepareWith<'a>,
    request: &'a InsertRequest,
    since: Moment,
    /// Says whether the backend takes no requests: then an insert that is not gathered is refused.
    alone_here: bool,
}

/// The format of an insert's payload, and who may read it.
struct PayloadFormat<'a> {
    name: &'a str,
    /// Name of the format in the log of queries.
    logged: &'a str,
    parsed: Option<&'static Format>,
    passthrough: Option<&'static PassthroughFormat>,
    /// Says whether ClickHouse may be asked to read payloads that can't be read here.
    may_ask: bool,
}

/// Table that an insert writes to.
struct TargetTable {
    key: TableKey,
    /// Schema of the shards' tables, where rows are cut.
    schema: Arc<TableSchema>,
    /// The way rows are cut by shards.
    sharding: Option<Sharding>,
    /// Version of the shards, for a table whose rows may be cut at other times.
    topology: Option<u64>,
    /// Deduplication window of the tables that the rows end up in.
    window: Window,
}

/// Terms that an insert is gathered on, by its own settings and its table's.
struct GatheringTerms {
    own: OwnSettings,
    /// Says whether the insert is stored before it is acknowledged, though no gathering was asked for.
    at_once: bool,
    dedup: Option<DedupPlan>,
    /// Keys of the parts, for a table whose rows are not cut now, but were, or will be.
    dedup_by_parts: Option<DedupPlan>,
    /// Says whether the backend will recognise a batch that comes again.
    deduplicates: bool,
}

impl<'a> Preparation<'a> {
    /// Runs all steps in their order. With `by_shards`, the result is `None` where the table's rows are cut by shards,
    /// and those of this insert can't be.
    async fn prepare(&self, by_shards: bool) -> Result<Option<Prepared>, NotAdmitted> {
        let PrepareWith { reloads, kept, .. } = self.with;
        let mut settings = self.settings()?;
        let asked_at = Moment::now();
        let account = self.account().await?;
        let user = account.context_in(self.request.sender.database.as_deref());
        if settings.asks_for_serial_quorum(&user) {
            return Err(NotAdmitted::Forward(ForwardReason::Setting));
        }
        let format = self.format(&settings, &user)?;
        let table = self.table(&user, by_shards).await?;
        let terms = self.terms(&settings, &user, &table)?;
        self.complete_settings(&mut settings, &user, &table, &terms);
        let targets = self.targets(&settings, &user, &table)?;
        let destination = self.destination(&settings, &user, &table, &targets, terms.deduplicates);
        let kind = InsertKind {
            query: logged_query(&table.key, &targets, &self.request.statement, format.logged),
            format: format.name.to_owned(),
            data_kind: self.request.data_kind,
            limits: terms.own.limits,
        };
        settings.ask_for_one_block(&user);
        let readers = self.readers(
            &mut settings,
            &ReadersOf {
                format: &format,
                user: &user,
                table: &table,
                dedup: terms.dedup.as_ref(),
                targets: &targets,
                destination: &destination,
                kind: &kind,
            },
        );
        if table.sharding.as_ref().is_some_and(|sharding| !readers.can_cut(sharding)) {
            return Ok(None);
        }
        // Where the table itself lies in the request's database, that one is there.
        let database = self.request.sender.database.as_deref().filter(|database| *database != table.key.database);
        let asker = Asker {
            admission: self.admission,
            account: &account,
            schema: &table.schema,
            other_settings: &settings.others,
            database,
            is_known: kept.is_some(),
        };
        let mut readers = asker.admitted_readers(readers).await?;
        if let Some(sharding) = &table.sharding {
            let probe =
                Probe { destination: readers.any_destination(), other_settings: &settings.others, database: None };
            if !sharding.admits(&probe, &self.request.sender, self.since).await? {
                return Ok(None);
            }
        }
        // Not before: a table is changed for those only who may insert into it.
        if !self.settle_windows(&table, terms.deduplicates).await && terms.deduplicates {
            readers.no_repeat_is_recognised();
        }
        // Nothing else tells whether that database is there still, or what roles may do that the request names.
        let is_limited = database.is_some() || account.grants.is_none() || table.may_be_cut_at_times();
        let grounds = Grounds {
            account: account.clone(),
            key: self.request.sender.clone(),
            table: table.key.clone(),
            schema: table.schema.clone(),
            asked_at: is_limited.then_some(asked_at),
            reloads,
            topology: table.topology,
            kept: kept.map(|kept| kept.since),
        };
        let ack = if terms.at_once { AckLevel::Stored } else { terms.own.ack };
        let mut prepared = Prepared::new(readers, ack, terms.own.wait_timeout, kind, grounds);
        (prepared.at_once, prepared.dedup, prepared.dedup_by_parts) =
            (terms.at_once, terms.dedup, terms.dedup_by_parts);
        prepared.answer_form = settings.answer_form(&user);
        prepared.is_made_anew = self.admission.is_made_anew(&table.key, &table.schema, table.sharding.as_ref());
        prepared.sharding = table.sharding;
        Ok(Some(prepared))
    }

    fn settings(&self) -> Result<SettingsByRole<'a>, NotAdmitted> {
        if self.alone_here {
            let names = self.request.settings.iter().map(|(name, _)| name.as_str());
            if let Some(refusal) = unknown_setting(names) {
                return Err(NotAdmitted::refused(refusal));
            }
        }
        let mut settings = SettingsByRole::new(&self.request.settings)?;
        settings.is_values_clause = self.request.statement.is_values_clause;
        Ok(settings)
    }

    async fn account(&self) -> Result<Arc<Account>, NotAdmitted> {
        match self.with.kept {
            Some(kept) => Ok(kept.account.clone()),
            None => self.admission.account_at(&self.request.sender, self.since).await,
        }
    }

    fn format<'f>(
        &'f self,
        settings: &SettingsByRole<'f>,
        user: &UserContext,
    ) -> Result<PayloadFormat<'f>, NotAdmitted> {
        let statement = &self.request.statement;
        let (name, logged) = match self.request.data_kind {
            DataKind::Parsed => settings.query.format(statement, user).map(|format| (format, format))?,
            // Whatever format is named: blocks are blocks.
            DataKind::Preprocessed => ("Native", statement.format.as_str()),
        };
        let parsed = Format::named(name).or_else(|| interchange_format(name));
        let passthrough = PassthroughFormat::named(name);
        let may_ask = !self.alone_here && may_be_asked_for(name, parsed);
        if parsed.is_none() && passthrough.is_none() && !may_ask {
            return Err(NotAdmitted::Forward(ForwardReason::Format));
        }
        Ok(PayloadFormat { name, logged, parsed, passthrough, may_ask })
    }

    async fn table(&self, user: &UserContext, by_shards: bool) -> Result<TargetTable, NotAdmitted> {
        let database = self.request.table.database.as_ref().unwrap_or(&user.database);
        let database = self.admission.backend().canonical_database(database);
        let of_duckdb = self.alone_here && database == "pg_catalog";
        if database == "system" || database.eq_ignore_ascii_case("information_schema") || of_duckdb {
            return Err(NotAdmitted::Forward(ForwardReason::SystemTable));
        }
        let key = TableKey { database, table: self.request.table.table.clone() };
        let schema = match self.with.kept {
            Some(kept) => kept.schema.clone(),
            None => self.admission.table_at(&key, &self.request.sender, self.since).await?,
        };
        let topology = self.admission.topology_of(&schema);
        let cutting = match topology.is_some() && !self.request.names_shard(user) {
            true => self.admission.cutting(&key, &schema, &self.request.sender, &user.timezone, self.since).await?,
            false => Cutting::NONE,
        };
        let (sharding, window) = match cutting {
            Cutting::ByShards(sharding) => {
                let window = sharding.schema.window;
                (Some(sharding).filter(|_| by_shards), window)
            }
            Cutting::None { window } => (None, window.unwrap_or(schema.window)),
        };
        let schema = sharding.as_ref().map_or(schema, |sharding| sharding.schema.clone());
        Ok(TargetTable { key, schema, sharding, topology, window })
    }

    fn terms(
        &self,
        settings: &SettingsByRole<'_>,
        user: &UserContext,
        table: &TargetTable,
    ) -> Result<GatheringTerms, NotAdmitted> {
        let TargetTable { key, schema, .. } = table;
        let rules = self.with.settings.table_rules(&key.database, &key.table, &self.request.sender.credentials.user);
        let says =
            TableSays { async_insert: schema.async_insert, deduplicates: matches!(schema.window, Window::Owners(_)) };
        let own = settings.requested(user, self.request.gathering.as_ref())?.resolve(
            &rules,
            &self.with.settings.gather,
            says,
        );
        let wants = |window| settings.dedup.wants(window, user, DefaultProfile::of(self.with.settings));
        let plan = || DedupPlan::new(key, schema, table.window, &user.timezone, self.admission.most_parts(schema));
        let dedup = wants(schema.window).then(plan);
        let dedup_by_parts = (table.may_be_cut_at_times() && wants(table.window)).then(plan);
        // One that names itself goes the way of its repeats, of which some may be asynchronous.
        let names_itself = dedup.is_some() && settings.dedup.token().is_some();
        let at_once = !own.async_insert && (self.alone_here || names_itself);
        if !own.async_insert && !at_once {
            return Err(NotAdmitted::Forward(ForwardReason::AsyncInsertOff));
        }
        if !schema.gatherable {
            return Err(NotAdmitted::Forward(ForwardReason::Engine));
        }
        if dedup.as_ref().is_some_and(|dedup| !dedup.tells_partitions()) {
            return Err(NotAdmitted::Forward(ForwardReason::Deduplication));
        }
        let kept = self.with.kept;
        let deduplicates = kept.map_or_else(|| self.admission.will_recognise_batches(schema), |kept| kept.deduplicates);
        Ok(GatheringTerms { own, at_once, dedup, dedup_by_parts, deduplicates })
    }

    /// Adds what the flush needs to the settings that the insert has.
    fn complete_settings(
        &self,
        settings: &mut SettingsByRole<'_>,
        user: &UserContext,
        table: &TargetTable,
        terms: &GatheringTerms,
    ) {
        let schema = &table.schema;
        if !self.alone_here && (terms.deduplicates || schema.has_views) {
            // The profile may have it off, and the batch's own token is all that a repeat is known by.
            settings.let_it_be_recognised(user, schema.has_views);
        }
        if schema.async_insert {
            // The backend may gather the batch once more, and is to answer when it is stored.
            settings.shape.push(("wait_for_async_insert", "1"));
            settings.shape.sort_unstable();
        }
    }

    /// Returns the columns that the insert writes.
    fn targets(
        &self,
        settings: &SettingsByRole<'_>,
        user: &UserContext,
        table: &TargetTable,
    ) -> Result<Vec<Target>, NotAdmitted> {
        let (statement, sent_as, schema) = (&self.request.statement, &self.request.sent_as, &table.schema);
        let mut targets = schema.target_columns(&table.key.table, statement.columns.as_deref(), &statement.except)?;
        // What Windrow makes itself, of OTLP for instance, is nobody else's request.
        let is_a_clients = !self.alone_here && sent_as.is_empty();
        if is_a_clients && schema.reads_request(&targets) {
            return Err(NotAdmitted::Forward(ForwardReason::Function));
        }
        // Of two ways in, ClickHouse has a column's zone in one and the session's in the other when it computes with
        // times.
        if is_a_clients && schema.computes && schema.has_local_times() && settings.is_in_another_zone(user) {
            return Err(NotAdmitted::Forward(ForwardReason::Setting));
        }
        targets.iter_mut().zip(sent_as).for_each(|(target, data_type)| target.is_sent_as(data_type));
        Ok(targets)
    }

    /// Makes the destination without types and settings: each reader has its own.
    fn destination(
        &self,
        settings: &SettingsByRole<'_>,
        user: &UserContext,
        table: &TargetTable,
        targets: &[Target],
        deduplicates: bool,
    ) -> Destination {
        let (request, schema) = (self.request, &table.schema);
        Destination {
            database: table.key.database.clone(),
            table: table.key.table.clone(),
            columns: targets.iter().map(|target| target.name.clone()).collect(),
            form: Form::Native { types: Vec::new() },
            credentials: request.sender.credentials.clone(),
            own_account: false,
            roles: request.sender.roles.clone(),
            quota_key: request.sender.quota_key.clone(),
            shard: None,
            settings: Vec::new(),
            deduplicates,
            has_views: schema.has_views,
            hands_on: schema.hands_on,
            is_replicated: schema.is_replicated,
            partitioning: settings.partitioning(schema, user),
        }
    }

    /// Lists the readers that may take such payloads. The backend has not been asked about them yet.
    fn readers(&self, settings: &mut SettingsByRole<'_>, of: &ReadersOf<'_>) -> PossibleReaders {
        let ReadersOf { format, user, table, dedup, targets, destination, kind } = *of;
        let computes = table.schema.computes;
        let plans = self.with.plans;
        let mut parsing = settings.parsing_reader(format.parsed, targets, user, destination, computes, plans);
        if let (Ok(parsing), true) = (&mut parsing, self.alone_here) {
            parsing.take_all();
        }
        let is_known_by_token = |dedup: &DedupPlan| dedup.takes_texts() && settings.dedup.token().is_some();
        let takes_unread_rows = dedup.is_none_or(is_known_by_token);
        let may_pass_through = !self.alone_here && table.sharding.is_none() && takes_unread_rows;
        let passthrough = format.passthrough.filter(|_| may_pass_through).and_then(|format| {
            let formatting = if computes { settings.formatting.as_slice() } else { &[] };
            let not_parsed = parsing.as_ref().err().copied();
            PassthroughRequest { format, targets, user, settings: &settings.shape, formatting, kind, not_parsed }
                .reader(destination)
                .map(Box::new)
        });
        let asking = format.may_ask.then(|| BackendReaderRequest {
            format_name: format.name,
            targets,
            user,
            settings: &settings.shape,
            formatting: &settings.formatting,
            computes,
            database: self.request.sender.database.as_deref(),
            kind,
            parsing: parsing.as_ref().map_err(|reason| *reason),
            takes_unread_rows,
        });
        let passthrough = passthrough.or_else(|| asking.as_ref()?.blocks(destination).map(Box::new));
        let backend = asking.and_then(|asking| asking.reader(destination)).map(Box::new);
        PossibleReaders { parsing, passthrough, backend }
    }

    /// Sets the deduplication windows of the tables. Returns false where no repeat will be recognised there.
    async fn settle_windows(&self, table: &TargetTable, deduplicates: bool) -> bool {
        match &table.sharding {
            Some(sharding) => sharding.settle_windows().await,
            // It has those that it had.
            None if self.with.kept.is_some() => deduplicates,
            None => self.admission.give_windows(&table.key, &table.schema).await.is_ok(),
        }
    }

    /// Makes the refusal of an insert that nobody but the gateway could take.
    async fn refusal(&self, reason: ForwardReason) -> NotAdmitted {
        let database = self.request.table.database.as_ref().or(self.request.sender.database.as_ref());
        let key = TableKey {
            database: self.admission.backend().canonical_database(database.map_or("default", String::as_str)),
            table: self.request.table.table.clone(),
        };
        let schema = self.admission.table(&key, &self.request.sender).await.ok();
        NotAdmitted::Refused(Arc::new(not_admitted(reason, self.request, schema.as_deref())))
    }
}

impl TargetTable {
    /// Says whether rows that are not cut by shards now may have been cut before, or may be later.
    fn may_be_cut_at_times(&self) -> bool {
        self.sharding.is_none() && self.topology.is_some()
    }
}

/// Parameters of the readers of an insert's payload.
struct ReadersOf<'a> {
    format: &'a PayloadFormat<'a>,
    user: &'a UserContext,
    table: &'a TargetTable,
    dedup: Option<&'a DedupPlan>,
    targets: &'a [Target],
    destination: &'a Destination,
    kind: &'a InsertKind,
}

/// Readers that the backend has not been asked about yet.
struct PossibleReaders {
    parsing: Result<ParsingReader, ForwardReason>,
    passthrough: Option<Box<PassthroughReader>>,
    backend: Option<Box<BackendReader>>,
}

impl PossibleReaders {
    /// Says whether rows are read into the values that they are cut by.
    fn can_cut(&self, sharding: &Sharding) -> bool {
        let Ok(ParsingReader { destination, .. }) = &self.parsing else { return false };
        let Form::Native { types } = &destination.form else { return false };
        sharding.understands(&destination.columns, types)
    }
}

/// Common part of the questions that ask whether a statement's rows may be inserted.
struct Asker<'a> {
    admission: &'a Admission,
    account: &'a Account,
    schema: &'a TableSchema,
    other_settings: &'a [(&'a str, &'a str)],
    database: Option<&'a str>,
    /// Says whether the questions were answered in an earlier run, and the backend can't be asked now.
    is_known: bool,
}

impl Asker<'_> {
    async fn ask(&self, destination: Option<&Destination>) -> Result<(), NotAdmitted> {
        let Some(destination) = destination.filter(|_| !self.is_known) else { return Ok(()) };
        let probe = Probe { destination, other_settings: self.other_settings, database: self.database };
        self.admission.probe(probe, self.account, self.schema).await
    }

    /// Asks the backend about all readers at once: it may refuse what only one of them needs.
    async fn admitted_readers(&self, readers: PossibleReaders) -> Result<Readers, NotAdmitted> {
        let PossibleReaders { parsing, passthrough, backend } = readers;
        let parsing_destination = parsing.as_ref().ok().map(|parsing| &*parsing.destination);
        let passthrough_destination = passthrough.as_ref().map(|passthrough| &*passthrough.destination);
        // Rows have the same destination as those that are parsed here.
        let backend_destination = backend.as_ref().filter(|_| parsing.is_err()).map(|backend| &*backend.destination);
        let (parsing_answer, passthrough_answer, backend_answer) = tokio::join!(
            self.ask(parsing_destination),
            self.ask(passthrough_destination),
            self.ask(backend_destination)
        );
        match (parsing, passthrough, backend) {
            (Ok(parsing), passthrough, backend) => {
                parsing_answer?;
                Ok(Readers {
                    parsing: Some(parsing),
                    passthrough: passthrough.filter(|_| passthrough_answer.is_ok()),
                    backend,
                })
            }
            (Err(_), Some(passthrough), backend) => {
                passthrough_answer?;
                Ok(Readers {
                    parsing: None,
                    passthrough: Some(passthrough),
                    backend: backend.filter(|_| backend_answer.is_ok()),
                })
            }
            (Err(_), None, Some(backend)) => {
                backend_answer?;
                Ok(Readers { parsing: None, passthrough: None, backend: Some(backend) })
            }
            (Err(reason), None, None) => Err(NotAdmitted::Forward(reason)),
        }
    }
}

/// Returns the ack level that the insert would likely have, for an account and a table that are not known.
pub(super) fn likely_ack(request: &InsertRequest, settings: &Settings) -> AckLevel {
    let database =
        request.table.database.as_ref().or(request.sender.database.as_ref()).map_or("default", String::as_str);
    let rules = settings.table_rules(database, &request.table.table, &request.sender.credentials.user);
    let requested = SettingsByRole::new(&request.settings)
        .and_then(|by| by.requested(&UserContext::default(), request.gathering.as_ref()));
    let Ok(requested) = requested else { return AckLevel::Stored };
    let table = TableSays { async_insert: false, deduplicates: false };
    let own = requested.resolve(&rules, &settings.gather, table);
    match own.async_insert {
        true => own.ack,
        false => AckLevel::Stored,
    }
}

/// Finds a format that is read by a library: Avro, Arrow, Parquet, Protobuf.
#[cfg(feature = "formats")]
fn interchange_format(name: &str) -> Option<&'static Format> {
    windrow_interchange::format(name)
}

#[cfg(not(feature = "formats"))]
fn interchange_format(_: &str) -> Option<&'static Format> {
    None
}
