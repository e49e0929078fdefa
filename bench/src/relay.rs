//! A longer way to a server: passes TCP connections on and adds a round trip, half of it each way, and nothing else.
//!
//! Bandwidth is not limited: whatever comes is read at once, waits for its time in a queue and is written then, so that
//! as much as fits is under way, as on a real line. What a real line does besides, slow start above all, is not there;
//! a new connection costs its round trip, since its first bytes are held back for as long as the handshake would have
//! taken. Each direction has two threads that block: timers of an async runtime are off by up to a millisecond, which
//! is a third of the shortest way that is measured.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::error::BenchError;

/// Read at once from a socket.
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks under way in one direction; far more than a line of 20 ms holds.
const MAX_UNDER_WAY: usize = 2048;

#[derive(Args)]
pub(crate) struct RelayOptions {
    /// Where to listen.
    #[arg(long)]
    listen: SocketAddr,
    /// The server.
    #[arg(long)]
    to: SocketAddr,
    /// The round trip to add, in milliseconds.
    #[arg(long)]
    rtt_ms: f64,
    /// A new connection costs nothing.
    #[arg(long)]
    free_connects: bool,
}

/// Runs until it is killed. Prints its address when it listens.
pub(crate) fn run(options: &RelayOptions) -> Result<(), BenchError> {
    let broken = |error: io::Error| BenchError::Setup(format!("relay: {error}"));
    let round_trip = Duration::try_from_secs_f64(options.rtt_ms / 1000.0)
        .map_err(|_| BenchError::Setup("--rtt-ms is no duration".to_owned()))?;
    let line = Line {
        to: options.to,
        one_way: round_trip / 2,
        handshake: if options.free_connects { Duration::ZERO } else { round_trip },
    };
    let listener = TcpListener::bind(options.listen).map_err(broken)?;
    println!("{}", listener.local_addr().map_err(broken)?);
    io::stdout().flush().map_err(broken)?;
    loop {
        let Ok((client, _)) = listener.accept() else { continue };
        // A server that is away shows as a connection that is closed.
        thread::spawn(move || line.connect(client));
    }
}

#[derive(Clone, Copy)]
struct Line {
    to: SocketAddr,
    one_way: Duration,
    handshake: Duration,
}

struct Chunk {
    bytes: Vec<u8>,
    due: Instant,
}

impl Line {
    fn connect(self, client: TcpStream) -> io::Result<()> {
        let established = Instant::now() + self.handshake;
        let server = TcpStream::connect(self.to)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (client_out, server_out) = (client.try_clone()?, server.try_clone()?);
        self.carry(client, server_out, established);
        self.carry(server, client_out, established);
        Ok(())
    }

    fn carry(self, from: TcpStream, to: TcpStream, established: Instant) {
        let (sender, receiver) = sync_channel(MAX_UNDER_WAY);
        thread::spawn(move || self.take_in(from, &sender, established));
        thread::spawn(move || hand_out(&to, &receiver));
    }

    /// Ends when the sender closes, or the receiver is gone.
    fn take_in(self, mut from: TcpStream, queue: &SyncSender<Chunk>, established: Instant) {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let length = from.read(&mut buffer).unwrap_or(0);
            let due = Instant::now().max(established) + self.one_way;
            let end = length == 0;
            if queue.send(Chunk { bytes: buffer[..length].to_vec(), due }).is_err() || end {
                return;
            }
        }
    }
}

/// Writes each chunk when its time has come; an empty one is the end.
fn hand_out(mut to: &TcpStream, queue: &Receiver<Chunk>) {
    for chunk in queue {
        thread::sleep(chunk.due.saturating_duration_since(Instant::now()));
        if chunk.bytes.is_empty() {
            break;
        }
        if to.write_all(&chunk.bytes).is_err() {
            // Who still sends learns that nobody reads.
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every byte, until the end.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut out = connection.try_clone().unwrap();
                thread::spawn(move || io::copy(&mut connection, &mut out).map(|_| out.shutdown(Shutdown::Write)));
            }
        });
        address
    }

    #[test]
    fn bytes_come_through_in_order_no_earlier_than_their_round_trip_and_the_end_is_passed_on() {
        let line = Line { to: echo(), one_way: Duration::from_millis(15), handshake: Duration::from_millis(30) };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let begin = Instant::now();
        line.connect(listener.accept().unwrap().0).unwrap();
        let sent: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        let mut writer = client.try_clone().unwrap();
        let to_send = sent.clone();
        let sender = thread::spawn(move || {
            writer.write_all(&to_send).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut first = [0; 1];
        client.read_exact(&mut first).unwrap();
        assert!(
            begin.elapsed() >= Duration::from_millis(60),
            "a handshake and a round trip, not {:?}",
            begin.elapsed()
        );
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        sender.join().unwrap();
        assert!(first[0] == sent[0] && rest == sent[1..]);
    }
}
