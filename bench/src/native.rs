//! One-row inserts over ClickHouse's native protocol, as the fastest client would send them: constant parts
//! are written once, and of an answer only the ends of its packets are read.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use windrow_clickhouse::native::{
    client, read_server_packet, server, write_string, write_varint, Addendum, ClientHello, DataReader, Fault, Input,
    ServerHello, Setting, STAGE_COMPLETE,
};
use windrow_http::{ReadHalf, Stream, WriteHalf};

use crate::load::{Answer, NEVER};
use crate::Outcome;

/// The last revision without a mark of the serialisation after each column: its rows are those of HTTP's
/// `FORMAT Native`.
const REVISION: u64 = 54_453;

#[derive(Debug, Deserialize)]
pub struct Login {
    user: String,
    password: String,
    settings: Vec<(String, String)>,
    /// Says whether the client waits for the server's columns before it sends its rows.
    pub waits: bool,
}

/// A large insert or result that is repeated over one connection.
#[derive(Debug, Deserialize)]
pub struct Large {
    address: String,
    login: Login,
    statement: String,
    /// A block that the statement inserts; without one, its result is read to the end.
    block_file: Option<PathBuf>,
    times: u32,
}

#[derive(Debug, Serialize)]
pub struct Took {
    seconds: Vec<f64>,
    bytes: u64,
}

/// Runs an insert of one block, or reads a result, several times.
pub fn large(plan: &Large) -> Outcome<Took> {
    let block = plan.block_file.as_ref().map(std::fs::read).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let query = NativeExchange::query(&plan.statement, &plan.login);
        let mut took = Took { seconds: Vec::new(), bytes: 0 };
        let mut exchange = NativeExchange::connect(&plan.address, &plan.login).await?;
        for _ in 0..plan.times {
            let began = Instant::now();
            took.bytes = match &block {
                Some(block) => {
                    let answer = exchange.insert(&query, block, true).await?;
                    answer
                        .error
                        .map_or(Ok(block.len() as u64), |error| Err(Box::<dyn Error + Send + Sync>::from(error)))?
                }
                None => exchange.result(&query).await?,
            };
            took.seconds.push(began.elapsed().as_secs_f64());
        }
        Ok(took)
    })
}

/// One connection over the native protocol.
pub struct NativeExchange {
    read: ReadHalf,
    write: WriteHalf,
    input: Vec<u8>,
    out: Vec<u8>,
}

