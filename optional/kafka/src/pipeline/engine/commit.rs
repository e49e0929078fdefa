//! The commit of offsets, with records beside them.

use std::sync::Arc;

use crate::consumer::{Claim, Commit, CommitError, Consumer};

use crate::pipeline::accounts::Entry;
use crate::pipeline::engine::endless_retries;
use crate::pipeline::record::encode_topic;
use crate::pipeline::view::View;

#[derive(Debug)]
pub(crate) enum CommitEnd {
    Committed,
    /// One of the partitions, or more, isn't ours any more. The last attempt has written nothing.
    Fenced,
    /// The commit is refused for another reason. Nothing more can be committed.
    Refused(String),
}

/// Number of refusals in a row that end the attempts. A right that was granted, for example, may take a
/// moment to be known everywhere.
const MOST_REFUSALS: u32 = 5;

/// Commits the offsets, and tries again until the result is clear.
pub(crate) async fn commit(consumer: Consumer, entries: Vec<Entry>, view: Arc<View>) -> CommitEnd {
    let commits: Vec<Commit> = entries.into_iter().map(as_commit).collect();
    let mut backoff = endless_retries();
    let mut refusals = 0;
    loop {
        match consumer.commit(&commits).await {
            Ok(()) => return CommitEnd::Committed,
            Err(CommitError::Fenced) => return CommitEnd::Fenced,
            Err(error) => {
                let text = format!("offsets can't be committed: {error}");
                view.kafka_trouble(&text);
                refusals = if matches!(error, CommitError::Refused(_)) { refusals + 1 } else { 0 };
                if refusals >= MOST_REFUSALS {
                    return CommitEnd::Refused(text);
                }
            }
        }
        backoff.pause().await;
    }
}

fn as_commit(entry: Entry) -> Commit {
    let Entry { partition, topic_id, epoch, offset, record } = entry;
    let claim = Claim { topic: partition.topic, partition: partition.partition, epoch };
    // It was checked when the batch was sealed that it fits.
    let record = record.and_then(|record| record.encode().ok());
    let metadata = record.unwrap_or_else(|| encode_topic(topic_id));
    Commit { claim, offset, metadata }
}
