//! Tests of the demo's verdict against gateways that do what a real one must never do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use windrow_clickhouse::percent_decode;
use windrow_http::{Collected, Connection, Limits, NextRequest, RequestHead, ResponseBuilder, Stream};
use windrow_upclick::{DemoError, DemoOptions, DemoSummary, Destination, Inserts, Output, SideSummary, StopRequests};

/// The fault of the gateway with every fifth row; it stores all others.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    AcknowledgeAndLose,
    StoreTwice,
    Refuse,
}

struct Gateway {
    fault: Fault,
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    ids: Vec<String>,
    inserts: usize,
}

struct Reply {
    status: u16,
    body: String,
}

impl Gateway {
    fn reply(&self, head: &RequestHead, body: &[u8]) -> Reply {
        let target = String::from_utf8_lossy(&percent_decode(head.target())).into_owned();
        let mut rows = self.rows.lock().expect("no test panics with the lock");
        let ok = |body: String| Reply { status: 200, body };
        if target.contains("query=INSERT") {
            return self.insert(&mut rows, body);
        }
        if target.contains("system.parts") {
            return ok(format!("1\t{0}\t{0}\n", rows.ids.len()));
        }
        if target.contains("SELECT id") {
            return ok(rows.ids.iter().map(|id| format!("{id}\n")).collect());
        }
        if target.contains("SELECT city") {
            return ok(format!("Paris\t{}\t12.5\n", rows.ids.len()));
        }
        ok(String::new())
    }

    fn insert(&self, rows: &mut Rows, body: &[u8]) -> Reply {
        let text = String::from_utf8_lossy(body);
        let id = text.split('"').nth(3).expect("the id is the row's first value").to_owned();
        rows.inserts += 1;
        let copies = match self.fault {
            _ if !rows.inserts.is_multiple_of(5) => 1,
            Fault::None => 1,
            Fault::AcknowledgeAndLose => 0,
            Fault::StoreTwice => 2,
            Fault::Refuse => return Reply { status: 500, body: "Code: 241. DB::Exception: no memory".to_owned() },
        };
        rows.ids.extend(std::iter::repeat_n(id, copies));
        Reply { status: 200, body: String::new() }
    }
}

async fn serve(listener: TcpListener, gateway: Arc<Gateway>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, gateway.clone()));
    }
}

async fn answer(stream: TcpStream, gateway: Arc<Gateway>) {
    let mut connection = Connection::new(Stream::Plain(stream), Arc::new(Limits::default()));
    while let Ok(NextRequest::Request(head)) = connection.next_request().await {
        let (mut body, _) = connection.body().await.expect("the demo sends whole requests");
        let Ok(Collected::Whole(body)) = body.collect(1 << 20).await else { return };
        let reply = gateway.reply(&head, &body);
        let mut out = Vec::new();
        ResponseBuilder::new(&mut out, reply.status).field("X-ClickHouse-Query-Id", "1").body(reply.body.as_bytes());
        if connection.send(&out).await.is_err() {
            return;
        }
    }
}

/// Runs a demo whose first side waits until rows are stored. The other side inserts straight into a
/// ClickHouse without faults.
async fn run_against(fault: Fault) -> Result<SideSummary, SideSummary> {
    let (through, server) = start(fault).await;
    let (straight, other) = start(Fault::None).await;
    let options = DemoOptions {
        probes: 20,
        every: Duration::from_millis(500),
        // So long that a machine that stands still for two seconds has turns left.
        run_for: Some(Duration::from_secs(3)),
        output: Output::Plain,
        ..options(&[(&through, Inserts::Waiting), (&straight, Inserts::Synchronous)])
    };
    let outcome = run(options).await;
    server.abort();
    other.abort();
    let (summary, is_complete) = match outcome {
        Ok(summary) => (summary, true),
        Err(DemoError::Incomplete(summary)) => (*summary, false),
        Err(other) => panic!("no summary: {other}"),
    };
    let [through, straight] = summary.sides.try_into().expect("two sides");
    // The same rows went there, whatever became of them here.
    assert!(straight.is_straight && straight.is_complete() && straight.found == through.inserted, "{straight:?}");
    if is_complete {
        Ok(through)
    } else {
        Err(through)
    }
}

/// Runs the demo without a request to stop.
async fn run(options: DemoOptions) -> Result<DemoSummary, DemoError> {
    let (_sender, stop) = StopRequests::channel();
    windrow_upclick::run(options, stop).await
}

fn options(to: &[(&str, Inserts)]) -> DemoOptions {
    DemoOptions::new(to.iter().map(|(url, inserts)| Destination::new(*url, *inserts)).collect())
}

async fn start(fault: Fault) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("a bound port");
    let server = tokio::spawn(serve(listener, Arc::new(Gateway { fault, rows: Mutex::default() })));
    (format!("http://{address}"), server)
}

// How many turns fit into the run depends on the machine; what the verdict makes of them doesn't.

#[tokio::test]
async fn an_honest_gateway_passes() {
    let summary = run_against(Fault::None).await.expect("every row is there");
    let rows = summary.inserted;
    assert!(rows >= 5, "{summary:?}");
    assert_eq!((summary.acknowledged, summary.found, summary.missing), (rows, rows, 0));
    assert!(summary.part_samples > 0 && summary.most_active_parts == 1 && summary.parts_created == rows);
}

#[tokio::test]
async fn a_lost_row_is_missed() {
    let summary = run_against(Fault::AcknowledgeAndLose).await.expect_err("a row is missing");
    let (rows, lost) = (summary.inserted, summary.inserted / 5);
    assert_eq!((summary.acknowledged, summary.found, summary.missing), (rows, rows - lost, lost));
}

#[tokio::test]
async fn a_row_stored_twice_is_noticed() {
    let summary = run_against(Fault::StoreTwice).await.expect_err("a row is there twice");
    let (rows, doubled) = (summary.inserted, summary.inserted / 5);
    assert_eq!((summary.found, summary.duplicated, summary.missing), (rows + doubled, doubled, 0));
}

#[tokio::test]
async fn a_refused_insert_is_a_failure() {
    let summary = run_against(Fault::Refuse).await.expect_err("an insert failed");
    let (rows, refused) = (summary.inserted, summary.inserted / 5);
    assert_eq!((summary.failures, summary.acknowledged, summary.missing), (refused, rows - refused, 0));
    assert!(summary.last_error.is_some_and(|error| error.contains("241")));
}

#[tokio::test]
async fn impossible_options_are_refused_before_anything_runs() {
    let nowhere = || options(&[("http://127.0.0.1:1", Inserts::Waiting)]);
    for options in [
        DemoOptions { probes: 0, ..nowhere() },
        DemoOptions { every: Duration::ZERO, ..nowhere() },
        DemoOptions { kpi_ms: f64::NAN, ..nowhere() },
        DemoOptions { urls: vec!["gopher://x".to_owned()], ..nowhere() },
        options(&[("127.0.0.1:1", Inserts::Waiting)]),
    ] {
        assert!(matches!(run(options).await, Err(DemoError::Options(_))));
    }
    let closed = run(nowhere()).await;
    assert!(matches!(closed, Err(DemoError::Unusable { what: "create the demo's table", .. })), "{closed:?}");
}
