//! Stands for `flight.rs` where the program is built without the feature `flight`.

use std::net::SocketAddr;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use windrow_settings::{Origin, Settings};

use crate::appends::Appends;
use crate::backend::RunningBackend;
use crate::without::missing;

pub(crate) const MAX_CONNECTIONS: usize = 0;

pub(crate) enum FlightServer {}

impl FlightServer {
    pub(crate) fn address(&self) -> SocketAddr {
        match *self {}
    }

    pub(crate) async fn shut_down(self, _: Duration) {
        match self {}
    }
}

pub(crate) fn listen(settings: &Settings) -> Result<Option<SocketAddr>, String> {
    match settings.origin("flight.listen") {
        Some(Origin::Default) | None => Ok(None),
        Some(_) => Err(missing("flight", "`flight.listen`")),
    }
}

pub(crate) fn start(
    _: TcpListener,
    _: &Settings,
    _: &RunningBackend,
    _: Appends,
    _: &mut Registry,
) -> Result<Option<FlightServer>, String> {
    Ok(None)
}
