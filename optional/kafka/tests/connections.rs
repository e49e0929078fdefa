//! Connections to a broker that misbehaves. It is a fake, since a real broker can't be made to misbehave. It
//! reads whole requests and answers with recorded bytes of Kafka 4.1, or with the bytes that a test gives it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windrow_kafka::{Client, ClientOptions, Connection, Error, HeartbeatRequest, KafkaErrorCode, Purpose, Sasl};

const RECORDED_PORT: u32 = 39092;
const METADATA: i16 = 3;
const HEARTBEAT: i16 = 12;
const SASL_HANDSHAKE: i16 = 17;
const API_VERSIONS: i16 = 18;
const SASL_AUTHENTICATE: i16 = 36;

/// The fake's reaction to a heartbeat, whose generation is the test's own number.
type Behaviour = fn(generation: i32) -> Reaction;

enum Reaction {
    /// A body that is sent behind the correlation id (and, the API being flexible, behind an empty list of tags).
    Answer(Vec<u8>),
    /// Bytes that are sent as they are.
    Raw(Vec<u8>),
    Silence,
}

struct Fake {
    port: u16,
    accepted: Arc<AtomicUsize>,
}

impl Fake {
    async fn start(behaviour: Behaviour) -> Fake {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counted = accepted.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, port, behaviour));
            }
        });
        Fake { port, accepted }
    }

    fn options(&self) -> ClientOptions {
        let mut options = ClientOptions::new(vec![format!("127.0.0.1:{}", self.port)]);
        options.retry_for_ms = 2_000;
        options.max_answer_bytes = 1 << 20;
        options
    }

    async fn connection(&self) -> Connection {
        let client = Client::connect(self.options()).await.unwrap();
        client.connection(1, Purpose::Group).await.unwrap()
    }
}

async fn serve(mut stream: TcpStream, port: u16, behaviour: Behaviour) -> std::io::Result<()> {
    loop {
        let size = stream.read_i32().await?;
        let mut request = vec![0; size as usize];
        stream.read_exact(&mut request).await?;
        let (api, correlation_id) = (i16::from_be_bytes([request[0], request[1]]), &request[4..8]);
        let reaction = match api {
            API_VERSIONS => recorded("api_versions_v3", port),
            METADATA => recorded("metadata_v12", port),
            SASL_HANDSHAKE => recorded("sasl_handshake_v1", port),
            SASL_AUTHENTICATE => Reaction::Answer([&[0, 0, 0xFF, 0xFF, 0, 0, 0, 0][..], &2i64.to_be_bytes()].concat()),
            HEARTBEAT => behaviour(generation(&request)),
            other => panic!("request {other}"),
        };
        match reaction {
            Reaction::Answer(body) => {
                let size = correlation_id.len() + body.len();
                let frame = [&(size as i32).to_be_bytes(), correlation_id, &body].concat();
                stream.write_all(&frame).await?;
            }
            Reaction::Raw(bytes) => stream.write_all(&bytes).await?,
            Reaction::Silence => {}
        }
    }
}

/// Returns a recorded answer without its correlation id, and with the fake's own port.
fn recorded(name: &str, port: u16) -> Reaction {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.bin"));
    let mut body = std::fs::read(path).unwrap().split_off(4);
    if let Some(at) = body.windows(4).position(|window| window == RECORDED_PORT.to_be_bytes()) {
        body[at..at + 4].copy_from_slice(&u32::from(port).to_be_bytes());
    }
    Reaction::Answer(body)
}

/// Returns the generation in a heartbeat. It stands behind the head (whose client id is "windrow", without
/// tags) and the group "g".
fn generation(request: &[u8]) -> i32 {
    let start = 8 + 2 + "windrow".len() + 1 + 2;
    i32::from_be_bytes(request[start..start + 4].try_into().unwrap())
}

fn heartbeat(generation_id: i32) -> HeartbeatRequest {
    HeartbeatRequest { group: "g".into(), generation_id, member_id: "m".into(), group_instance_id: None }
}

fn heartbeat_answer(throttle_time_ms: i32, error: i16) -> Vec<u8> {
    // The tags of the head, the fields, the tags of the body.
    [&[0][..], &throttle_time_ms.to_be_bytes(), &error.to_be_bytes(), &[0]].concat()
}

#[tokio::test]
async fn everyone_gets_the_answer_to_what_they_asked() {
    let fake = Fake::start(|generation| Reaction::Answer(heartbeat_answer(0, generation as i16))).await;
    let connection = fake.connection().await;
    let mut calls = tokio::task::JoinSet::new();
    for generation in 0..500 {
        let connection = connection.clone();
        calls.spawn(async move { (generation, connection.call(&heartbeat(generation)).await.unwrap().error) });
    }
    while let Some(done) = calls.join_next().await {
        let (generation, error) = done.unwrap();
        assert_eq!(error, KafkaErrorCode(generation as i16));
    }
}

