//! Runs a second reference beside Windrow's own HTTP layer: a handler on axum that reads the request and answers 200.
//! Usage: `empty_axum ADDRESS`; prints the address it listens on.

use axum::body::Bytes;
use axum::serve::ListenerExt;
use axum::Router;
use tokio::net::TcpListener;

async fn empty(_body: Bytes) {}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let listener = TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("an open socket takes the option"));
    axum::serve(listener, Router::new().fallback(empty)).await
}
