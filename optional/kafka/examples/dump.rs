//! A program that prints a topic's records: `dump BROKERS TOPIC [NAME=VALUE...]`. Each record is one line of
//! text: partition, offset, timestamp, key, value.
//!
//! Names: `ca`, `certificate`, `key` (files in PEM form; any of them means TLS), `sasl` (PLAIN, SCRAM-SHA-256,
//! SCRAM-SHA-512, OAUTHBEARER), `user`, `token_file`, `token_command`, `isolation` (read_uncommitted), `from_ms` (a
//! time to begin at), `last` (this number of the newest records), `range` (PARTITION:FIRST-LAST, whose gaps are
//! printed too), `topic_id` (the id of the topic that is meant). The password is taken from the variable
//! KAFKA_PASSWORD. The first error ends the program, with a text and status 1.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

use windrow_kafka::{
    ByTopic, Client, ClientOptions, Connection, Decompressor, FetchPartition, FetchRequest, FetchTopic,
    FetchedPartition, Isolation, KafkaErrorCode, OffsetAt, Purpose, ReadOptions, Sasl, ScramHash, TlsOptions,
    TokenSource, TopicId, TopicPartition, VisibleBatches,
};

const FETCH_BYTES: i32 = 4 << 20;

type Failure = Box<dyn std::error::Error>;
type Names = HashMap<String, String>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match dump().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn dump() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let (Some(brokers), Some(topic)) = (words.next(), words.next()) else {
        return Err("BROKERS and TOPIC are needed".into());
    };
    let names: Option<Names> =
        words.map(|word| word.split_once('=').map(|(name, value)| (name.into(), value.into()))).collect();
    let names = names.ok_or("what follows the topic has to be NAME=VALUE")?;
    let mut options = ClientOptions::new(brokers.split(',').map(str::to_owned).collect());
    options.tls = tls(&names);
    options.sasl = sasl(&names)?;
    options.retry_for_ms = 5_000;
    let client = Client::connect(options).await?;
    let topic: Arc<str> = topic.into();
    if let Some(count) = names.get("last") {
        let sample = client.sample(topic, count.parse()?).await?;
        for record in &sample.records {
            print_record(
                record.partition,
                record.offset,
                record.timestamp_ms,
                record.key.as_deref(),
                record.value.as_deref(),
            );
        }
        return Ok(());
    }
    if let Some(range) = names.get("range") {
        return print_range(&client, topic, range, names.get("topic_id")).await;
    }
    let metadata = client.metadata(Some(vec![topic.clone()])).await?;
    let found =
        metadata.topics.into_iter().find(|each| each.name == topic).ok_or("the broker doesn't speak of the topic")?;
    if found.error != KafkaErrorCode::NONE {
        return Err(format!("{topic}: {}", found.error).into());
    }
    let isolation = match names.get("isolation").map(String::as_str) {
        Some("read_uncommitted") => Isolation::ReadUncommitted,
        _ => Isolation::ReadCommitted,
    };
    let from = names.get("from_ms").map_or(Ok(OffsetAt::Earliest), |text| text.parse().map(OffsetAt::TimestampMs))?;
    for partition in found.partitions {
        let range = range(&client, &topic, partition.partition, isolation, from).await?;
        let connection = client.connection(partition.leader_id, Purpose::Fetch).await?;
        print_partition(&connection, &topic, partition.partition, isolation, range).await?;
    }
    Ok(())
}

fn print_record(partition: i32, offset: i64, timestamp_ms: i64, key: Option<&[u8]>, value: Option<&[u8]>) {
    let text = |bytes: Option<&[u8]>| bytes.map_or("null".into(), |bytes| bytes.escape_ascii().to_string());
    println!("{partition}\t{offset}\t{timestamp_ms}\t{}\t{}", text(key), text(value));
}

