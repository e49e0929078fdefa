//! A second yardstick beside Windrow's own HTTP layer: a handler on hyper that reads the request and answers 200.
//! Usage: `empty_hyper ADDRESS`; prints the address it listens on.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

async fn empty(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    let mut body = request.into_body();
    while poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.is_some() {}
    Ok(Response::new(String::new()))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let listener = TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            // An error here is a client that went away; the next one is served all the same.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(empty)).await;
        });
    }
}
