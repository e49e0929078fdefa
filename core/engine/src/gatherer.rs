use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::policy::Micros;
use crate::sink::{Destination, PhysicalTable, Sink, TableKey};
use prometheus_client::registry::Registry;

use crate::budget::Budget;
use crate::clock::Clock;
use crate::environment::Environment;
use crate::flight::fly;
use crate::insert::AckLevel;
use crate::journaling::{Contexts, Journaling};
use crate::line::Line;
use crate::log::InsertLog;
use crate::metrics::Metrics;
use crate::options::GathererOptions;
use crate::part_counts::PartCounts;
use crate::posting::Posting;
use crate::recovery::recover;
use crate::schedule::{keep_time, Schedule};
use crate::shape::Shape;
use crate::signal::Signal;
use crate::stores::Stores;
use crate::table::{Launch, Table};

/// The parts that all tables share.
pub(crate) struct Core<S> {
    pub(crate) sink: S,
    pub(crate) options: GathererOptions,
    pub(crate) stores: Stores,
    pub(crate) journal: Option<Arc<Journaling>>,
    pub(crate) posting: Posting,
    pub(crate) log: InsertLog,
    pub(crate) on_stale_schema: Box<dyn Fn(&TableKey) + Send + Sync>,
    /// Signal that nobody waits any longer for what is under way.
    pub(crate) ended: Arc<Signal>,
    /// Signal that the gatherer ends, and that not all inserts could be stored in time.
    pub(crate) gave_up: Arc<Signal>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) part_counts: PartCounts,
}

/// A handle of a gatherer, which gathers inserts into batches. It is cheap to clone: clones are handles of
/// the same gatherer.
pub struct Gatherer<S: Sink> {
    pub(crate) core: Arc<Core<S>>,
    pub(crate) registry: Arc<Tables>,
    pub(crate) closing: Arc<AtomicBool>,
}

impl<S: Sink> Clone for Gatherer<S> {
    fn clone(&self) -> Self {
        Gatherer { core: self.core.clone(), registry: self.registry.clone(), closing: self.closing.clone() }
    }
}

/// The tables and shapes in use. They live as long as somebody holds a shape: a prepared insert, a buffer, a
/// flight.
pub(crate) struct Tables {
    tables: Mutex<HashMap<PhysicalTable, Weak<Table>>>,
    shapes: Mutex<HashMap<Arc<Destination>, Weak<Shape>>>,
    next_shape: AtomicU64,
    pub(crate) budget: Budget,
    pub(crate) metrics: Metrics,
    clock: Clock,
}

impl<S: Sink> Gatherer<S> {
    /// Opens a gatherer, which begins at once to store what `stores` say is left. `on_stale_schema` is called
    /// when the sink's answer shows that a table isn't what its inserts were parsed against.
    pub fn open(
        sink: S,
        options: GathererOptions,
        mut stores: Stores,
        registry: &mut Registry,
        on_stale_schema: impl Fn(&TableKey) + Send + Sync + 'static,
    ) -> Gatherer<S> {
        let tables = Tables {
            tables: Mutex::default(),
            shapes: Mutex::default(),
            next_shape: AtomicU64::new(0),
            budget: Budget::new(options.max_buffer_bytes, options.max_table_bytes),
            metrics: Metrics::register(registry, options.max_tables_in_metrics),
            clock: Clock::start(),
        };
        let log = InsertLog::new(options.log_entries);
        let longest_hold = Micros(options.longest_hold.as_micros() as u64);
        let schedule = Arc::new(Schedule::new(tables.budget.clone(), tables.clock, longest_hold));
        let (journal, scan) = stores
            .journal
            .take()
            .map(|opened| (Arc::new(Journaling::new(opened.log, opened.max_bytes)), opened.scan))
            .unzip();
        let posting = Posting::default();
        let core = Core {
            sink,
            options,
            stores,
            journal,
            posting,
            log,
            on_stale_schema: Box::new(on_stale_schema),
            ended: Arc::default(),
            gave_up: Arc::default(),
            schedule: schedule.clone(),
            part_counts: PartCounts::default(),
        };
        let gatherer = Gatherer { core: Arc::new(core), registry: Arc::new(tables), closing: Arc::default() };
        tokio::spawn(keep_time(Arc::downgrade(&gatherer.core), schedule));
        if let Some((journal, scan)) = gatherer.core.journal.as_ref().zip(scan) {
            recover(&gatherer, journal, scan);
        }
        gatherer
    }

