//! What a database is opened with.

use std::path::PathBuf;

#[derive(Clone)]
pub struct AdbcOptions {
    /// Which database it is, and by that the driver's name: `postgresql` of `postgresql://host/db`.
    pub scheme: String,
    /// What the driver is given, with user and password where it has some.
    pub url: String,
    /// The driver's library or manifest, or its name. `None`: it is searched for by the scheme.
    pub driver: Option<PathBuf>,
    /// Options of the driver's own, by their names.
    pub options: Vec<(String, String)>,
    /// Connections that store batches at once, and as many again that look tables up and answer queries. Others wait in
    /// line.
    pub max_connections: usize,
}