#[tokio::test]
async fn who_gives_up_disturbs_nobody() {
    let fake = Fake::start(|generation| Reaction::Answer(heartbeat_answer(0, generation as i16))).await;
    let connection = fake.connection().await;
    for generation in 0..200 {
        let given_up = connection.clone();
        let call = tokio::spawn(async move { given_up.call(&heartbeat(1_000)).await });
        tokio::task::yield_now().await;
        call.abort();
        assert_eq!(connection.call(&heartbeat(generation)).await.unwrap().error, KafkaErrorCode(generation as i16));
    }
}

#[tokio::test]
async fn where_one_answer_is_stuck_the_connection_ends_and_a_new_one_is_made() {
    let fake = Fake::start(|generation| match generation {
        1 => Reaction::Silence,
        _ => Reaction::Answer(heartbeat_answer(0, 0)),
    })
    .await;
    let mut options = fake.options();
    // All that is answered has to be within this time too.
    options.request_timeout_ms = 3_000;
    let client = Client::connect(options).await.unwrap();
    let connection = client.connection(1, Purpose::Group).await.unwrap();
    let error = connection.call(&heartbeat(1)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { after_ms: 3_000, .. }) && error.is_retriable(), "{error}");
    assert!(connection.is_closed());
    let again = connection.call(&heartbeat(2)).await.unwrap_err();
    assert_eq!(again, error);
    let before = fake.accepted.load(Ordering::SeqCst);
    let connection = client.connection(1, Purpose::Group).await.unwrap();
    assert!(connection.call(&heartbeat(2)).await.is_ok());
    assert_eq!(fake.accepted.load(Ordering::SeqCst), before + 1);
}

#[tokio::test]
async fn a_connection_is_used_again_and_each_purpose_has_its_own() {
    let fake = Fake::start(|_| Reaction::Silence).await;
    let client = Client::connect(fake.options()).await.unwrap();
    for _ in 0..3 {
        for purpose in [Purpose::Control, Purpose::Fetch, Purpose::Group, Purpose::Commit] {
            client.connection(1, purpose).await.unwrap();
        }
    }
    // One of them asked for the metadata.
    assert_eq!(fake.accepted.load(Ordering::SeqCst), 5);
    let error = client.connection(9, Purpose::Fetch).await.unwrap_err();
    assert!(error.to_string().contains("doesn't name it"), "{error}");
}

#[tokio::test]
async fn nonsense_ends_the_connection() {
    for (behaviour, part) in [
        ((|_| Reaction::Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())) as Behaviour, "is it a Kafka broker"),
        (|_| Reaction::Raw([&4i32.to_be_bytes()[..], &99i32.to_be_bytes()].concat()), "nothing that was asked"),
        (|_| Reaction::Raw([&2i32.to_be_bytes()[..], &[0, 0]].concat()), "nothing that was asked"),
        (|_| Reaction::Raw((-5i32).to_be_bytes().to_vec()), "-5 bytes"),
        (|_| Reaction::Answer(vec![0, 0, 0]), "ends too early"),
        (|_| Reaction::Answer([heartbeat_answer(0, 0), vec![1]].concat()), "bytes behind its end"),
    ] {
        let fake = Fake::start(behaviour).await;
        let connection = fake.connection().await;
        let error = connection.call(&heartbeat(1)).await.unwrap_err();
        assert!(error.to_string().contains(part) && error.is_retriable(), "{part}: {error}");
        assert!(connection.is_closed(), "{part}");
    }
}

#[tokio::test]
async fn a_broker_that_wants_to_be_left_alone_is() {
    let fake = Fake::start(|generation| Reaction::Answer(heartbeat_answer(generation, 0))).await;
    let connection = fake.connection().await;
    let begun = Instant::now();
    connection.call(&heartbeat(150)).await.unwrap();
    connection.call(&heartbeat(0)).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn before_a_login_runs_out_a_new_connection_is_made() {
    let fake = Fake::start(|_| Reaction::Answer(heartbeat_answer(0, 0))).await;
    let mut options = fake.options();
    options.sasl = Some(Sasl::Plain { user: "ann".into(), password: "a secret".into() });
    assert_eq!(format!("{:?}", options.sasl), r#"Some(PLAIN as ann)"#);
    let client = Client::connect(options).await.unwrap();
    let first = client.connection(1, Purpose::Group).await.unwrap();
    // The fake's logins hold for 2 ms: four fifths of it are over when the time is.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2) {
        tokio::task::yield_now().await;
    }
    let before = fake.accepted.load(Ordering::SeqCst);
    client.connection(1, Purpose::Group).await.unwrap();
    assert_eq!(fake.accepted.load(Ordering::SeqCst), before + 1);
    assert!(first.call(&heartbeat(1)).await.is_ok(), "what is under way comes to its end");
}

#[tokio::test]
async fn nobody_there_is_said() {
    let mut options = ClientOptions::new(vec!["127.0.0.1:1".to_owned()]);
    options.retry_for_ms = 200;
    let error = Client::connect(options).await.unwrap_err();
    assert!(error.to_string().contains("connect") && error.to_string().contains("NETWORK_ERROR"), "{error}");
    assert!(error.is_retriable());
}
