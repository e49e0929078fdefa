//! Tables behind a Distributed table: those of the shards, which may get its rows directly.
//!
//! Each shard is asked like a server of its own, by an [`Admission`] of its own: for the table, for the
//! user's account, and whether this user may insert there. Where a shard's table is not as the Distributed
//! table says, or the user may not insert into it, rows go through the Distributed table.
//!
//! A shard that is away, or lacks the table while others have it, is taken to be like the others: a restart,
//! or the setup of a new shard, will end. Its rows wait for it, whereas the Distributed table would
//! acknowledge rows that only one server has queued.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use windrow_clickhouse::{Cluster, Shard, Topology};
use windrow_columns::{cut_by_shard, Block, DataType, Rows, ShardingKey};
use windrow_engine::sink::{Destination, Form, ShardTable};
use windrow_engine::{DedupKeys, DeduplicationIndex};
use windrow_sql::TableName;

use super::doubted::is_named;
use super::schema::{Column, Distributed, TableSchema};
use super::standing::{Moment, Standing};
use super::{Admission, NotAdmitted, Probe, TableKey, Unprotected, UserKey, Window, Windows};
use crate::backend::{Backend, ClickHouse};
use crate::forward_reason::ForwardReason;

/// Time for which a shard without the table is taken to get it. After that, rows go through the Distributed table.
const MAY_GET_ITS_TABLE: Duration = Duration::from_secs(60);
/// Bound of the tables that shards are known to lack; beyond it, the time is counted anew.
const MOST_MISSING: usize = 10_000;

/// Time that other shards may still take when one has answered. One that is away is taken to be like them.
const OTHERS_MAY_TAKE: Duration = Duration::from_millis(500);

type TableOfShard = (Arc<[String]>, TableKey);

/// The shards of the backend's cluster, with the known facts about each.
pub(super) struct Shards {
    pub(super) cluster: Arc<Cluster>,
    account_ttl: Duration,
    table_ttl: Duration,
    windows: Windows,
    /// Admission of each shard, by the addresses of the shard's replicas.
    admissions: Mutex<HashMap<Arc<[String]>, Arc<Admission>>>,
    /// Distributed tables whose rows were cut, by the table that gets the rows at each shard.
    distributed: Mutex<HashMap<TableKey, HashSet<TableKey>>>,
    /// Moments at which a shard, known by its replicas, was first found without a table that others have.
    missing: Mutex<HashMap<TableOfShard, Instant>>,
}

