use std::sync::Arc;

use windrow_clickhouse::Credentials;
use windrow_columns::{ColumnSpec, DataType, Format, PassthroughFormat, ReadPlans, ReadSettings, SettingEffect};
use windrow_engine::{
    sink::{Destination, Form, Partitioning},
    AckLevel, DataKind, InsertKind,
};
use windrow_settings::Settings;
use windrow_sql::{InsertStatement, TableName};

use super::answer_form::AnswerForm;
use super::backend_reader::BackendReader;
use super::dedup_plan::DedupPlan;
use super::dedup_settings::{recognised, DedupSettings, DefaultProfile, THROUGH_VIEWS};
use super::logged_query::logged_query;
use super::not_taken::not_admitted;
use super::own_settings::{RequestedSettings, TableSays};
use super::prepare_backend_reader::{may_be_asked_for, BackendReaderRequest};
use super::prepare_passthrough::PassthroughRequest;
use super::prepared::Prepared;
use super::query_settings::QuerySettings;
use super::readers::{ParsingReader, PassthroughReader, Readers};
use super::role::{is_surely_taken, role, Role};
use crate::admission::{
    refuse_casts, Account, Admission, Cutting, Grounds, KeptGrounds, Moment, NotAdmitted, Probe, TableKey, TableSchema,
    Target, UserContext, UserKey, Window,
};
use crate::clickhouse_settings::unknown_setting;
use crate::forward_reason::ForwardReason;

/// An insert's request, without its payload.
#[derive(Clone)]
pub(crate) struct InsertRequest {
    pub(crate) credentials: Credentials,
    pub(crate) roles: Vec<String>,
    pub(crate) quota_key: String,
    pub(crate) database: Option<String>,
    /// From the URL, then from the statement: the last of a name wins.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) statement: InsertStatement,
    pub(crate) data_kind: DataKind,
    /// As in a [`Candidate`](super::Candidate).
    pub(crate) sent_as: Vec<DataType>,
    pub(crate) table: TableName,
}

/// What an insert is prepared with, on this side.
#[derive(Clone, Copy)]
pub(crate) struct PrepareWith<'a> {
    pub(crate) settings: &'a Settings,
    /// So many reloads had been when the settings were read.
    pub(crate) reloads: u64,
    pub(crate) plans: &'a ReadPlans,
    /// What it goes by while nobody can be asked, as far as it was kept.
    pub(crate) kept: Option<&'a KeptGrounds>,
}

/// Settles everything about an insert that doesn't depend on its payload, with no answer from before `since`.
pub(crate) async fn prepare(
    admission: &Admission,
    with: PrepareWith<'_>,
    request: &InsertRequest,
    since: Moment,
) -> Result<Prepared, NotAdmitted> {
    let prepared = match prepare_gathered(admission, with, request, since, true).await {
        // The rows go through the Distributed table.
        Err(Unprepared::ByShards) => prepare_gathered(admission, with, request, since, false).await,
        prepared => prepared,
    };
    match prepared.map_err(NotAdmitted::from) {
        // There is nobody to forward it to.
        Err(NotAdmitted::Forward(reason)) if !admission.backend().takes_requests() => {
            let database = request.table.database.as_ref().or(request.database.as_ref());
            let key = TableKey {
                database: admission.backend().canonical_database(database.map_or("default", String::as_str)),
                table: request.table.table.clone(),
            };
            let schema = admission.table(&key, &request.user_key()).await.ok();
            Err(NotAdmitted::Refused(Arc::new(not_admitted(reason, request, schema.as_deref()))))
        }
        result => result,
    }
}

/// When the insert would be acknowledged, as far as that can be told of an account and a table that nobody knows yet.
pub(super) fn likely_ack(request: &InsertRequest, settings: &Settings) -> AckLevel {
    let database = request.table.database.as_ref().or(request.database.as_ref()).map_or("default", String::as_str);
    let rules = settings.table_rules(database, &request.table.table, &request.credentials.user);
    let requested = SettingsByRole::new(&request.settings).and_then(|by| by.requested(&UserContext::default()));
    let Ok(requested) = requested else { return AckLevel::Stored };
    let table = TableSays { async_insert: false, deduplicates: false };
    let own = requested.resolve(&rules, &settings.gather, table);
    match own.async_insert {
        true => own.ack,
        false => AckLevel::Stored,
    }
}

