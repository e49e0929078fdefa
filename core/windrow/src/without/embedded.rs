//! Stands for `embedded.rs` where the program is built without the feature `embedded`.

use std::path::Path;
use std::process::ExitCode;

use windrow_settings::Settings;

use crate::backend::RunningBackend;
use crate::without::missing;

pub(crate) enum RunningEngine {}

impl RunningEngine {
    pub(crate) async fn stop(self) {
        match self {}
    }
}

pub(crate) fn run_engine_if_asked() {}

pub(crate) fn engine_is_missing() -> bool {
    true
}

pub(crate) async fn start(_: &Settings) -> Result<RunningBackend, String> {
    Err(missing("embedded", "an embedded ClickHouse, which is the default of `backend`,"))
}

pub(crate) fn mend_clickhouse(_: &Path) -> Result<ExitCode, String> {
    Err(missing("embedded", "the repair of ClickHouse's deduplication logs"))
}
