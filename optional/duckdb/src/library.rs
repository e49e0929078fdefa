//! The search for DuckDB's library.

use std::path::{Path, PathBuf};

use crate::errors::OpenError;

#[cfg(target_os = "macos")]
const FILE: &str = "libduckdb.dylib";
#[cfg(not(target_os = "macos"))]
const FILE: &str = "libduckdb.so";

const SYSTEM: [&str; 4] = ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/opt/homebrew/lib"];

/// Says whether [`find`] would find a library.
pub fn library_is_there(asked: Option<&Path>) -> bool {
    find(asked).is_ok()
}

/// Returns the library that was asked for, or the first one that is found: beside the executable, where
/// `scripts/setup` puts it, or among the system's.
pub(crate) fn find(asked: Option<&Path>) -> Result<PathBuf, OpenError> {
    if let Some(path) = asked {
        let missing = || {
            OpenError(format!(
                "DuckDB's library is not at {}: correct `duckdb.library`, or leave it out",
                path.display()
            ))
        };
        // Absolute, since a name without a folder would be searched for by the linker's own rules.
        return std::fs::canonicalize(path).map_err(|_| missing());
    }
    let executable = std::env::current_exe().ok();
    let folders = executable.iter().flat_map(|path| path.ancestors().skip(1));
    let beside = folders.clone().take(1).map(|folder| folder.join(FILE));
    let fetched = folders.flat_map(|folder| in_packages(&folder.join("duckdb/node_modules/@duckdb")));
    let system = SYSTEM.iter().map(|folder| Path::new(folder).join(FILE));
    beside.chain(fetched).chain(system).find(|path| path.is_file()).ok_or_else(|| {
        OpenError(format!(
            "DuckDB's library ({FILE}) was not found: run `make setup`, or say where it is in `duckdb.library`"
        ))
    })
}

/// Lists the places of the library in packages. Each system's library is a package of its own; only the
/// fitting one is installed.
fn in_packages(folder: &Path) -> Vec<PathBuf> {
    let Ok(packages) = std::fs::read_dir(folder) else { return Vec::new() };
    packages.flatten().map(|package| package.path().join(FILE)).collect()
}