enum Unprepared {
    NotAdmitted(NotAdmitted),
    /// The rows can't be cut by the shards of their table.
    ByShards,
}

impl From<NotAdmitted> for Unprepared {
    fn from(error: NotAdmitted) -> Self {
        Unprepared::NotAdmitted(error)
    }
}

impl From<Unprepared> for NotAdmitted {
    fn from(error: Unprepared) -> Self {
        match error {
            Unprepared::NotAdmitted(error) => error,
            Unprepared::ByShards => NotAdmitted::Forward(ForwardReason::ShardingKey),
        }
    }
}

/// `by_shards`: the rows of a Distributed table are cut, where that is possible.
async fn prepare_gathered(
    admission: &Admission,
    with: PrepareWith<'_>,
    request: &InsertRequest,
    since: Moment,
    by_shards: bool,
) -> Result<Prepared, Unprepared> {
    let PrepareWith { settings, reloads, plans, kept } = with;
    let statement = &request.statement;
    let alone_here = !admission.backend().takes_requests();
    let names = request.settings.iter().map(|(name, _)| name.as_str());
    if let Some(refusal) = unknown_setting(names).filter(|_| alone_here) {
        return Err(NotAdmitted::Refused(Arc::new(refusal)).into());
    }
    let mut by_role = SettingsByRole::new(&request.settings)?;
    by_role.is_values_clause = statement.is_values_clause;
    let user_key = request.user_key();
    let asked_at = Moment::now();
    let account = match kept {
        Some(kept) => kept.account.clone(),
        None => admission.account_at(&user_key, since).await?,
    };
    let user = account.context_in(request.database.as_deref());
    if by_role.asks_for_serial_quorum(&user) {
        return Err(NotAdmitted::Forward(ForwardReason::Setting).into());
    }
    let (format_name, logged_format) = match request.data_kind {
        DataKind::Parsed => by_role.query.format(statement, &user).map(|format| (format, format))?,
        // Whatever format is named: blocks are blocks.
        DataKind::Preprocessed => ("Native", statement.format.as_str()),
    };
    let format = Format::named(format_name).or_else(|| windrow_interchange::format(format_name));
    let passthrough_format = PassthroughFormat::named(format_name);
    let may_ask = !alone_here && may_be_asked_for(format_name, format);
    if format.is_none() && passthrough_format.is_none() && !may_ask {
        return Err(NotAdmitted::Forward(ForwardReason::Format).into());
    }
    let database = request.table.database.as_ref().unwrap_or(&user.database);
    let database = admission.backend().canonical_database(database);
    let of_duckdb = alone_here && database == "pg_catalog";
    if database == "system" || database.eq_ignore_ascii_case("information_schema") || of_duckdb {
        return Err(NotAdmitted::Forward(ForwardReason::SystemTable).into());
    }
    let key = TableKey { database, table: request.table.table.clone() };
    let schema = match kept {
        Some(kept) => kept.schema.clone(),
        None => admission.table_at(&key, &user_key, since).await?,
    };
    let topology = admission.topology_of(&schema);
    let cutting = match topology.is_some() && !request.names_shard(&user) {
        true => admission.cutting(&key, &schema, &user_key, &user.timezone, since).await?,
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
    let rules = settings.table_rules(&key.database, &key.table, &request.credentials.user);
    let table =
        TableSays { async_insert: schema.async_insert, deduplicates: matches!(schema.window, Window::Owners(_)) };
    let own = by_role.requested(&user)?.resolve(&rules, &settings.gather, table);
    let wants = |window| by_role.dedup.wants(window, &user, DefaultProfile::of(settings));
    let plan = || DedupPlan::new(&key, &schema, window, &user.timezone, admission.most_parts(&schema));
    let dedup = wants(schema.window).then(plan);
    let may_be_cut_at_times = sharding.is_none() && topology.is_some();
    let dedup_by_parts = (may_be_cut_at_times && wants(window)).then(plan);
    // One that names itself goes the way of its repeats, of which some may be asynchronous.
    let names_itself = dedup.is_some() && by_role.dedup.token().is_some();
    let at_once = !own.async_insert && (alone_here || names_itself);
    if !own.async_insert && !at_once {
        return Err(NotAdmitted::Forward(ForwardReason::AsyncInsertOff).into());
    }
    if !schema.gatherable {
        return Err(NotAdmitted::Forward(ForwardReason::Engine).into());
    }
    if dedup.as_ref().is_some_and(|dedup| !dedup.tells_partitions()) {
        return Err(NotAdmitted::Forward(ForwardReason::Deduplication).into());
    }
    let deduplicates = kept.map_or_else(|| admission.will_recognise_batches(&schema), |kept| kept.deduplicates);
    if !alone_here && (deduplicates || schema.has_views) {
        // The profile may have it off, and the batch's own token is all that a repeat is known by.
        by_role.let_it_be_recognised(&user, schema.has_views);
    }
    if schema.async_insert {
        // The backend may gather the batch once more, and is to answer when it is stored.
        by_role.shape.push(("wait_for_async_insert", "1"));
        by_role.shape.sort_unstable();
    }
    let mut targets = schema.target_columns(&key.table, statement.columns.as_deref(), &statement.except)?;
    // What Windrow makes itself, of OTLP for instance, is nobody else's request.
    let is_a_clients = !alone_here && request.sent_as.is_empty();
    if is_a_clients && schema.reads_request(&targets) {
        return Err(NotAdmitted::Forward(ForwardReason::Function).into());
    }
    // Of two ways in, ClickHouse has a column's zone in one and the session's in the other when it computes with times.
    if is_a_clients && schema.computes && schema.has_local_times() && by_role.is_in_another_zone(&user) {
        return Err(NotAdmitted::Forward(ForwardReason::Setting).into());
    }
    targets.iter_mut().zip(&request.sent_as).for_each(|(target, data_type)| target.is_sent_as(data_type));
    let destination = Destination {
        database: key.database.clone(),
        table: key.table.clone(),
        columns: targets.iter().map(|target| target.name.clone()).collect(),
        form: Form::Native { types: Vec::new() },
        credentials: request.credentials.clone(),
        own_account: false,
        roles: request.roles.clone(),
        quota_key: request.quota_key.clone(),
        shard: None,
        settings: Vec::new(),
        deduplicates,
        has_views: schema.has_views,
        hands_on: schema.hands_on,
        is_replicated: schema.is_replicated,
        partitioning: by_role.partitioning(&schema, &user),
    };
    let kind = InsertKind {
        query: logged_query(&key, &targets, statement, logged_format),
        format: format_name.to_owned(),
        data_kind: request.data_kind,
        limits: own.limits,
    };
    by_role.ask_for_one_block(&user);
    let mut parsing = by_role.parsing_reader(format, &targets, &user, &destination, schema.computes, plans);
    if let (Ok(parsing), true) = (&mut parsing, alone_here) {
        parsing.take_all();
    }
    let may_be_text = |dedup: &DedupPlan| dedup.takes_texts() && by_role.dedup.token().is_some();
    if let Some(sharding) = &sharding {
        let Ok(ParsingReader { destination, .. }) = &parsing else { return Err(Unprepared::ByShards) };
        let Form::Native { types } = &destination.form else { return Err(Unprepared::ByShards) };
        if !sharding.understands(&destination.columns, types) {
            return Err(Unprepared::ByShards);
        }
    }
    let passthrough_format = passthrough_format.filter(|_| !alone_here && sharding.is_none());
    let passthrough = passthrough_format.filter(|_| dedup.as_ref().is_none_or(may_be_text)).and_then(|format| {
        let formatting = if schema.computes { by_role.formatting.as_slice() } else { &[] };
        let (targets, user, settings, kind) = (targets.as_slice(), &*user, by_role.shape.as_slice(), &kind);
        let not_parsed = parsing.as_ref().err().copied();
        PassthroughRequest { format, targets, user, settings, formatting, kind, not_parsed }
            .reader(&destination)
            .map(Box::new)
    });
    let asking = may_ask.then(|| BackendReaderRequest {
        format_name,
        targets: &targets,
        user: &user,
        settings: &by_role.shape,
        formatting: &by_role.formatting,
        computes: schema.computes,
        database: request.database.as_deref(),
        kind: &kind,
        parsing: parsing.as_ref().map_err(|reason| *reason),
        takes_unread_rows: dedup.as_ref().is_none_or(may_be_text),
    });
    let passthrough = passthrough.or_else(|| asking.as_ref()?.blocks(&destination).map(Box::new));
    let backend = asking.and_then(|asking| asking.reader(&destination)).map(Box::new);
    // Where the table itself lies in the request's database, that one is there.
    let database = request.database.as_deref().filter(|database| *database != key.database);
    let asker = Asker {
        admission,
        account: &account,
        schema: &schema,
        other_settings: &by_role.others,
        database,
        is_known: kept.is_some(),
    };
    let mut readers = asker.admitted_readers(parsing, passthrough, backend).await?;
    if let Some(sharding) = &sharding {
        let probe = Probe { destination: readers.any_destination(), other_settings: &by_role.others, database: None };
        if !sharding.admits(&probe, &user_key, since).await? {
            return Err(Unprepared::ByShards);
        }
    }
    // Not before: a table is changed for those only who may insert into it.
    let is_settled = match &sharding {
        Some(sharding) => sharding.settle_windows().await,
        // It has those that it had.
        None if kept.is_some() => deduplicates,
        None => admission.give_windows(&key, &schema).await.is_ok(),
    };
    if !is_settled && deduplicates {
        readers.no_repeat_is_recognised();
    }
    let ack = if at_once { AckLevel::Stored } else { own.ack };
    let answer_form = by_role.answer_form(&user);
    // Nothing else tells whether that database is there still, or what roles may do that the request names.
    let is_limited = database.is_some() || account.grants.is_none() || may_be_cut_at_times;
    let asked_at = is_limited.then_some(asked_at);
    let grounds = Grounds {
        account: account.clone(),
        key: user_key,
        table: key.clone(),
        schema: schema.clone(),
        asked_at,
        reloads,
        topology,
        kept: kept.map(|kept| kept.since),
    };
    let mut prepared = Prepared::new(readers, ack, own.wait_timeout, kind, grounds);
    (prepared.at_once, prepared.dedup, prepared.dedup_by_parts) = (at_once, dedup, dedup_by_parts);
    prepared.answer_form = answer_form;
    prepared.is_made_anew = admission.is_made_anew(&key, &schema, sharding.as_ref());
    prepared.sharding = sharding;
    Ok(prepared)
}

impl InsertRequest {
    /// Whether it says itself which shard its rows are for.
    fn names_shard(&self, user: &UserContext) -> bool {
        let mut all = user.changed_settings.iter().chain(&self.settings);
        all.rfind(|(name, _)| name == "insert_shard_id").is_some_and(|(_, value)| value != "0")
    }

    pub(crate) fn user_key(&self) -> UserKey {
        UserKey {
            credentials: self.credentials.clone(),
            roles: self.roles.clone(),
            quota_key: self.quota_key.clone(),
            database: self.database.clone(),
        }
    }
}

/// What the questions have in common whether a statement's rows may be inserted.
struct Asker<'a> {
    admission: &'a Admission,
    account: &'a Account,
    schema: &'a TableSchema,
    other_settings: &'a [(&'a str, &'a str)],
    database: Option<&'a str>,
    /// It was asked before, and nobody can be asked now.
    is_known: bool,
}

