//! A small HTTP server on loopback: the demo's sites, and its live page.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use windrow_http::{Connection, Limits, NextRequest, RequestHead, Stream};

const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);

/// The answers of a server.
pub(crate) trait Answers: Send + Sync + 'static {
    fn answer(&self, head: &RequestHead, out: &mut Vec<u8>) -> impl Future<Output = ()> + Send;
}

/// A running server. It closes when it is dropped.
pub(crate) struct LocalServer {
    pub address: SocketAddr,
    server: JoinHandle<()>,
}

impl LocalServer {
    pub async fn start(answers: Arc<impl Answers>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, server: tokio::spawn(serve(listener, answers)) })
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, answers: Arc<impl Answers>) {
    let limits = Arc::new(Limits { keep_alive_timeout: Duration::from_secs(120), ..Limits::default() });
    // Connections end with the listener: a set that is dropped aborts its tasks.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => _ = connections.spawn(answer_all(stream, limits.clone(), answers.clone())),
            // No file is free, perhaps: trying again at once would keep a core busy.
            Err(_) => tokio::time::sleep(AFTER_FAILED_ACCEPT).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn answer_all(stream: TcpStream, limits: Arc<Limits>, answers: Arc<impl Answers>) {
    // Without it an answer could wait for an acknowledgement, and be measured as slow.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut connection = Connection::new(Stream::Plain(stream), limits);
    let mut answer = Vec::new();
    while let Ok(NextRequest::Request(head)) = connection.next_request().await {
        answers.answer(&head, &mut answer).await;
        if connection.send(&answer).await.is_err() {
            return;
        }
    }
}