impl Shards {
    pub(super) fn new(cluster: Arc<Cluster>, account_ttl: Duration, table_ttl: Duration, windows: &Windows) -> Shards {
        Shards {
            cluster,
            account_ttl,
            table_ttl,
            windows: windows.clone(),
            admissions: Mutex::default(),
            distributed: Mutex::default(),
            missing: Mutex::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<[String]>, Arc<Admission>>> {
        self.admissions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admission(&self, shard: &Shard) -> Arc<Admission> {
        let mut admissions = self.lock();
        if let Some(known) = admissions.get(&shard.replicas) {
            return known.clone();
        }
        let client = shard.client.clone();
        let backend = ClickHouse { relay: client.clone(), client, cluster: None, native: None };
        let windows = self.windows.clone();
        let admission = Admission::new(Backend::ClickHouse(backend), self.account_ttl, self.table_ttl, windows);
        let admission = Arc::new(admission);
        // Nothing is asked of shards that are gone.
        admissions.retain(|_, known| Arc::strong_count(known) > 1);
        admissions.insert(shard.replicas.clone(), admission.clone());
        admission
    }

    fn note(&self, local: &TableKey, distributed: &TableKey) {
        let mut known = self.distributed.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(local.clone()).or_default().insert(distributed.clone());
    }

    /// Notes whether the shard has the table. Returns false where it has been missing for too long.
    fn is_waited_for(&self, shard: &Shard, table: &TableKey, is_there: bool) -> bool {
        let key = (shard.replicas.clone(), table.clone());
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if is_there {
            missing.remove(&key);
            return true;
        }
        if missing.len() >= MOST_MISSING {
            missing.clear();
        }
        missing.entry(key).or_insert_with(Instant::now).elapsed() < MAY_GET_ITS_TABLE
    }

    /// Returns the Distributed tables whose rows are in this table of the shards.
    pub(super) fn over(&self, local: &TableKey) -> Vec<TableKey> {
        let known = self.distributed.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(local).into_iter().flatten().cloned().collect()
    }

    pub(super) fn forget_table(&self, distributed: &Distributed) {
        self.lock().values().for_each(|admission| admission.forget_table(&distributed.local()));
    }

    /// Returns the Distributed tables whose rows are in a table of the shards that has such a name, or may
    /// have a table or view of such a name behind it.
    pub(super) fn over_any(&self, names: &[TableName]) -> Vec<TableKey> {
        let by_views: HashSet<TableKey> =
            self.lock().values().flat_map(|admission| admission.concerned_by(names)).collect();
        let known = self.distributed.lock().unwrap_or_else(PoisonError::into_inner);
        let concerned = known
            .iter()
            .filter(|(local, _)| by_views.contains(local) || names.iter().any(|name| is_named(local, name)));
        concerned.flat_map(|(_, over)| over).cloned().collect()
    }

    pub(super) fn doubt_tables(&self, names: &[TableName]) {
        self.lock().values().for_each(|admission| admission.doubt_tables(names));
    }

    pub(super) fn unprotected(&self) -> Vec<Unprotected> {
        self.lock().values().flat_map(|admission| admission.unprotected()).collect()
    }

    pub(super) fn doubt(&self) {
        self.lock().values().for_each(|admission| admission.doubt());
    }
}

impl NotAdmitted {
    /// Says whether a shard with this answer may soon be like the others.
    fn may_pass_at_shard(&self) -> bool {
        matches!(
            self,
            NotAdmitted::Unreachable(_) | NotAdmitted::Busy | NotAdmitted::Forward(ForwardReason::UnknownTable)
        )
    }

    /// Chooses, of the failures of two shards, the one that says less: a shard that is away may have the table.
    fn or_away(self, other: Option<NotAdmitted>) -> NotAdmitted {
        match other {
            Some(away @ (NotAdmitted::Unreachable(_) | NotAdmitted::Busy)) => away,
            _ => self,
        }
    }
}

impl Distributed {
    /// Returns the table at each shard.
    fn local(&self) -> TableKey {
        TableKey { database: self.database.clone(), table: self.table.clone() }
    }
}

/// Rules by which the rows of a Distributed table are cut.
pub(crate) struct Sharding {
    /// Sharding key; `None`: there is one shard only.
    key: Option<ShardingKey>,
    /// Cuts by the shards that there are, and then by those that there were, the latest first.
    cuts: Vec<Cut>,
    /// Shards that have answered, each with its table.
    answered: Vec<Answered>,
    local: TableKey,
    /// Schema of the Distributed table, merged with those of the shards' tables.
    pub(crate) schema: Arc<TableSchema>,
}

struct Answered {
    number: u32,
    admission: Arc<Admission>,
    schema: Arc<TableSchema>,
}

/// A shard by its position, and the cut that it belongs to by its position in [`Sharding::cuts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardOfCut {
    pub(crate) cut: usize,
    pub(crate) shard: u32,
}

/// Division of rows by the shards of one time.
pub(crate) struct Cut {
    id: u64,
    weights: Vec<u32>,
    tables: Vec<Arc<ShardTable>>,
}

impl Cut {
    fn of(topology: &Topology, local: &TableKey) -> Cut {
        let tables = topology.shards.iter().map(|shard| {
            Arc::new(ShardTable {
                number: shard.number,
                topology: topology.version,
                replicas: shard.replicas.to_vec(),
                database: local.database.clone(),
                table: local.table.clone(),
            })
        });
        Cut { id: topology.cut, weights: topology.weights(), tables: tables.collect() }
    }

    /// Returns the deduplication keys of the part that the shard gets of an insert with the keys `whole`.
    pub(crate) fn keys(&self, whole: &DedupKeys, shard: u32, partitions: Vec<u64>) -> DedupKeys {
        whole.of_shard(self.id, self.tables[shard as usize].number, partitions)
    }
}

/// Way that the rows of a Distributed table take.
pub(crate) enum Cutting {
    ByShards(Sharding),
    /// The rows go through the Distributed table. `window` is that of its shards' tables, if they have
    /// answered: one that is meant for clients' inserts, if there is any.
    None {
        window: Option<Window>,
    },
}

impl Cutting {
    pub(crate) const NONE: Cutting = Cutting::None { window: None };
}

impl Admission {
    /// Finds out whether and how the table's rows are cut, with no answer from before `since`.
    pub(crate) async fn cutting(
        &self,
        key_of_table: &TableKey,
        schema: &Arc<TableSchema>,
        asker: &UserKey,
        server_timezone: &str,
        since: Moment,
    ) -> Result<Cutting, NotAdmitted> {
        let Some((shards, distributed)) = self.shards_of(schema) else { return Ok(Cutting::NONE) };
        let Some(topology) = shards.cluster.topology() else {
            let (name, trouble) = (shards.cluster.name(), shards.cluster.trouble());
            let trouble = trouble.as_deref().unwrap_or("nobody has said yet");
            return Err(NotAdmitted::Unreachable(format!("the shards of the cluster {name} are not known: {trouble}")));
        };
        let key = match &distributed.key {
            Some(text) => match ShardingKey::parse(text, server_timezone) {
                Some(key) => Some(key),
                None => return Ok(Cutting::NONE),
            },
            None if topology.shards.len() == 1 => None,
            None => return Ok(Cutting::NONE),
        };
        let admissions: Vec<_> = topology.shards.iter().map(|shard| shards.admission(shard)).collect();
        let local = distributed.local();
        let answers = ask_all(&admissions, &local, asker, since).await;
        let mut answered: Vec<Answered> = Vec::new();
        let mut failure = None;
        for ((shard, admission), answer) in topology.shards.iter().zip(admissions).zip(answers) {
            let lacks_it = matches!(answer, Some(Err(NotAdmitted::Forward(ForwardReason::UnknownTable))));
            if answer.is_some() && !shards.is_waited_for(shard, &local, !lacks_it) {
                return Ok(Cutting::NONE);
            }
            match answer {
                Some(Ok(schema)) => answered.push(Answered { number: shard.number, admission, schema }),
                Some(Err(error)) if error.may_pass_at_shard() => failure = Some(error.or_away(failure)),
                Some(Err(_)) => return Ok(Cutting::NONE),
                None => {}
            }
        }
        let Some(Answered { schema: model, .. }) = answered.first() else {
            return match failure {
                // There is no such table; the Distributed table will say so.
                None | Some(NotAdmitted::Forward(_)) => Ok(Cutting::NONE),
                Some(error) => Err(error),
            };
        };
        let are_alike = answered.iter().all(|other| model.stores_like(&other.schema));
        let has_replicas = topology.shards.iter().any(|shard| shard.replicas.len() > 1);
        let is_one_of_many = has_replicas && !model.has_replicated_engine;
        let take_the_rows = answered.iter().all(|shard| shard.schema.takes_rows_of(schema));
        if !are_alike || is_one_of_many || !take_the_rows {
            let windows = || answered.iter().map(|shard| shard.schema.window);
            let window = windows().find(|window| matches!(window, Window::Owners(_))).or(windows().next());
            return Ok(Cutting::None { window });
        }
        let merged = TableSchema::of_shards(schema, answered.iter().map(|shard| &*shard.schema));
        shards.note(&local, key_of_table);
        let former = shards.cluster.former();
        let cuts = std::iter::once(&topology).chain(&former).map(|topology| Cut::of(topology, &local)).collect();
        Ok(Cutting::ByShards(Sharding { key, cuts, answered, local, schema: Arc::new(merged) }))
    }

    /// Says whether an insert with these keys into a Distributed table is known by its parts alone: it was
    /// cut by the shards that there are, or were. Costs a hash and a look into the deduplication index for
    /// each shard of each of at most 17 versions of the cluster.
    pub(crate) fn was_cut(&self, schema: &TableSchema, whole: &DedupKeys, known: &DeduplicationIndex) -> bool {
        if self.shards_of(schema).is_none() || known.knows(whole) {
            return false;
        }
        let topologies = self.topologies_of(schema);
        let of_shards = topologies.iter().flat_map(|it| it.shards.iter().map(|shard| (it.cut, shard.number)));
        known.knows_any(of_shards.map(|(cut, shard)| whole.of_shard(cut, shard, Vec::new())))
    }

    /// Returns the version of the cluster's shards, for a table whose rows may be cut by them (0: unknown).
    pub(crate) fn topology_of(&self, schema: &TableSchema) -> Option<u64> {
        let (shards, _) = self.shards_of(schema)?;
        Some(shards.cluster.topology().map_or(0, |topology| topology.version))
    }

    /// Returns the largest number of parts that an insert into the table may be cut into, or may have been.
    pub(crate) fn most_parts(&self, schema: &TableSchema) -> u64 {
        let counts = self.topologies_of(schema).into_iter().map(|topology| topology.shards.len() as u64);
        counts.max().unwrap_or_default().max(1)
    }

    /// Returns the topologies of the cluster that the table's rows may be cut by: the one that it has, then
    /// those that it had.
    fn topologies_of(&self, schema: &TableSchema) -> Vec<Arc<Topology>> {
        let Some((shards, _)) = self.shards_of(schema) else { return Vec::new() };
        shards.cluster.topology().into_iter().chain(shards.cluster.former()).collect()
    }

    pub(super) fn shards_of<'a>(&'a self, schema: &'a TableSchema) -> Option<(&'a Shards, &'a Distributed)> {
        let distributed = schema.distributed.as_ref()?;
        let shards = self.shards.as_ref().filter(|shards| shards.cluster.name() == distributed.cluster)?;
        Some((shards, distributed))
    }
}

/// Asks all shards. `None` stands for a shard that takes longer than [`OTHERS_MAY_TAKE`] after another.
async fn ask_all(
    admissions: &[Arc<Admission>],
    table: &TableKey,
    asker: &UserKey,
    since: Moment,
) -> Vec<Option<Result<Arc<TableSchema>, NotAdmitted>>> {
    let mut answers: Vec<_> = admissions.iter().map(|_| None).collect();
    let mut asking = tokio::task::JoinSet::new();
    for (at, admission) in admissions.iter().enumerate() {
        let (admission, table, asker) = (admission.clone(), table.clone(), asker.clone());
        asking.spawn(async move { (at, admission.table_at(&table, &asker, since).await) });
    }
    let mut others_until: Option<tokio::time::Instant> = None;
    while !asking.is_empty() {
        let next = match others_until {
            Some(until) => tokio::time::timeout_at(until, asking.join_next()).await,
            None => Ok(asking.join_next().await),
        };
        let Ok(Some(Ok((at, answer)))) = next else { break };
        if answer.is_ok() {
            others_until.get_or_insert_with(|| tokio::time::Instant::now() + OTHERS_MAY_TAKE);
        }
        answers[at] = Some(answer);
    }
    // Whoever comes next finds what they answer.
    asking.detach_all();
    answers
}

impl TableSchema {
    /// Says whether both tables store rows alike.
    fn stores_like(&self, other: &TableSchema) -> bool {
        let of = |it: &TableSchema| (it.gatherable, it.async_insert, it.window, it.has_replicated_engine);
        of(self) == of(other) && self.partition_key == other.partition_key && self.marks == other.marks
    }