impl NativeExchange {
    pub async fn connect(address: &str, login: &Login) -> Outcome<NativeExchange> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (read, write) = Stream::Plain(stream).into_split();
        let mut exchange = NativeExchange { read, write, input: Vec::new(), out: Vec::new() };
        let hello = ClientHello {
            name: "windrow-bench".to_owned(),
            revision: REVISION,
            user: login.user.clone(),
            password: login.password.clone(),
            ..ClientHello::default()
        };
        hello.write(&mut exchange.out);
        exchange.flush().await?;
        let read = |bytes: &[u8]| {
            let mut input = Input::new(bytes);
            match input.varint()? {
                server::HELLO => ServerHello::read(&mut input, REVISION).map(|_| input.at()),
                _ => Err(Fault::Malformed("no Hello")),
            }
        };
        let length = loop {
            match read(&exchange.input) {
                Ok(length) => break length,
                Err(Fault::Incomplete { .. }) => exchange.more().await?,
                Err(fault) => return Err(format!("{fault:?}").into()),
            }
        };
        exchange.input.drain(..length);
        Addendum::default().write(&mut exchange.out, REVISION);
        exchange.flush().await?;
        Ok(exchange)
    }

    /// Returns the bytes that a client sends before an insert's rows.
    pub fn query(statement: &str, login: &Login) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, client::QUERY);
        write_string(&mut out, "");
        // An initial query, of nobody in particular, over TCP.
        out.push(1);
        ["", "", "0.0.0.0:0"].into_iter().for_each(|text| write_string(&mut out, text));
        out.extend_from_slice(&[0; 8]);
        out.push(1);
        ["", "", "windrow-bench"].into_iter().for_each(|text| write_string(&mut out, text));
        [1, 0, REVISION].into_iter().for_each(|number| write_varint(&mut out, number));
        write_string(&mut out, "");
        // Depth, patch, no trace, no parallel replicas.
        out.extend_from_slice(&[0; 6]);
        let settings = login.settings.iter();
        let settings = settings.map(|(name, value)| Setting { name: name.clone(), flags: 0, value: value.clone() });
        Setting::write_all(&settings.collect::<Vec<_>>(), &mut out);
        // No secret of a cluster.
        write_string(&mut out, "");
        write_varint(&mut out, STAGE_COMPLETE);
        out.push(0);
        write_string(&mut out, statement);
        Self::block(&mut out, &[0, 0]);
        out
    }

    fn block(out: &mut Vec<u8>, columns: &[u8]) {
        write_varint(out, client::DATA);
        write_string(out, "");
        // No BlockInfo.
        out.push(0);
        out.extend_from_slice(columns);
    }

    /// Sends one block and waits for the answer's end. A client that `waits` reads the server's columns
    /// first, as drivers do.
    pub async fn insert(&mut self, query: &[u8], block: &[u8], waits: bool) -> Outcome<Answer> {
        self.out.extend_from_slice(query);
        if waits {
            self.flush().await?;
            if let Some(error) = self.up_to(server::DATA).await? {
                return Ok(Answer { status: 500, error: Some(error) });
            }
        }
        Self::block(&mut self.out, block);
        Self::block(&mut self.out, &[0, 0]);
        self.flush().await?;
        let error = self.up_to(server::END_OF_STREAM).await?;
        Ok(Answer { status: if error.is_none() { 200 } else { 500 }, error })
    }

    /// Reads a result to its end. Returns how many bytes its blocks have.
    async fn result(&mut self, query: &[u8]) -> Outcome<u64> {
        self.out.extend_from_slice(query);
        self.flush().await?;
        let (mut reader, mut bytes, mut at, mut scratch) =
            (DataReader::new(REVISION, false, 1 << 30), 0, 0, Vec::new());
        loop {
            self.input.drain(..at);
            at = 0;
            self.input.reserve(1 << 20);
            self.more().await?;
            loop {
                let rest = &self.input[at..];
                // Within a block there is no type of a packet.
                if reader.is_inside() || rest.first() == Some(&(server::DATA as u8)) {
                    let taken = reader.read(rest, &mut scratch).map_err(|fault| format!("{fault:?}"))?;
                    scratch.clear();
                    (at, bytes) = (at + taken.bytes, bytes + taken.bytes as u64);
                    if taken.end.is_none() {
                        break;
                    }
                    continue;
                }
                match read_server_packet(rest, REVISION, false) {
                    Ok(packet) if packet.kind == server::END_OF_STREAM => {
                        at += packet.bytes;
                        self.input.drain(..at);
                        return Ok(bytes);
                    }
                    Ok(packet) if packet.error.is_some() => return Err(format!("{:?}", packet.error).into()),
                    Ok(packet) => at += packet.bytes,
                    Err(Fault::Incomplete { .. }) => break,
                    Err(fault) => return Err(format!("{fault:?}").into()),
                }
            }
        }
    }

    async fn up_to(&mut self, kind: u64) -> Outcome<Option<String>> {
        loop {
            match read_server_packet(&self.input, REVISION, false) {
                Ok(packet) => {
                    self.input.drain(..packet.bytes);
                    if packet.error.is_some() || packet.kind == kind {
                        return Ok(packet.error.map(|(code, text)| format!("{code}: {text}")));
                    }
                }
                Err(Fault::Incomplete { .. }) => self.more().await?,
                Err(fault) => return Err(format!("{fault:?}").into()),
            }
        }
    }

    async fn more(&mut self) -> Outcome<()> {
        match self.read.read_buf(&mut self.input).await? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }

    async fn flush(&mut self) -> Outcome<()> {
        self.write.send(&self.out, NEVER).await?;
        self.out.clear();
        Ok(())
    }
}
