//! Stands for `appends.rs` where the program is built without the feature `append`: no port takes appends.

use prometheus_client::registry::Registry;
use windrow_gateway::DataServer;
use windrow_settings::Settings;

use crate::backend::RunningBackend;

#[derive(Clone)]
pub(crate) struct Appends;

impl Appends {
    pub(crate) async fn shut_down(&self) {}
}

pub(crate) fn serve(_: &DataServer, _: &Appends) {}

pub(crate) fn start(_: &Settings, _: &RunningBackend, _: &mut Registry) -> Result<Appends, String> {
    Ok(Appends)
}