    /// Says whether this table can take rows of the Distributed one, and makes the same of them.
    fn takes_rows_of(&self, distributed: &TableSchema) -> bool {
        let written = distributed.columns.iter().filter(|column| column.is_written());
        let has_same = |column: &Column| {
            self.columns.iter().any(|own| {
                own.name == column.name
                    && own.type_name == column.type_name
                    && own.default_kind == column.default_kind
                    && own.default_expression == column.default_expression
            })
        };
        self.gatherable && !self.hands_on && { written }.all(has_same)
    }

    fn of_shards<'a>(
        distributed: &'a TableSchema,
        locals: impl Iterator<Item = &'a TableSchema> + Clone,
    ) -> TableSchema {
        let all = || std::iter::once(distributed).chain(locals.clone());
        let confirmed = all().map(TableSchema::confirmed).min().unwrap_or_default();
        let model = locals.clone().next().unwrap_or(distributed);
        // The Distributed table's own columns come with the rows.
        let is_computed_from_request = |column: &Column| column.reads_request && !distributed.has_column(&column.name);
        TableSchema {
            standing: Standing::confirmed_at(confirmed),
            // Of several watches: only the time that has passed tells.
            watch: None,
            columns: distributed.columns.clone(),
            gatherable: true,
            async_insert: model.async_insert,
            marks: model.marks.clone(),
            window: model.window,
            // Each shard has a table of its own.
            uuid: 0,
            has_views: locals.clone().any(|local| local.has_views),
            // Each shard gives its own their windows.
            fed: Box::default(),
            keeps_none: model.keeps_none,
            hands_on: false,
            distributed: distributed.distributed.clone(),
            // A shard may get more replicas, or have had them.
            is_replicated: model.has_replicated_engine,
            has_replicated_engine: model.has_replicated_engine,
            said_by: distributed.said_by,
            partition_key: model.partition_key.clone(),
            computes: all().any(|table| table.computes),
            asks_for_rights: all().any(|table| table.asks_for_rights),
            reads_request: all().any(|table| table.reads_request)
                || locals.clone().any(|local| local.columns.iter().any(is_computed_from_request)),
        }
    }
}

