use std::sync::Arc;

use crate::trace::Tracer;

use crate::dead_letter_store::DeadLetterStore;
use crate::deduplication::DeduplicationIndex;
use crate::environment::{Environment, Machine};
use crate::leftovers::OpenedJournal;

/// The parts that a gatherer is given besides its sink.
pub struct Stores {
    /// The journal. Without it ack level `disk` promises no more than `memory`.
    pub journal: Option<OpenedJournal>,
    /// The store of dead letters. Without it an acknowledged insert that can't be stored is logged and lost.
    pub dead_letters: Option<Arc<dyn DeadLetterStore>>,
    /// The deduplication index. Without it no insert is taken for a repeat.
    pub deduplication: Option<DeduplicationIndex>,
    pub environment: Arc<dyn Environment>,
    /// The tracer. Without it no flush is traced.
    pub tracer: Option<Arc<Tracer>>,
}

impl Stores {
    /// Returns stores that keep nothing on disk.
    pub fn none() -> Stores {
        Stores { journal: None, dead_letters: None, deduplication: None, environment: Arc::new(Machine), tracer: None }
    }
}
