//! The files under `<data directory>/embedded/`: the engine's configuration and users, its endpoint, and its
//! data.
//!
//! Everything is readable by its owner only. Files are replaced by renaming, so a reader sees either the
//! complete old file or the complete new one.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::engine::config;
use crate::{EmbeddedError, EmbeddedOptions};

/// The address of the embedded ClickHouse, and the user with all rights there. Valid until the gateway stops.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// The address `http://127.0.0.1:<port>`, without the credentials.
    pub url: String,
    pub host: String,
    pub http_port: u16,
    pub native_port: u16,
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .field("native_port", &self.native_port)
            .finish_non_exhaustive()
    }
}

/// The paths of one embedded engine.
pub(crate) struct EngineFiles {
    folder: PathBuf,
}

impl EngineFiles {
    pub(crate) fn create(data_dir: &Path) -> Result<EngineFiles, EmbeddedError> {
        // The engine's working directory is not ours, so its paths have to be absolute.
        let data_dir = std::path::absolute(data_dir).map_err(at(data_dir))?;
        let files = EngineFiles { folder: data_dir.join("embedded") };
        private_folder(&data_dir).map_err(at(&data_dir))?;
        for folder in [&files.folder, &files.data()] {
            private_folder(folder).map_err(at(folder))?;
            // Folders that were there already may have been opened up.
            fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(at(folder))?;
        }
        Ok(files)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("config.xml")
    }

    fn users(&self) -> PathBuf {
        self.folder.join("users.xml")
    }

    pub(crate) fn write_config(&self, options: &EmbeddedOptions, password: &str) -> Result<(), EmbeddedError> {
        let users = self.users();
        self.write(&users, &config::users_xml(password, options))?;
        self.write(&self.config(), &config::config_xml(&users, options))
    }

    pub(crate) fn write_endpoint(&self, endpoint: &Endpoint) -> Result<(), EmbeddedError> {
        let mut text = serde_json::to_string_pretty(endpoint).expect("strings and numbers are always JSON");
        text.push('\n');
        self.write(&self.folder.join("endpoint.json"), &text)
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), EmbeddedError> {
        replace_private_file(path, text.as_bytes()).map_err(at(path))
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> EmbeddedError {
    let path = path.to_owned();
    move |source| EmbeddedError::File { path, source }
}

/// Creates a folder and its missing parents, for their owner only. A folder that exists is left unchanged.
fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    fs::rename(&new, path)
}