impl Sharding {
    /// Returns the largest number of parts that an insert is cut into by the shards that there are.
    pub(crate) fn count(&self) -> u64 {
        self.cuts[0].tables.len() as u64
    }

    /// Returns the cuts by the shards that there are, and then by those that there were.
    pub(crate) fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Says whether rows in these columns can be cut.
    pub(crate) fn understands(&self, columns: &[String], types: &[DataType]) -> bool {
        let empty = Block::empty(types);
        self.key
            .as_ref()
            .is_none_or(|key| key.shards_of_rows(columns, types, &empty, &self.cuts[0].weights, 0).is_some())
    }

    /// Returns the position of each row's shard. `None`: it is not known here. `draw` stands for chance.
    pub(crate) fn shards_of_rows(&self, cut: &Cut, rows: &Rows, to: &Destination, draw: u64) -> Option<Vec<u32>> {
        let Form::Native { types } = &to.form else { return None };
        // Without a key there is one shard, or was.
        let Some(key) = &self.key else { return (cut.tables.len() == 1).then(|| vec![0; rows.count()]) };
        let mut shards = Vec::with_capacity(rows.count());
        for block in rows.blocks()? {
            shards.extend(key.shards_of_rows(&to.columns, types, block, &cut.weights, draw)?);
        }
        Some(shards)
    }

