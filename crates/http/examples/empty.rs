//! A server that reads requests and answers 200 to each: the limit that this HTTP layer sets for whatever is built on
//! it. `cargo run --release -p windrow-http --example empty -- 127.0.0.1:18080`

use std::sync::Arc;

use tokio::net::TcpListener;
use windrow_http::{Collected, Connection, Limits, NextRequest, ResponseBuilder, Stream};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:18080".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let limits = Arc::new(Limits::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let limits = limits.clone();
        tokio::spawn(serve(Connection::new(Stream::Plain(stream), limits)));
    }
}

async fn serve(mut connection: Connection) -> std::io::Result<()> {
    let mut out = Vec::new();
    while let NextRequest::Request(head) = connection.next_request().await? {
        let (mut body, _) = connection.body().await?;
        if !matches!(body.collect(1 << 20).await, Ok(Collected::Whole(_))) {
            break;
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
