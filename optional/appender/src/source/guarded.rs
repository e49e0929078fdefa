//! A guard against panics of readers. Files come from outside, and readers of rich formats are large: a fault
//! in them ends the append, not the program.

use std::panic::{catch_unwind, AssertUnwindSafe};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{Source, SourceError};

/// A source whose panics are errors. After one it yields nothing more, so nobody sees what it left half done.
pub(super) struct Guarded<S> {
    source: S,
    broken: bool,
}

impl<S: Source> Guarded<S> {
    pub(super) fn new(source: S) -> Guarded<S> {
        Guarded { source, broken: false }
    }
}

impl<S: Source> Source for Guarded<S> {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        if self.broken {
            return Err(SourceError::new("the file is damaged"));
        }
        let next = guarded(|| self.source.next_batch());
        self.broken = next.is_err();
        next
    }

    fn whole_bytes(&self) -> Option<u64> {
        self.source.whole_bytes()
    }
}

/// Runs a function that reads bytes from outside. A panic in it is an error.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, SourceError>) -> Result<T, SourceError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(SourceError::new("the file is damaged")))
}
