//! A server that keeps the contract of ordered appends, and the faults of a bad one.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use tokio::net::TcpSocket;
use windrow_clickhouse::{Client, ClientOptions, Endpoint};

/// The function that decides what the server does to a request. The first argument counts the requests.
pub type Script = Box<dyn Fn(u64, &Asked) -> Deed + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Serve,
    /// The request is handled, and the connection closed before the answer.
    LoseAnswer,
    /// The request is not handled.
    Refuse(u16),
    /// The append is refused for good, for a row of this batch.
    Violate,
    /// The server forgets everything before the request is handled.
    Restart,
    /// The request is handled after the commit has come.
    AfterCommit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub query: HashMap<String, String>,
    pub body_bytes: usize,
}

impl Asked {
    pub fn number(&self) -> Option<u64> {
        self.path.split_once("/batches/")?.1.parse().ok()
    }

    pub fn is_commit(&self) -> bool {
        self.path.ends_with("/commit")
    }
}

#[derive(Default)]
struct State {
    appends: HashMap<String, Append>,
    asked: Vec<Asked>,
    commits: u64,
}

#[derive(Default)]
struct Append {
    batches: BTreeMap<u64, Vec<u8>>,
    committed: Option<u64>,
    failed: bool,
}

pub struct Server {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    script: Script,
}

impl Server {
    pub fn start(script: impl Fn(u64, &Asked) -> Deed + Send + Sync + 'static) -> Server {
        Server::start_on(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    pub fn start_on(listener: TcpListener, script: impl Fn(u64, &Asked) -> Deed + Send + Sync + 'static) -> Server {
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), script: Box::new(script) });
        let served = shared.clone();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (connection, shared) = (connection.unwrap(), served.clone());
                thread::spawn(move || shared.serve(connection));
            }
        });
        Server { address, shared }
    }

    pub fn client(&self) -> Arc<Client> {
        client_of(&self.address.to_string())
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.state.lock().unwrap().asked.clone()
    }

    /// Waits until a request has come that `wanted` says yes to.
    pub fn wait_for(&self, wanted: impl Fn(&Asked) -> bool) {
        let mut state = self.shared.state.lock().unwrap();
        while !state.asked.iter().any(&wanted) {
            state = self.shared.changed.wait(state).unwrap();
        }
    }

    /// Returns the rows of an append that was committed, in the order of its numbers.
    pub fn rows(&self, id: &str) -> Option<Vec<RecordBatch>> {
        let state = self.shared.state.lock().unwrap();
        let append = state.appends.get(id)?;
        append.committed?;
        let read = |body: &Vec<u8>| StreamReader::try_new(Cursor::new(body.clone()), None).unwrap().map(Result::unwrap);
        Some(append.batches.values().flat_map(read).collect())
    }
}

pub fn client_of(address: &str) -> Arc<Client> {
    let endpoint = Endpoint::parse(&format!("http://joe:j@{address}")).unwrap();
    Arc::new(Client::new(endpoint, ClientOptions::default()).unwrap())
}

/// An address that is taken, so that nobody else gets it, and where nobody listens yet.
pub struct ClosedAddress {
    socket: TcpSocket,
    pub address: String,
}

impl ClosedAddress {
    pub fn take() -> ClosedAddress {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = socket.local_addr().unwrap().to_string();
        ClosedAddress { socket, address }
    }

    pub fn listen(self) -> TcpListener {
        let listener = self.socket.listen(128).unwrap().into_std().unwrap();
        listener.set_nonblocking(false).unwrap();
        listener
    }
}

impl Shared {
    fn serve(&self, mut connection: TcpStream) {
        connection.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        while let Some((asked, body)) = read_request(&mut reader) {
            let deed = {
                let mut state = self.state.lock().unwrap();
                state.asked.push(asked.clone());
                self.changed.notify_all();
                (self.script)(state.asked.len() as u64 - 1, &asked)
            };
            let answer = match deed {
                Deed::Refuse(status) => (status, error(241, "No room")),
                _ => self.handle(&asked, body, deed),
            };
            if deed == Deed::LoseAnswer {
                return;
            }
            let (status, text) = answer;
            let fields = if deed == Deed::Violate { "X-Windrow-Batch: 37\r\nX-Windrow-Row: 5\r\n" } else { "" };
            let head = format!(
                "HTTP/1.1 {status} X\r\n{fields}Keep-Alive: timeout=30\r\nContent-Length: {}\r\n\r\n",
                text.len()
            );
            if connection.write_all((head + &text).as_bytes()).is_err() {
                return;
            }
        }
    }

