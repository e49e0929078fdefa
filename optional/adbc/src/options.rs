//! The options that a database is opened with.

use std::path::PathBuf;

#[derive(Clone)]
pub struct AdbcOptions {
    /// The scheme of the address, which names the database and its driver: `postgresql` of `postgresql://host/db`.
    pub scheme: String,
    /// The address that the driver gets, with user and password where it has some.
    pub url: String,
    /// The driver's library or manifest, or its name. `None`: it is searched for by the scheme.
    pub driver: Option<PathBuf>,
    /// Options of the driver's own, by their names.
    pub options: Vec<(String, String)>,
    /// The most connections that store batches at once, and as many again for look-ups of tables and queries.
    /// More requests wait in line.
    pub max_connections: usize,
}
