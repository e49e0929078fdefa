//! The signals that end a run.

use tokio::signal::unix::{signal, Signal, SignalKind};

/// Ctrl-C and SIGTERM. Where they can't be caught they end the process, as they would anyway.
pub(crate) struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

impl Signals {
    pub fn listen() -> Self {
        Self { interrupt: signal(SignalKind::interrupt()).ok(), terminate: signal(SignalKind::terminate()).ok() }
    }

    pub async fn next(&mut self) {
        tokio::select! {
            () = received(&mut self.interrupt) => {}
            () = received(&mut self.terminate) => {}
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}