async fn print_range(client: &Client, topic: Arc<str>, range: &str, topic_id: Option<&String>) -> Result<(), Failure> {
    let (partition, offsets) = range.split_once(':').ok_or("a range is PARTITION:FIRST-LAST")?;
    let (first, last) = offsets.split_once('-').ok_or("a range is PARTITION:FIRST-LAST")?;
    let (partition, offsets) = (partition.parse()?, first.parse()?..=last.parse()?);
    let mut id = TopicId::default();
    if let Some(text) = topic_id {
        for (index, byte) in id.0.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2).ok_or("a topic's id has 32 digits")?, 16)?;
        }
    }
    let named = TopicPartition::new(topic, partition);
    let options = ReadOptions { gone_after_ms: client.options().retry_for_ms, ..ReadOptions::default() };
    let mut reader = client.read_range(named, id, offsets.clone(), options);
    let mut decompressor = Decompressor::new(64 << 20);
    while let Some(part) = reader.next().await? {
        for batch in part.batches {
            for record in decompressor.records(&batch?)? {
                let record = record?;
                if record.offset >= part.from_offset && offsets.contains(&record.offset) {
                    print_record(partition, record.offset, record.timestamp_ms, record.key, record.value);
                }
            }
        }
    }
    for gap in reader.gaps() {
        eprintln!("gap\t{}\t{}", gap.start(), gap.end());
    }
    Ok(())
}

async fn range(
    client: &Client,
    topic: &Arc<str>,
    partition: i32,
    isolation: Isolation,
    from: OffsetAt,
) -> Result<std::ops::Range<i64>, Failure> {
    let mut ends = [0; 2];
    for (end, at) in ends.iter_mut().zip([from, OffsetAt::Latest]) {
        *end = client.list_offset(&TopicPartition::new(topic.clone(), partition), isolation, at).await?;
    }
    let [first, end] = ends;
    // No record is so late.
    Ok(if first < 0 { end..end } else { first..end })
}

async fn print_partition(
    connection: &Connection,
    topic: &Arc<str>,
    partition: i32,
    isolation: Isolation,
    range: std::ops::Range<i64>,
) -> Result<(), Failure> {
    let mut decompressor = Decompressor::new(64 << 20);
    let mut position = range.start;
    while position < range.end {
        let fetched = fetch(connection, topic, partition, isolation, position).await?;
        let mut batches = VisibleBatches::new(&fetched, isolation, position);
        for batch in batches.by_ref() {
            for record in decompressor.records(&batch?)? {
                let record = record?;
                if (position..range.end).contains(&record.offset) {
                    print_record(partition, record.offset, record.timestamp_ms, record.key, record.value);
                }
            }
        }
        position = batches.position();
    }
    Ok(())
}

async fn fetch(
    connection: &Connection,
    topic: &Arc<str>,
    partition: i32,
    isolation: Isolation,
    offset: i64,
) -> Result<FetchedPartition, Failure> {
    let wanted = FetchPartition { partition, current_leader_epoch: -1, offset, max_bytes: FETCH_BYTES };
    let request = FetchRequest {
        max_wait_ms: 1_000,
        min_bytes: 1,
        max_bytes: FETCH_BYTES,
        isolation,
        topics: vec![ByTopic {
            topic: FetchTopic { name: topic.clone(), id: TopicId::default() },
            partitions: vec![wanted],
        }],
    };
    let answer = connection.call(&request).await?;
    let fetched = answer.topics.into_iter().flat_map(|topic| topic.partitions).next().ok_or("an empty answer")?;
    match fetched.error {
        KafkaErrorCode::NONE => Ok(fetched),
        error => Err(format!("{topic} {partition}: {error}").into()),
    }
}

fn tls(names: &Names) -> Option<TlsOptions> {
    let file = |name: &str| names.get(name).map(Into::into);
    let options = TlsOptions { ca_file: file("ca"), certificate_file: file("certificate"), key_file: file("key") };
    ["ca", "certificate", "key"].iter().any(|name| names.contains_key(*name)).then_some(options)
}

fn sasl(names: &Names) -> Result<Option<Sasl>, Failure> {
    let user = names.get("user").cloned().unwrap_or_default();
    let password = std::env::var("KAFKA_PASSWORD").unwrap_or_default();
    Ok(Some(match names.get("sasl").map(String::as_str) {
        None => return Ok(None),
        Some("PLAIN") => Sasl::Plain { user, password },
        Some("SCRAM-SHA-256") => Sasl::Scram { hash: ScramHash::Sha256, user, password },
        Some("SCRAM-SHA-512") => Sasl::Scram { hash: ScramHash::Sha512, user, password },
        Some("OAUTHBEARER") => {
            let token = match (names.get("token_file"), names.get("token_command")) {
                (Some(path), _) => TokenSource::File(path.into()),
                (None, Some(command)) => TokenSource::Command(command.split(' ').map(str::to_owned).collect()),
                (None, None) => return Err("OAUTHBEARER needs token_file or token_command".into()),
            };
            Sasl::OauthBearer { token, extensions: Vec::new() }
        }
        Some(other) => return Err(format!("'{other}' is no mechanism").into()),
    }))
}
