//! One-row inserts over ClickHouse's native protocol, as the quickest client would send them: what doesn't change is written once,
//! and nothing is read of an answer but where its packets end.

use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use windrow_http::{ReadHalf, Stream, WriteHalf};
use windrow_native::{
    client, read_server_packet, server, write_string, write_varint, Addendum, ClientHello, Fault, Input, ServerHello,
    Setting, STAGE_COMPLETE,
};

use crate::load::{Answer, NEVER};
use crate::Outcome;

/// The last without a mark of the serialisation behind each column: the rows are those of HTTP's `FORMAT Native`.
const REVISION: u64 = 54_453;

#[derive(Debug, Deserialize)]
pub struct Login {
    user: String,
    password: String,
    settings: Vec<(String, String)>,
    /// For the server's columns, before it sends its rows.
    pub waits: bool,
}

/// One connection.
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

    /// What a client sends in front of an insert's rows.
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

    /// Sends one block and waits for the answer's end. A client that `waits` reads the server's columns first, as drivers do.
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
