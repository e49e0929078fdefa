//! The dead letters of a pipeline: a message that can't be stored is kept before any offset passes it.

use std::sync::Arc;

use windrow_engine::dead_letters::{DeadLetters, MessageDeadLetter, MessageSource, MessagesNotKept};

use crate::pipeline::engine::chunk::BadMessage;
use crate::pipeline::engine::endless_retries;
use crate::pipeline::latency::wall_ms;
use crate::pipeline::metrics::ErrorKind;
use crate::pipeline::options::PipelineOptions;
use crate::pipeline::record::Range;
use crate::pipeline::view::View;

pub(crate) fn source(options: &PipelineOptions, range: &Range) -> MessageSource {
    MessageSource {
        pipeline: options.name.clone(),
        topic: range.topic.to_string(),
        topic_id: range.topic_id.0,
        database: options.database.clone(),
        table: options.table.clone(),
        format: options.format.name.clone(),
    }
}

/// Keeps the messages as dead letters. Ends when they are durable, however long that takes.
pub(crate) async fn keep(
    store: &DeadLetters,
    options: &PipelineOptions,
    range: &Range,
    bad: Vec<BadMessage>,
    view: &View,
) {
    let source = Arc::new(source(options, range));
    let mut dead_letters: Vec<MessageDeadLetter> =
        bad.into_iter().map(|message| dead_letter(source.clone(), range.partition, message)).collect();
    let mut backoff = endless_retries();
    while !dead_letters.is_empty() {
        match store.keep_messages(dead_letters).await {
            Ok(()) => return,
            Err(MessagesNotKept { dead_letters: left, why }) => {
                view.trouble(ErrorKind::DeadLetters, &format!("messages can't be kept as dead letters: {why}"));
                dead_letters = left;
            }
        }
        backoff.pause().await;
    }
}

fn dead_letter(source: Arc<MessageSource>, partition: i32, message: BadMessage) -> MessageDeadLetter {
    let BadMessage { offset, timestamp_ms, key, headers, value, code, error, was_read } = message;
    let text = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
    MessageDeadLetter {
        source,
        partition,
        offset,
        timestamp_ms,
        key,
        headers: headers.into_iter().map(|(name, value)| (text(name), value)).collect(),
        value,
        code,
        error,
        was_read,
        attempts: 1,
        failed_wall_micros: (wall_ms().max(0) as u64).saturating_mul(1_000),
    }
}
