//! Requests that a conductor leaves to others, each sent by a task of its own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::client::{Client, Connection, Purpose};
use crate::consumer::check::Divergence;
use crate::consumer::event::Claim;
use crate::consumer::shared::Shared;
use crate::error::Error;
use crate::group::{Assignor, Call, Input, Member, Task};
use crate::reading::CommittedOffset;
use crate::topic_partition::TopicPartition;
use crate::wire::{Isolation, ListedOffset, MetadataResponse, OffsetAt, Request};

/// The longest wait for the answer to a LeaveGroup request. Without it, the session timeout has the same effect.
const FAREWELL: Duration = Duration::from_secs(5);

pub(super) enum Done {
    Group(Input),
    Planned {
        call: Call,
        asked: Vec<Arc<str>>,
        members: Vec<Member>,
        assignor: Assignor,
        metadata: Result<MetadataResponse, Error>,
    },
    Metadata {
        asked: Option<Vec<Arc<str>>>,
        metadata: Result<MetadataResponse, Error>,
    },
    Committed {
        epochs: Vec<(TopicPartition, u64)>,
        found: Result<(Vec<CommittedOffset>, MetadataResponse), Error>,
    },
    Range {
        claim: Claim,
        start: u64,
        offset: i64,
        divergence: Option<Divergence>,
        found: Result<Ends, Error>,
    },
    /// The latest offset of each partition, and the earliest one where that was not known.
    Watermarks(Vec<(TopicPartition, ListedOffset, Option<i64>)>),
}

/// The ends of a partition, with the metadata of its topic.
pub(super) struct Ends {
    pub earliest: i64,
    pub latest: i64,
    pub metadata: MetadataResponse,
}

pub(super) async fn ask_coordinator(
    client: Client,
    shared: Arc<Shared>,
    group: String,
    session_timeout: Duration,
    call: Call,
    task: Task,
) -> Done {
    if let Task::Leave(request) = &task {
        let left = async {
            // The connection for the group may be waiting for the others to join.
            ask(coordinator(&client, &shared, &group, Purpose::Commit).await, request).await
        };
        let _ = tokio::time::timeout(FAREWELL, left).await;
        return Done::Group(Input::Left(call));
    }
    let connection = coordinator(&client, &shared, &group, Purpose::Group).await;
    Done::Group(match task {
        Task::Join(request) => Input::Joined(call, ask(connection, &request).await),
        Task::Sync(request) => Input::Synced(call, ask(connection, &request).await),
        Task::Heartbeat(request) => {
            // Without an answer for so long we may be taken for dead; whether the broker is, shows on another connection.
            let answer = match connection {
                Ok(connection) => in_time(&connection, &request, session_timeout).await,
                Err(error) => Err(error),
            };
            Input::Beaten(call, answer.map(|answer| answer.error))
        }
        Task::Leave(_) | Task::Plan { .. } => Input::Tick,
    })
}

/// Returns a connection to the broker that coordinates the group. The broker is looked up if it isn't known.
pub(in crate::consumer) async fn coordinator(
    client: &Client,
    shared: &Shared,
    group: &str,
    purpose: Purpose,
) -> Result<Connection, Error> {
    let known = shared.state().coordinator;
    let node_id = match known {
        Some(node_id) => node_id,
        None => {
            let node_id = client.coordinator_once(group).await?;
            shared.state().coordinator = Some(node_id);
            node_id
        }
    };
    client.connection(node_id, purpose).await
}

async fn ask<R: Request>(connection: Result<Connection, Error>, request: &R) -> Result<R::Response, Error> {
    connection?.call(request).await
}

async fn in_time<R: Request>(connection: &Connection, request: &R, longest: Duration) -> Result<R::Response, Error> {
    match tokio::time::timeout(longest, connection.call(request)).await {
        Ok(answer) => answer,
        Err(_) => Err(connection.give_up(R::API.name, longest)),
    }
}

pub(super) async fn plan(client: Client, call: Call, assignor: Assignor, members: Vec<Member>) -> Done {
    let asked: BTreeSet<Arc<str>> =
        members.iter().flat_map(|member| member.subscription.topics.iter().cloned()).collect();
    let asked: Vec<Arc<str>> = asked.into_iter().collect();
    let metadata = client.metadata_once(Some(asked.clone())).await;
    Done::Planned { call, asked, members, assignor, metadata }
}

pub(super) async fn metadata(client: Client, asked: Option<Vec<Arc<str>>>) -> Done {
    let metadata = client.metadata_once(asked.clone()).await;
    Done::Metadata { asked, metadata }
}

pub(super) async fn committed(
    client: Client,
    group: String,
    epochs: Vec<(TopicPartition, u64)>,
    after: Duration,
) -> Done {
    tokio::time::sleep(after).await;
    let partitions: Vec<TopicPartition> = epochs.iter().map(|(partition, _)| partition.clone()).collect();
    let topics: BTreeSet<Arc<str>> = partitions.iter().map(|partition| partition.topic.clone()).collect();
    let found = async {
        let committed = client.committed(&group, &partitions).await?;
        let metadata = client.metadata_once(Some(topics.into_iter().collect())).await?;
        Ok((committed, metadata))
    };
    let found = found.await;
    Done::Committed { epochs, found }
}

pub(super) async fn range(
    client: Client,
    claim: Claim,
    start: u64,
    offset: i64,
    divergence: Option<Divergence>,
) -> Done {
    let named = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
    let ends = async {
        let earliest = client.list_offset(&named, Isolation::ReadUncommitted, OffsetAt::Earliest).await?;
        let latest = client.list_offset(&named, Isolation::ReadUncommitted, OffsetAt::Latest).await?;
        let metadata = client.metadata_once(Some(vec![claim.topic.clone()])).await?;
        Ok(Ends { earliest, latest, metadata })
    };
    let found = ends.await;
    Done::Range { claim, start, offset, divergence, found }
}

/// Asks for the ends of partitions. Those that can't be asked now will be asked again.
pub(super) async fn watermarks(client: Client, partitions: Vec<(TopicPartition, bool)>) -> Done {
    let all: Vec<TopicPartition> = partitions.iter().map(|(named, _)| named.clone()).collect();
    let new: Vec<TopicPartition> =
        partitions.into_iter().filter(|(_, is_new)| *is_new).map(|(named, _)| named).collect();
    // What readers may see: the end of a partition with an open transaction is before it.
    let latest = client.list_offsets(all, Isolation::ReadCommitted, OffsetAt::Latest).await.unwrap_or_default();
    let earliest = match new.is_empty() {
        true => Vec::new(),
        false => client.list_offsets(new, Isolation::ReadUncommitted, OffsetAt::Earliest).await.unwrap_or_default(),
    };
    let earliest_of = |named: &TopicPartition| {
        let found = earliest.iter().find(|(each, listed)| each == named && !listed.error.is_error());
        found.map(|(_, listed)| listed.offset)
    };
    let found = latest.into_iter().map(|(named, listed)| {
        let earliest = earliest_of(&named);
        (named, listed, earliest)
    });
    Done::Watermarks(found.collect())
}
