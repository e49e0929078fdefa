//! The check that finds an engine which has not ended but will not answer again.
//!
//! After an error that it can't survive, ClickHouse as a library may go on listening for minutes and refuse
//! everything: no query is answered, and no process ends that could be started again. Silence does not count:
//! an engine that is merely busy, or was stopped by a debugger, is left alone.

use std::io;
use std::time::Duration;

use super::ask::ask;
use crate::Endpoint;

/// The time between two queries, and the number of refusals in a row that show that the engine won't answer
/// again.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) interval: Duration,
    pub(super) refusals: u32,
}

impl Default for Pace {
    /// Returns a pace of ten seconds in all: the engine has to survive a moment in which it has no free file
    /// descriptor.
    fn default() -> Self {
        Pace { interval: Duration::from_secs(1), refusals: 10 }
    }
}

const ASK_LIMIT: Duration = Duration::from_secs(5);
/// The query of each check. It runs every second for as long as the engine lives, so it stays out of the
/// query log.
const QUESTION: &str = "SELECT 1 SETTINGS log_queries = 0";

/// Resolves when the engine won't answer again, with the reason.
pub(super) async fn lost(endpoint: &Endpoint, pace: Pace) -> String {
    let mut refusals = 0;
    loop {
        tokio::time::sleep(pace.interval).await;
        match ask(endpoint, QUESTION, ASK_LIMIT).await {
            Err(error) if is_refusal(&error) => refusals += 1,
            _ => refusals = 0,
        }
        if refusals >= pace.refusals {
            return format!("it runs, but has refused {refusals} questions in a row");
        }
    }
}

/// Says whether the error is a refusal. An answer of an engine that has too much to do is none.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof};
    match error.kind() {
        ConnectionRefused | ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof => true,
        // ABORTED: it shuts down, and nobody told it to.
        _ => error.to_string().starts_with("Code: 236."),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const FINE: &str = "HTTP/1.0 200 OK\r\n\r\n1\n";
    const ABORTED: &str = "HTTP/1.0 500 Error\r\n\r\nCode: 236. DB::Exception: Server is shutting down. (ABORTED)";
    const BUSY: &str = "HTTP/1.0 500 Error\r\n\r\nCode: 202. DB::Exception: Too many queries.";

    /// Starts a server that gives the answers one after the other, and then from the first again.
    async fn engine(answers: &'static [&'static str]) -> (Endpoint, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of our own");
        let http_port = listener.local_addr().expect("it is bound").port();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = answers[counter.fetch_add(1, Ordering::Relaxed) % answers.len()];
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let (host, user) = ("127.0.0.1".to_owned(), "windrow".to_owned());
        let url = format!("http://{host}:{http_port}");
        (Endpoint { url, host, http_port, native_port: 0, user, password: String::new() }, asked)
    }

    const FAST: Pace = Pace { interval: Duration::from_millis(1), refusals: 3 };

    #[tokio::test]
    async fn one_that_only_refuses_is_given_up() {
        for answers in [[ABORTED].as_slice(), &[""], &[ABORTED, ""]] {
            let (endpoint, asked) = engine(answers).await;
            assert!(lost(&endpoint, FAST).await.contains("3 questions"));
            assert_eq!(asked.load(Ordering::Relaxed), 3);
        }
        let (mut endpoint, _) = engine(&[FINE]).await;
        // A port that nobody listens on.
        endpoint.http_port = 1;
        lost(&endpoint, FAST).await;
    }

    #[tokio::test]
    async fn one_that_answers_now_and_then_is_kept() {
        let (endpoint, asked) = engine(&[FINE, ABORTED, ABORTED, BUSY, ABORTED, ""]).await;
        let enough = async {
            while asked.load(Ordering::Relaxed) < 60 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            reason = lost(&endpoint, FAST) => panic!("{reason}"),
            () = enough => {}
        }
    }
}