    fn handle(&self, asked: &Asked, body: Vec<u8>, deed: Deed) -> (u16, String) {
        let mut state = self.state.lock().unwrap();
        if deed == Deed::Restart {
            state.appends.clear();
        }
        let mut segments = asked.path.trim_start_matches("/windrow/v1/appends").trim_start_matches('/').split('/');
        let from_path = segments.next().unwrap_or_default().to_owned();
        let id = if from_path.is_empty() { asked.query["id"].clone() } else { from_path };
        if asked.method == "DELETE" {
            state.appends.remove(&id);
            return (200, format!("{{\"id\":\"{id}\",\"state\":\"aborted\"}}"));
        }
        if asked.query.contains_key("table") {
            state.appends.entry(id.clone()).or_default();
        }
        if !state.appends.contains_key(&id) {
            return gone(asked);
        }
        if deed == Deed::Violate {
            state.appends.get_mut(&id).unwrap().failed = true;
            self.changed.notify_all();
        }
        if asked.is_commit() {
            state.commits += 1;
            self.changed.notify_all();
            let batches: u64 = asked.query["batches"].parse().unwrap();
            loop {
                let Some(append) = state.appends.get_mut(&id) else { return gone(asked) };
                if append.failed {
                    return (400, error(469, "Constraint violated"));
                }
                if append.batches.len() as u64 >= batches {
                    append.committed = Some(batches);
                    return (200, committed(&id, batches));
                }
                state = self.changed.wait(state).unwrap();
            }
        }
        if let Some(number) = asked.number() {
            while deed == Deed::AfterCommit && state.commits == 0 {
                state = self.changed.wait(state).unwrap();
            }
            let Some(append) = state.appends.get_mut(&id) else { return gone(asked) };
            if append.failed {
                return (400, error(469, "Constraint violated"));
            }
            if append.committed.is_some() {
                return (409, error(36, "The append is committed"));
            }
            let repeated = append.batches.contains_key(&number);
            append.batches.entry(number).or_insert(body);
            self.changed.notify_all();
            return (200, format!("{{\"id\":\"{id}\",\"batch\":{number},\"repeated\":{repeated},\"next\":0}}"));
        }
        let append = &state.appends[&id];
        match append.committed {
            Some(batches) => (200, committed(&id, batches)),
            None => {
                let received: Vec<String> = append.batches.keys().map(|n| format!("[{n},{n}]")).collect();
                let columns = r#"[{"name":"n","type":"Int64"},{"name":"s","type":"Nullable(String)"}]"#;
                (
                    200,
                    format!(
                        "{{\"id\":\"{id}\",\"state\":\"open\",\"columns\":{columns},\"received\":[{}]}}",
                        received.join(",")
                    ),
                )
            }
        }
    }
}

fn committed(id: &str, batches: u64) -> String {
    format!(
        "{{\"id\":\"{id}\",\"state\":\"committed\",\"rows\":1,\"bytes\":2,\"batches\":{batches},\"seconds\":0.5,\"atomic\":\"all\"}}"
    )
}

fn gone(asked: &Asked) -> (u16, String) {
    let question = asked.method == "GET";
    (404, if question { "{\"state\":\"gone\"}".to_owned() } else { error(36, "There is no append") })
}

fn error(code: i32, text: &str) -> String {
    format!("Code: {code}. DB::Exception: {text}. (X)")
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(Asked, Vec<u8>)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    assert!(lines.iter().any(|line| line == "X-ClickHouse-User: joe"), "{lines:?}");
    let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut first = lines[0].split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Some((Asked { method, path: path.to_owned(), query, body_bytes: length }, body))
}
