//! Numbers of parts of the tables that were written to lately: one query for all of them, now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::policy::Micros;
use crate::sink::{Sink, TableKey};

use crate::gatherer::Core;
use crate::table::Table;

/// Shortest time between two queries about one table.
const INTERVAL: Micros = Micros::from_millis(2_000);
/// Shortest pause between two queries. It is also at least `PAUSE_IN_QUESTIONS` times what the last query
/// took: asking is not to cost what it saves.
const PAUSE: Duration = Duration::from_secs(2);
const PAUSE_IN_QUESTIONS: u32 = 20;

#[derive(Default)]
pub(crate) struct PartCounts {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    due: HashMap<TableKey, Weak<Table>>,
    is_asking: bool,
}

/// Starts a count of a table's parts, if that is due, after a flight of the table has ended.
pub(crate) fn count_parts<S: Sink>(core: &Arc<Core<S>>, table: &Arc<Table>) {
    // Parts of a Distributed table are counted by nobody.
    if table.shard == 0 && table.parts_are_due(INTERVAL) && core.part_counts.add(table) {
        tokio::spawn(ask(core.clone()));
    }
}

impl PartCounts {
    /// Adds a table to those that are due. Returns true if nobody is asking: then the caller has to ask.
    fn add(&self, table: &Arc<Table>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.due.insert(table.name.clone(), Arc::downgrade(table));
        !std::mem::replace(&mut state.is_asking, true)
    }

    /// Returns the tables to ask about. If there are none, the task that asks stops.
    fn take(&self) -> Vec<Arc<Table>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let due: Vec<_> = std::mem::take(&mut state.due).values().filter_map(Weak::upgrade).collect();
        state.is_asking = !due.is_empty();
        due
    }
}

async fn ask<S: Sink>(core: Arc<Core<S>>) {
    loop {
        let tables = core.part_counts.take();
        if tables.is_empty() {
            return;
        }
        let names: Vec<_> = tables.iter().map(|table| table.name.clone()).collect();
        let began = tokio::time::Instant::now();
        // Without an answer the tables go by what was seen before.
        let load = core.sink.load(&names).await.unwrap_or_default();
        let took = began.elapsed();
        if let Some(cpus) = load.cpus {
            core.schedule.set_backend_cpus(cpus);
        }
        let mut counts: HashMap<_, _> = load.parts.into_iter().collect();
        for table in &tables {
            if let Some(count) = counts.remove(&table.name) {
                table.parts_counted(count);
            }
        }
        drop(tables);
        tokio::time::sleep(PAUSE.max(took * PAUSE_IN_QUESTIONS)).await;
    }
}