    /// Divides the rows: returns those of each shard that gets some, with the shard's position.
    pub(crate) fn cut(cut: &Cut, rows: Rows, shards: &[u32]) -> Vec<(u32, Rows)> {
        cut_by_shard(rows, shards, cut.tables.len())
    }

    /// Returns the tables of the shards that have answered, with the shards' numbers.
    pub(super) fn locals(&self) -> impl Iterator<Item = (u32, &TableSchema)> {
        self.answered.iter().map(|shard| (shard.number, &*shard.schema))
    }

    /// Returns the destination at the shard of rows that would otherwise go to `destination`.
    pub(crate) fn destination(&self, destination: &Destination, shard: ShardOfCut) -> Destination {
        let table = &self.cuts[shard.cut].tables[shard.shard as usize];
        Destination { shard: Some(table.clone()), ..destination.clone() }
    }

    /// Asks whether such rows may be inserted at each shard that answers.
    pub(crate) async fn admits(&self, probe: &Probe<'_>, asker: &UserKey, since: Moment) -> Result<bool, NotAdmitted> {
        let destination = Destination {
            database: self.local.database.clone(),
            table: self.local.table.clone(),
            ..probe.destination.clone()
        };
        let probe = Probe { destination: &destination, database: None, ..*probe };
        let asked = self.answered.iter().map(|Answered { admission, .. }| async {
            let account = admission.account_at(asker, since).await?;
            admission.probe(probe, &account, &self.schema).await
        });
        let (mut is_admitted, mut failure) = (false, None);
        for answer in futures::future::join_all(asked).await {
            match answer {
                Ok(()) => is_admitted = true,
                // Who is away is taken to be like the others, and says so itself when it has rows to store.
                Err(error) if error.may_pass_at_shard() => failure = Some(error.or_away(failure)),
                Err(_) => return Ok(false),
            }
        }
        match failure {
            Some(NotAdmitted::Forward(_)) if !is_admitted => Ok(false),
            Some(failure) if !is_admitted => Err(failure),
            _ => Ok(true),
        }
    }

    /// Gives windows to the tables of all shards that answer, and says whether all of them have one now.
    pub(crate) async fn settle_windows(&self) -> bool {
        let settled = self.answered.iter().map(|shard| shard.admission.give_windows(&self.local, &shard.schema));
        futures::future::join_all(settled).await.into_iter().all(|settled| settled.is_ok())
    }
}
