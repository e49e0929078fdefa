//! Reading a dead letter again, in the way that the pipeline reads messages now.

use std::sync::Arc;
use std::time::Duration;

use crate::messages::{Headers, Message, MessageReader};
use crate::{Client, TopicPartition};
use tokio::sync::watch;
use windrow_columns::Rows;
use windrow_engine::dead_letters::{MessageDeadLetter, MessageRows};

use crate::pipeline::engine::chunk::{Reading, TargetRows};
use crate::pipeline::engine::read::Readers;
use crate::pipeline::engine::replay::on_thread;

/// Plan and client of a pipeline's latest session.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) reading: Arc<Reading>,
    pub(crate) client: Client,
}

pub(crate) struct Current {
    known: watch::Sender<Option<Known>>,
}

/// Time to wait for a pipeline that has only just started: it may not have reached its brokers and its table yet.
const PATIENCE: Duration = Duration::from_secs(10);

impl Default for Current {
    fn default() -> Self {
        Current { known: watch::Sender::new(None) }
    }
}

impl Current {
    pub(crate) fn set(&self, reading: Arc<Reading>, client: Client) {
        self.known.send_replace(Some(Known { reading, client }));
    }

    async fn get(&self) -> Option<Known> {
        let mut known = self.known.subscribe();
        tokio::time::timeout(PATIENCE, known.wait_for(Option::is_some)).await.ok()?.ok()?;
        self.known.borrow().clone()
    }
}

pub(crate) async fn revive(
    current: &Current,
    readers: &Arc<Readers>,
    group: &str,
    dead_letter: &MessageDeadLetter,
) -> Result<MessageRows, String> {
    let known = current.get().await.ok_or("the pipeline has not reached its brokers and its table yet")?;
    let Known { reading, client } = known;
    let partition = TopicPartition::new(dead_letter.source.topic.as_str(), dead_letter.partition);
    let committed = client.committed(group, std::slice::from_ref(&partition)).await;
    let committed = committed.map_err(|error| format!("the offsets of the group can't be read: {error}"))?;
    let offset = committed.into_iter().find_map(|offset| offset.committed).map(|committed| committed.offset);
    // Until then its batch may come again, and would bring the message along.
    if offset.is_none_or(|offset| offset <= dead_letter.offset) {
        return Err("the batch that the message was in is not stored yet; try again when it is".to_owned());
    }
    let (readers, dead_letter) = (readers.clone(), dead_letter.clone());
    on_thread(move || read(&readers, &reading, &dead_letter)).await
}

fn read(readers: &Readers, reading: &Reading, dead_letter: &MessageDeadLetter) -> Result<MessageRows, String> {
    let headers: Vec<(Vec<u8>, Option<Vec<u8>>)> =
        dead_letter.headers.iter().map(|(name, value)| (name.clone().into_bytes(), value.clone())).collect();
    let message = Message {
        offset: dead_letter.offset,
        timestamp_ms: dead_letter.timestamp_ms,
        key: dead_letter.key.as_deref(),
        value: dead_letter.value.as_deref(),
        headers: Headers::Kept(&headers),
    };
    let mut reader = MessageReader::new(&reading.plan, &dead_letter.source.topic, dead_letter.partition);
    let outcome = readers.read_one(reading, &mut reader, &message).map_err(|trouble| trouble.into_text())?;
    outcome?;
    let mut rows = reader.finish().into_iter().map(|run| reading.rows(run));
    let TargetRows { target, block, .. } = rows.next().ok_or("the message has no rows")?;
    match rows.next() {
        None => Ok(MessageRows { destination: (*target).clone(), rows: Rows::Parsed(block) }),
        Some(_) => Err("rows of the message leave out different columns that have DEFAULT expressions".to_owned()),
    }
}
