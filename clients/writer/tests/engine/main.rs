//! The writer for Rust programs, against the embedded ClickHouse.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use windrow_clickhouse::{Call, Client, ClientOptions, Credentials, Endpoint, ErrorCode};
use windrow_embedded::{run_engine_if_asked, Embedded, EmbeddedOptions};
use windrow_writer::{Reason, Uuid, Writer, WriterBuffer, WriterError, WriterOptions};

const MINUTE: Duration = Duration::from_secs(60);

struct World {
    client: Arc<Client>,
    folder: PathBuf,
}

impl World {
    async fn sql(&self, statement: &str) -> String {
        let call = Call::new(&self.client.endpoint().credentials, statement);
        self.client.call(call).await.expect(statement).text().trim_end().to_owned()
    }

    async fn open(&self, table: &str, columns: &[&str], options: WriterOptions) -> Writer {
        Writer::open(self.client.clone(), table, columns, options).await.expect(table)
    }
}

/// Returns options whose batches are sent only when a flush asks for them.
fn patient() -> WriterOptions {
    WriterOptions { flush_interval: Duration::from_secs(3600), ..WriterOptions::default() }
}

fn client(port: u16, user: &str, password: &str) -> Arc<Client> {
    let credentials = Credentials { user: user.into(), password: password.into() };
    let endpoint = Endpoint { host: "127.0.0.1".into(), port, native_port: None, tls: false, credentials };
    Arc::new(Client::new(endpoint, ClientOptions::default()).expect("a client"))
}

async fn rows_of_all_kinds_are_stored(world: &World) {
    world
        .sql(
            "CREATE TABLE kinds (a Int32, s LowCardinality(String), n Nullable(UInt8), t DateTime64(3, 'UTC'), u UUID, \
             l Array(Nullable(String)), d String DEFAULT 'given', m String MATERIALIZED 'made') ENGINE = MergeTree ORDER BY a",
        )
        .await;
    let writer = world.open("kinds", &["a", "s", "n", "t", "u", "l"], patient()).await;
    let time = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    let uuid = Uuid(0x61f0c404_5cb3_11e7_907b_a6006ad3dba0);
    writer.write_row((1, "x", Some(7_u8), time, uuid, vec![Some("y"), None])).await.expect("taken");
    writer.write_rows([(2, String::new(), None::<u8>, time, uuid, Vec::<Option<&str>>::new())]).await.expect("taken");
    writer.flush().await;
    let stored = world.sql("SELECT *, m FROM kinds ORDER BY a FORMAT CSV").await;
    let one = r#"1,"x",7,"2023-11-14 22:13:20.123","61f0c404-5cb3-11e7-907b-a6006ad3dba0","['y',NULL]","given","made""#;
    let two = r#"2,"",\N,"2023-11-14 22:13:20.123","61f0c404-5cb3-11e7-907b-a6006ad3dba0","[]","given","made""#;
    assert_eq!(stored, format!("{one}\n{two}"));
    assert_eq!(writer.statistics().batches_stored, 1);
}

async fn what_does_not_fit_is_refused_at_once(world: &World) {
    world.sql("CREATE TABLE strict (a Int32, s String) ENGINE = MergeTree ORDER BY a").await;
    let writer = world.open("default.strict", &[], patient()).await;
    let error = writer.write_row((1_i64, "x")).await.expect_err("too wide");
    assert_eq!(error.to_string(), "column a: i64 can't be written to Int32 (row 0)");
    assert!(writer.try_write_row((1, "x")).expect("it fits"));
    for (table, columns, text) in [("strict", &["z"][..], "no column z"), ("nowhere", &[], "no table nowhere")] {
        let error = Writer::open(world.client.clone(), table, columns, patient()).await.map(|_| ()).expect_err(table);
        assert!(matches!(&error, WriterError::Table(_)) && error.to_string().contains(text), "{error}");
    }
}

async fn only_the_guilty_rows_are_handed_over(world: &World) {
    world.sql("CREATE TABLE guarded (a Int32, CONSTRAINT small CHECK a < 1000) ENGINE = MergeTree ORDER BY a").await;
    let writer = world.open("guarded", &[], patient()).await;
    writer
        .write_rows((0..200).map(|number| (if number % 90 == 45 { 5000 + number } else { number },)))
        .await
        .expect("taken");
    writer.flush().await;
    assert_eq!(world.sql("SELECT count(), max(a) FROM guarded").await, "198\t199");
    let errors: Vec<_> = writer.errors().collect();
    let mut guilty: Vec<i32> = errors
        .iter()
        .map(|error| {
            assert_eq!(
                (error.code, error.reason, error.rows.count()),
                (Some(ErrorCode::VIOLATED_CONSTRAINT), Reason::Values, 1)
            );
            i32::from_le_bytes(error.rows.bytes()[..].try_into().expect("an Int32"))
        })
        .collect();
    guilty.sort_unstable();
    assert_eq!(guilty, [5045, 5135]);
}

async fn with_wait_a_call_returns_when_its_rows_are_stored(world: &World) {
    world.sql("CREATE TABLE waited (a Int32, CONSTRAINT small CHECK a < 1000) ENGINE = MergeTree ORDER BY a").await;
    let options = WriterOptions { wait: true, flush_interval: Duration::ZERO, ..WriterOptions::default() };
    let writer = world.open("waited", &[], options).await;
    writer.write_row((1,)).await.expect("stored");
    assert_eq!(world.sql("SELECT count() FROM waited").await, "1");
    let error = writer.write_rows([(2,), (1000,), (3,)]).await.expect_err("one is refused");
    assert!(
        matches!(&error, WriterError::NotStored(error) if error.code == Some(ErrorCode::VIOLATED_CONSTRAINT)),
        "{error}"
    );
    assert_eq!(world.sql("SELECT groupArray(a) FROM (SELECT a FROM waited ORDER BY a)").await, "[1,2,3]");
}