impl Asker<'_> {
    async fn ask(&self, destination: Option<&Destination>) -> Result<(), NotAdmitted> {
        let Some(destination) = destination.filter(|_| !self.is_known) else { return Ok(()) };
        let probe = Probe { destination, other_settings: self.other_settings, database: self.database };
        self.admission.probe(probe, self.account, self.schema).await
    }

    /// Asks the backend about all readers at once: it may refuse what only one of them needs.
    async fn admitted_readers(
        &self,
        parsing: Result<ParsingReader, ForwardReason>,
        passthrough: Option<Box<PassthroughReader>>,
        backend: Option<Box<BackendReader>>,
    ) -> Result<Readers, NotAdmitted> {
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

/// A request's settings by what they are for.
#[derive(Default)]
struct SettingsByRole<'a> {
    gathering: Vec<(&'a str, &'a str)>,
    /// Sorted by name, one of each.
    shape: Vec<(&'a str, &'a str)>,
    /// Sorted by name, one of each.
    formatting: Vec<(&'a str, &'a str)>,
    query: QuerySettings<'a>,
    dedup: DedupSettings<'a>,
    /// What the flush does not carry. ClickHouse is to see it once all the same: it may refuse a name or a value.
    others: Vec<(&'a str, &'a str)>,
    is_values_clause: bool,
}

