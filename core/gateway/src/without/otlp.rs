//! Stands for `otlp/` where the program is built without the feature `otlp`: its ports are not opened.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio::sync::watch;
use windrow_http::{Connection, Stream};

use crate::data::Peer;
use crate::metrics::SignalCounts;
use crate::state::State;

pub(crate) enum Signal {}

pub(crate) const SIGNALS: [Signal; 0] = [];

pub(crate) fn signal_name(signal: Signal) -> &'static str {
    match signal {}
}

pub(crate) struct Otlp;

impl Otlp {
    pub(crate) fn register(_: &mut Registry) -> Otlp {
        Otlp
    }

    pub(crate) fn counts(&self) -> [SignalCounts; SIGNALS.len()] {
        []
    }

    pub(crate) fn forget_unused(&self) {}
}

pub(crate) async fn serve_http(_: &Arc<State>, _: Connection, _: u64, _: &Peer, _: watch::Receiver<bool>) {}

pub(crate) async fn serve_grpc(_: &Arc<State>, _: Stream, _: u64, _: Arc<Peer>, _: watch::Receiver<bool>) {}
