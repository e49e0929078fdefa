//! What acknowledging on disk costs without group commit: every request is appended to a preallocated file and synced
//! by itself, then answered. The HTTP layer is the gateway's. `cargo run --release -p windrow-bench --example sync_each
//! -- 127.0.0.1:0`

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use windrow_http::{Collected, Connection, Limits, NextRequest, ResponseBuilder, Stream};

/// Written once before, as a journal that is reused would be: then a sync has no metadata to write.
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
        let zeros = vec![0; 1 << 20];
        for at in (0..FILE_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, at)?;
        }
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
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:18080".to_owned());
    let listener = TcpListener::bind(address).await?;
    let appended = Arc::new(Mutex::new(Appended::create()?));
    println!("listening on {}", listener.local_addr()?);
    let limits = Arc::new(Limits::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(Connection::new(Stream::Plain(stream), limits.clone()), appended.clone()));
    }
}

async fn serve(mut connection: Connection, appended: Arc<Mutex<Appended>>) -> io::Result<()> {
    let mut out = Vec::new();
    while let NextRequest::Request(head) = connection.next_request().await? {
        let (mut body, _) = connection.body().await?;
        let Ok(Collected::Whole(body)) = body.collect(1 << 20).await else { break };
        tokio::task::block_in_place(|| appended.lock().map_err(|_| io::ErrorKind::Other)?.append(&body))?;
        ResponseBuilder::new(&mut out, 200).body(b"");
        connection.send(&out).await?;
        if !head.keep_alive() {
            break;
        }
    }
    connection.close().await;
    Ok(())
}