impl<'a> SettingsByRole<'a> {
    fn new(settings: &'a [(String, String)]) -> Result<SettingsByRole<'a>, NotAdmitted> {
        let mut by_role = SettingsByRole::default();
        for (name, value) in settings {
            by_role.query.set(name, value);
            match role(name) {
                // Such names stand in a URL to say something else, and are no settings in a statement.
                Role::Request => return Err(NotAdmitted::Forward(ForwardReason::Setting)),
                Role::Query => {}
                Role::Harmless if !is_surely_taken(name, value) => {
                    return Err(NotAdmitted::Forward(ForwardReason::Setting))
                }
                Role::Private | Role::Harmless => by_role.others.push((name, value)),
                Role::Windrow => by_role.gathering.push((name, value)),
                Role::Gathering => {
                    by_role.gathering.push((name, value));
                    if name != "async_insert" {
                        by_role.others.push((name, value));
                    }
                }
                Role::Formatting => by_role.formatting.push((name, value)),
                Role::Deduplication => {
                    by_role.dedup.set(name, value);
                    if name != "insert_deduplication_token" {
                        by_role.others.push((name, value));
                    }
                }
                Role::Alone => return Err(NotAdmitted::Forward(ForwardReason::Setting)),
                Role::Shape => by_role.shape.push((name, value)),
            }
        }
        by_role.dedup.check().map_err(|_| NotAdmitted::Forward(ForwardReason::Setting))?;
        // There may be tens of thousands, of somebody who is not known yet.
        keep_the_last(&mut by_role.shape);
        keep_the_last(&mut by_role.formatting);
        Ok(by_role)
    }

    /// Whether a replica is to have the rows of one INSERT before the next one begins, as ClickHouse's own asynchronous
    /// inserts refuse it.
    fn asks_for_serial_quorum(&self, user: &UserContext) -> bool {
        const PARALLEL: &str = "insert_quorum_parallel";
        let says_so = self.shape.iter().any(|(name, _)| name.starts_with("insert_quorum"));
        let is_serial = matches!(self.setting(PARALLEL, user), Some("0" | "false"));
        // One replica is no quorum.
        says_so && is_serial && !matches!(self.setting("insert_quorum", user), None | Some("0" | "1"))
    }

    /// Whether local times mean something else for the session than for the server.
    fn is_in_another_zone(&self, user: &UserContext) -> bool {
        const ZONE: &str = "session_timezone";
        let mut read = ReadSettings::default();
        read.set_server_timezone(&user.timezone);
        self.setting(ZONE, user).is_some_and(|zone| {
            read.set(ZONE, zone);
            read.is_in_another_zone()
        })
    }

    /// What the profile and, over it, the request say about gathering. Whether to gather at all is not the profile's to
    /// say: ClickHouse versions differ in their default, and the operator has `[[tables]]` for it.
    fn requested(&self, user: &UserContext) -> Result<RequestedSettings, NotAdmitted> {
        let mut requested = RequestedSettings::default();
        let profile = user.changed_settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let profile = profile.filter(|(name, _)| role(name) == Role::Gathering && *name != "async_insert");
        for (name, value) in profile.chain(self.gathering.iter().copied()) {
            requested.set(name, value).map_err(|_| NotAdmitted::Forward(ForwardReason::Setting))?;
        }
        Ok(requested)
    }

    /// Fails with the reason why payloads can't be parsed.
    fn parsing_reader(
        &mut self,
        format: Option<&'static Format>,
        targets: &[Target],
        user: &UserContext,
        destination: &Destination,
        computes: bool,
        plans: &ReadPlans,
    ) -> Result<ParsingReader, ForwardReason> {
        let columns: Vec<ColumnSpec> =
            targets.iter().map(|target| target.spec.clone()).collect::<Option<_>>().ok_or(ForwardReason::Type)?;
        let format = format.ok_or(ForwardReason::Format)?;
        let read_settings = self.read_settings(format, user)?;
        let mut settings = self.written_settings(format, computes);
        refuse_casts(&mut settings, targets, user.version);
        let destination = Arc::new(Destination {
            form: Form::Native { types: columns.iter().map(|column| column.data_type.clone()).collect() },
            settings,
            ..destination.clone()
        });
        let has_to_be_given = targets.iter().enumerate().filter(|(_, target)| target.has_to_be_given);
        let has_to_be_given = has_to_be_given.map(|(at, _)| at).collect();
        let plan = plans.plan(columns, read_settings);
        Ok(ParsingReader { format, plan, destination, has_to_be_given, takes_any_size: false })
    }

    /// Fails when a setting asks for a way of reading that is not implemented here.
    fn read_settings(&self, format: &Format, user: &UserContext) -> Result<ReadSettings, ForwardReason> {
        let mut read = ReadSettings::of(format);
        read.set_server_version(user.version.major, user.version.minor);
        read.set_server_timezone(&user.timezone);
        if user.is_for_sql {
            read.read_for_sql(self.is_values_clause);
        }
        let profile = user.effective_settings.iter().chain(&user.changed_settings);
        let profile = profile.map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in profile.chain(self.shape.iter().copied()) {
            if read.set(name, value) == SettingEffect::NotParsed {
                return Err(ForwardReason::Setting);
            }
        }
        Ok(read)
    }

    /// The settings that the flush has to carry. What only changes how a payload is read has done its work by then,
    /// unless the table computes something: expressions convert and format values under the same settings.
    fn written_settings(&mut self, format: &Format, computes: bool) -> Vec<(String, String)> {
        let only_read = |name: &str, value: &str| {
            name != "session_timezone" && ReadSettings::of(format).set(name, value) == SettingEffect::Applied
        };
        let is_written = |setting: &&(&str, &str)| computes || !only_read(setting.0, setting.1);
        let mut written: Vec<_> = self.shape.iter().filter(is_written).copied().collect();
        self.others.extend(self.shape.iter().filter(|setting| !is_written(setting)));
        match computes {
            true => written.extend(&self.formatting),
            false => self.others.extend(&self.formatting),
        }
        written.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn answer_form(&self, user: &UserContext) -> AnswerForm {
        AnswerForm::new(|name| {
            let here = self.others.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value);
            here.or_else(|| user.setting(name))
        })
    }

    /// A batch is all or nothing because ClickHouse takes it as one block. Its asynchronous inserts switch this off as
    /// well.
    fn ask_for_one_block(&mut self, user: &UserContext) {
        const LIMITS: &str = "use_strict_insert_block_limits";
        if self.setting(LIMITS, user).is_some_and(|value| value != "0") {
            self.shape.retain(|(name, _)| *name != LIMITS);
            self.shape.push((LIMITS, "0"));
            self.shape.sort_unstable();
        }
    }

    /// Lets ClickHouse recognise the batch when it comes again, also behind views. What the insert itself says of views
    /// is about a repeat of its own, which is known here.
    fn let_it_be_recognised(&mut self, user: &UserContext, has_views: bool) {
        let switches_off =
            |(name, value): &&mut (&str, &str)| *name == THROUGH_VIEWS && matches!(*value, "0" | "false");
        if has_views {
            self.shape.iter_mut().filter(switches_off).for_each(|(_, value)| *value = "1");
        }
        let mut more = recognised(user, has_views);
        more.retain(|(name, _)| self.shape.iter().all(|(said, _)| said != name));
        self.shape.extend(more);
        self.shape.sort_unstable();
    }

    /// A setting that changes what is written, as it is for this insert.
    fn setting<'s>(&'s self, name: &str, user: &'s UserContext) -> Option<&'s str> {
        let here = self.shape.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        here.or_else(|| user.setting(name))
    }

    fn partitioning(&self, schema: &TableSchema, user: &UserContext) -> Option<Partitioning> {
        let key = schema.partition_key(&user.timezone);
        schema.is_partitioned().then(|| Partitioning { key, max_per_insert: self.max_partitions(user) })
    }

    /// What bounds the partitions of a batch; an insert that is refused for its own number of them is not concerned.
    fn max_partitions(&self, user: &UserContext) -> Option<u64> {
        let max: u64 = self.setting("max_partitions_per_insert_block", user)?.parse().ok()?;
        let throws = self.setting("throw_on_max_partitions_per_insert_block", user) != Some("0");
        (throws && max > 0).then_some(max)
    }
}

/// The last of a name counts.
fn keep_the_last(settings: &mut Vec<(&str, &str)>) {
    settings.reverse();
    settings.sort_by_key(|(name, _)| *name);
    settings.dedup_by_key(|(name, _)| *name);
}
