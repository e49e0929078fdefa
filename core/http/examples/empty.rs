//! A server that reads requests and answers 200 to each. It shows the most that this HTTP layer allows to
//! anything that is built on it. `cargo run --release -p windrow-http --example empty -- 127.0.0.1:18080`
//!
//! With `sync` behind the address, it shows the cost of acknowledging on disk without group commit: every
//! request is appended to a preallocated file and synced by itself before it is answered.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use windrow_http::{Collected, Connection, Limits, NextRequest, ResponseBuilder, Stream};

/// The size of the file. The file is written once before, as a journal that is reused would be: then a sync
/// has no metadata to write.
const FILE_BYTES: u64 = 64 << 20;

struct Appended {
    file: File,
    at: u64,
}

impl Appended {
    fn create() -> io::Result<Appended> {
        let path = std::env::temp_dir().join(format!("windrow-sync-each-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        file.write_all_at(&vec![0; FILE_BYTES as usize], 0)?;
        file.sync_all()?;
        Ok(Appended { file, at: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.at + bytes.len() as u64 > FILE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        self.file.sync_data()
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:18080".to_owned());
    let appended = arguments.next().map(|_| Appended::create()).transpose()?;
    let appended = appended.map(|appended| Arc::new(Mutex::new(appended)));
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let limits = Arc::new(Limits::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(Connection::new(Stream::Plain(stream), limits.clone()), appended.clone()));
    }
}

async fn serve(mut connection: Connection, appended: Option<Arc<Mutex<Appended>>>) -> io::Result<()> {
    let mut out = Vec::new();
    while let NextRequest::Request(head) = connection.next_request().await? {
        let (mut body, _) = connection.body().await?;
        let Ok(Collected::Whole(body)) = body.collect(1 << 20).await else { break };
        if let Some(appended) = &appended {
            tokio::task::block_in_place(|| appended.lock().map_err(|_| io::ErrorKind::Other)?.append(&body))?;
        }
        ResponseBuilder::new(&mut out, 200).body(b"");
        connection.send(&out).await?;
        if !head.keep_alive() {
            break;
        }
    }
    connection.close().await;
    Ok(())
}
