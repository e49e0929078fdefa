use std::sync::OnceLock;

use tracing_subscriber::EnvFilter;
use windrow_settings::{LogFormat, LogSettings};

/// A function that exchanges the filter of log events.
type Exchange = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;
static EXCHANGE: OnceLock<Exchange> = OnceLock::new();

/// Sends all log events to standard error.
pub(crate) fn start(settings: &LogSettings) -> Result<(), String> {
    let builder = tracing_subscriber::fmt().with_env_filter(filter(&settings.level)?).with_writer(std::io::stderr);
    let (result, exchange): (_, Exchange) = match settings.format {
        LogFormat::Text => {
            let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none();
            let builder = builder.with_ansi(ansi).with_filter_reloading();
            let handle = builder.reload_handle();
            (builder.try_init(), Box::new(move |filter| handle.reload(filter).map_err(|error| error.to_string())))
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_filter_reloading();
            let handle = builder.reload_handle();
            (builder.try_init(), Box::new(move |filter| handle.reload(filter).map_err(|error| error.to_string())))
        }
    };
    // Started once; who comes second is refused below.
    let _ = EXCHANGE.set(exchange);
    result.map_err(|error| error.to_string())
}

/// Sets the level of log events from now on.
pub(crate) fn set_level(level: &str) -> Result<(), String> {
    let filter = filter(level)?;
    EXCHANGE.get().map_or(Ok(()), |exchange| exchange(filter))
}

fn filter(level: &str) -> Result<EnvFilter, String> {
    EnvFilter::try_new(level).map_err(|error| format!("log.level '{level}': {error}"))
}