    /// Sets how many gateways share the backend from now on. Holds are stretched, so that all gateways make
    /// hardly more parts than one would.
    pub fn set_gateways(&self, gateways: usize) {
        self.core.schedule.set_gateways(gateways);
    }

    /// Says whether rows of this size can fit into a table's share of the memory at all, and, if they are to
    /// be kept on disk, into its share of the journal.
    pub fn could_hold(&self, rows_bytes: u64, ack: AckLevel) -> bool {
        let held_bytes = rows_bytes.saturating_add(Table::OVERHEAD_BYTES);
        let options = &self.core.options;
        let on_disk = match &self.core.journal {
            // Even when nothing else is in the journal, some of it is kept for other things.
            Some(journal) if ack == AckLevel::Disk => options.max_table_journal_bytes.min(journal.max_bytes / 2),
            _ => u64::MAX,
        };
        held_bytes <= options.max_table_bytes.min(on_disk)
    }

    /// Returns the shape of inserts that go to `destination`.
    pub fn shape(&self, destination: impl Into<Arc<Destination>>) -> Arc<Shape> {
        let destination = destination.into();
        let mut shapes = self.registry.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = shapes.get(&destination).and_then(Weak::upgrade) {
            return shape;
        }
        forget_unused(&mut shapes);
        let shape = Arc::new(Shape {
            table: self.table(destination.physical_table()),
            destination: destination.clone(),
            id: self.registry.next_shape.fetch_add(1, Ordering::Relaxed),
            contexts: Contexts::default(),
            line: Line::default(),
        });
        shapes.insert(destination, Arc::downgrade(&shape));
        shape
    }

    /// Returns the shape of inserts whose senders' passwords nobody has any more: they are stored with the
    /// gateway's own account.
    pub fn own_shape(&self, destination: Destination) -> Arc<Shape> {
        self.shape(Destination { own_account: true, ..destination })
    }

    pub(crate) fn table(&self, of: PhysicalTable) -> Arc<Table> {
        let mut tables = self.registry.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&of).and_then(Weak::upgrade) {
            return table;
        }
        forget_unused(&mut tables);
        let metrics = self.registry.metrics.for_table(&of.name);
        let (budget, clock) = (self.registry.budget.for_table(), self.registry.clock);
        let world = self.core.stores.environment.clone();
        let table = Table::new(of.clone(), budget, metrics, clock, world, self.core.schedule.clone());
        tables.insert(of, Arc::downgrade(&table));
        table
    }

    pub(crate) fn tables(&self) -> Vec<Arc<Table>> {
        let mut tables = self.tables_in_use();
        // In an order that is the same in every run.
        tables.sort_unstable_by(|one, other| (&one.name, one.shard).cmp(&(&other.name, other.shard)));
        tables
    }

    pub(crate) fn tables_in_use(&self) -> Vec<Arc<Table>> {
        let tables = self.registry.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.values().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn launch(&self, launches: impl IntoIterator<Item = Launch>) {
        for launch in launches {
            tokio::spawn(fly(self.core.clone(), launch));
        }
    }
}

/// Keeps the maps from growing with names that are gone, at a cost that is spread over the growth.
fn forget_unused<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, Weak<V>>) {
    if map.len() >= 64 && map.len() == map.capacity() {
        map.retain(|_, value| value.strong_count() > 0);
    }
}

/// Returns a random version 4 UUID.
pub(crate) fn random_id(world: &dyn Environment) -> u128 {
    world.random_u128() & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62)
}
