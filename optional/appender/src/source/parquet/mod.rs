//! A reader of Parquet files. Their row groups are decoded on several threads and handed on in order.
//!
//! A thread takes the next row group, decodes it batch by batch and puts the batches on the group's queue.
//! The reading thread empties the queues in the order of the groups. The group whose turn it is may always go
//! on; the others stop when the batches on all queues have [`row_group_queues::MAX_AHEAD_BYTES`], so that
//! memory is bounded whatever the groups' sizes.

mod file;
mod row_group_queues;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::columns::{for_all, Order};
use super::guarded::guarded;
use super::{Source, SourceError};
use file::ParquetFile;
use row_group_queues::RowGroupQueues;

const MAX_THREADS: usize = 8;

pub(super) struct ParquetSource {
    schema: SchemaRef,
    whole_bytes: u64,
    groups: Arc<Vec<Group>>,
    queues: Arc<RowGroupQueues>,
    threads: Vec<JoinHandle<()>>,
}

/// A row group of one of the files.
struct Group {
    file: Arc<ParquetFile>,
    order: Order,
    index: usize,
}

impl ParquetSource {
    pub(super) fn open(paths: &[PathBuf]) -> Result<ParquetSource, SourceError> {
        let mut files: Vec<(Arc<ParquetFile>, Order)> = Vec::new();
        for path in paths {
            let file = guarded(|| ParquetFile::open(path)).map_err(|error| match error.file {
                None => SourceError::in_file(path, error.text),
                Some(_) => error,
            })?;
            let order = match files.first() {
                Some((first, _)) => Order::of(path, first.schema(), file.schema())?,
                None => Order::default(),
            };
            files.push((Arc::new(file), order));
        }
        let schema = files.first().map(|(file, _)| for_all(file.schema(), files.len()));
        let schema = schema.ok_or_else(|| SourceError::new("there is no file to append"))?;
        let whole_bytes = files.iter().map(|(file, _)| file.whole_bytes()).fold(0, u64::saturating_add);
        let groups_of = |(file, order): (Arc<ParquetFile>, Order)| {
            (0..file.groups()).map(move |index| Group { file: file.clone(), order: order.clone(), index })
        };
        let groups: Vec<Group> = files.into_iter().flat_map(groups_of).collect();
        let queues = Arc::new(RowGroupQueues::new(groups.len()));
        Ok(ParquetSource { schema, whole_bytes, groups: Arc::new(groups), queues, threads: Vec::new() })
    }

    /// Starts the threads when the first row is asked for: a source that is only looked at needs no threads.
    fn start(&mut self) {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        for _ in 0..cores.min(MAX_THREADS).min(self.groups.len()) {
            let (groups, queues) = (self.groups.clone(), self.queues.clone());
            self.threads.push(std::thread::spawn(move || {
                while let Some(number) = queues.next_group() {
                    let group = &groups[number];
                    let decoded = guarded(|| decode(group, number, &queues));
                    queues.end_group(number, decoded.map_err(|error| in_file(group, error)));
                }
            }));
        }
    }
}

fn in_file(group: &Group, error: SourceError) -> SourceError {
    SourceError { file: Some(group.file.path().to_owned()), ..error }
}

fn decode(group: &Group, number: usize, queues: &RowGroupQueues) -> Result<(), SourceError> {
    for batch in group.file.read_group(group.index)? {
        if !queues.put(number, group.order.apply(batch.map_err(SourceError::new)?)?) {
            break;
        }
    }
    Ok(())
}

impl Source for ParquetSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        if self.threads.is_empty() {
            self.start();
        }
        self.queues.take()
    }

    fn whole_bytes(&self) -> Option<u64> {
        Some(self.whole_bytes)
    }
}

impl Drop for ParquetSource {
    fn drop(&mut self) {
        self.queues.close();
        for thread in self.threads.drain(..) {
            // What it had to say was said by its group.
            let _ = thread.join();
        }
    }
}