async fn a_disk_keeps_rows_for_the_next_writer(world: &World) {
    world
        .sql("CREATE TABLE kept (a Int32) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100")
        .await;
    let disk = || WriterOptions { buffer: WriterBuffer::disk(&world.folder), ..patient() };
    let first = world.open("kept", &[], disk()).await;
    first.write_rows((0..12_000).map(|number| (number,))).await.expect("taken");
    let report = first.close(Duration::ZERO).await;
    let second = world.open("kept", &[], disk()).await;
    second.write_row((12_000,)).await.expect("taken");
    assert_eq!(second.close(MINUTE).await.rows_kept, 0);
    assert_eq!(world.sql("SELECT count(), uniqExact(a) FROM kept").await, "12001\t12001", "{report:?}");
    assert_eq!(std::fs::read_dir(&world.folder).expect("a folder").count(), 0);
}

async fn a_table_that_has_changed_refuses_the_rows(world: &World) {
    world.sql("CREATE TABLE changed (a Int32) ENGINE = MergeTree ORDER BY tuple()").await;
    let writer = world.open("changed", &[], patient()).await;
    writer.write_row((1,)).await.expect("taken");
    world.sql("ALTER TABLE changed MODIFY COLUMN a String").await;
    writer.flush().await;
    let error = writer.errors().next().expect("an error");
    assert_eq!((error.code, error.reason, error.rows.count()), (Some(ErrorCode::INCORRECT_DATA), Reason::Refused, 1));
    assert_eq!(world.sql("SELECT count() FROM changed").await, "0");
}

async fn in_order_rows_are_stored_as_they_were_written(world: &World) {
    world
        .sql("CREATE TABLE lined (a UInt32, p UInt64 MATERIALIZED now64(9)) ENGINE = MergeTree ORDER BY tuple()")
        .await;
    let options =
        WriterOptions { ordered: true, batch_rows: 10, flush_interval: Duration::ZERO, ..WriterOptions::default() };
    let writer = world.open("lined", &["a"], options).await;
    for number in 0..100_u32 {
        writer.write_row((number,)).await.expect("taken");
    }
    writer.close(MINUTE).await;
    let by_part = "SELECT count() = 100 AND groupArray(a) = range(100) FROM (SELECT a FROM lined ORDER BY p, a)";
    assert_eq!(world.sql(by_part).await, "1");
}

/// Checks that with the server away what is held stays bounded, a row that finds no room is not taken, and
/// closing ends.
async fn without_a_server_memory_and_closing_are_bounded(world: &World) {
    world.sql("CREATE TABLE away (a Int32) ENGINE = MergeTree ORDER BY a").await;
    let options = WriterOptions { max_bytes: 8000, flush_interval: Duration::ZERO, ..WriterOptions::default() };
    let relay = Relay::start(world.client.endpoint().port);
    let credentials = &world.client.endpoint().credentials;
    let writer = Writer::open(client(relay.port, &credentials.user, &credentials.password), "away", &[], options)
        .await
        .expect("open");
    relay.cut().await;
    let mut taken = 0;
    while writer.try_write_row((taken,)).expect("it fits") {
        taken += 1;
    }
    assert_eq!(taken, 1000, "a row counts for eight bytes");
    let report = writer.close(Duration::from_millis(50)).await;
    assert_eq!(report.rows_handed_over, 1000);
    assert_eq!(writer.errors().map(|error| error.rows.count()).sum::<usize>(), 1000);
}

/// A relay that passes connections on until it is cut.
struct Relay {
    port: u16,
    cut: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Relay {
    fn start(to: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let (cut, mut is_cut) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            let mut passing = tokio::task::JoinSet::new();
            loop {
                tokio::select! {
                    _ = &mut is_cut => break,
                    Ok((mut near, _)) = listener.accept() => passing.spawn(async move {
                        let mut far = tokio::net::TcpStream::connect(("127.0.0.1", to)).await?;
                        tokio::io::copy_bidirectional(&mut near, &mut far).await
                    }),
                };
            }
            passing.shutdown().await;
        });
        Relay { port, cut, task }
    }

    /// Cuts the relay. Returns when nothing passes any more.
    async fn cut(self) {
        let _ = self.cut.send(());
        self.task.await.expect("the relay ends");
    }
}

async fn run() {
    let folder = std::env::temp_dir().join(format!("windrow-writer-engine-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("rows")).expect("a folder");
    let embedded = Embedded::start(EmbeddedOptions::new(folder.join("engine"))).await.expect("the engine starts");
    let endpoint = embedded.endpoint();
    let world =
        World { client: client(endpoint.http_port, &endpoint.user, &endpoint.password), folder: folder.join("rows") };
    let mut passed = 0;
    macro_rules! tests {
        ($($name:ident)*) => {$(
            $name(&world).await;
            println!("test {} ... ok", stringify!($name));
            passed += 1;
        )*};
    }
    tests! {
        rows_of_all_kinds_are_stored
        what_does_not_fit_is_refused_at_once
        only_the_guilty_rows_are_handed_over
        with_wait_a_call_returns_when_its_rows_are_stored
        a_disk_keeps_rows_for_the_next_writer
        a_table_that_has_changed_refuses_the_rows
        in_order_rows_are_stored_as_they_were_written
        without_a_server_memory_and_closing_are_bounded
    }
    embedded.stop(MINUTE).await;
    let _ = std::fs::remove_dir_all(&folder);
    println!("test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

fn main() {
    run_engine_if_asked();
    tokio::runtime::Runtime::new().expect("a runtime").block_on(run());
}
