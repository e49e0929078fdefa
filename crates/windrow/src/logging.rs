use tracing_subscriber::EnvFilter;
use windrow_settings::{LogFormat, LogSettings};

/// Sends all log events to standard error.
pub(crate) fn start(settings: &LogSettings) -> Result<(), String> {
    let filter =
        EnvFilter::try_new(&settings.level).map_err(|error| format!("log.level '{}': {error}", settings.level))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let result = match settings.format {
        LogFormat::Text => {
            let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none();
            builder.with_ansi(ansi).try_init()
        }
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    result.map_err(|error| error.to_string())
}
