//! Keeps a client that waits for its insert from giving up.
//!
//! The head of an answer can be begun long before it is ended. `X-ClickHouse-Progress` fields in it show a
//! client, and every proxy between, that the connection lives. Their price is the status, which is sent
//! before them: it is 200, also for an error, whose code is in `X-ClickHouse-Exception-Code`. ClickHouse does
//! the same to a query that fails after its first such field.

use std::time::{Duration, Instant};

use windrow_http::{Connection, ResponseBuilder};

use crate::insert::Progress;

pub(super) struct ProgressFields<'a> {
    connection: &'a mut Connection,
    interval: Option<Duration>,
    began_at: Instant,
    head_begun: bool,
}

impl<'a> ProgressFields<'a> {
    pub(super) fn new(
        connection: &'a mut Connection,
        interval: Option<Duration>,
        began_at: Instant,
    ) -> ProgressFields<'a> {
        ProgressFields { connection, interval, began_at, head_begun: false }
    }

    /// Says whether the answer's head is open: it then has a status, which is 200.
    pub(super) fn head_begun(&self) -> bool {
        self.head_begun
    }
}

impl Progress for ProgressFields<'_> {
    fn interval(&self) -> Option<Duration> {
        self.interval
    }

    async fn tell(&mut self, rows: u64, bytes: u64) {
        let elapsed_ns = self.began_at.elapsed().as_nanos();
        let json = format!("{{\"read_rows\":\"{rows}\",\"read_bytes\":\"{bytes}\",\"elapsed_ns\":\"{elapsed_ns}\"}}");
        let mut out = Vec::with_capacity(256);
        let response = match self.head_begun {
            false => ResponseBuilder::new(&mut out, 200),
            true => ResponseBuilder::resumed(&mut out),
        };
        response.field("X-ClickHouse-Progress", &json);
        self.head_begun = true;
        if self.connection.send(&out).await.is_err() {
            // The client has gone. Its insert is stored all the same.
            self.interval = None;
        }
    }
}
