//! The search for the engine: the one in the settings, else the one in the environment, else the library that
//! was packaged with the executable, else the pinned one that `npm ci` put below the project, else a
//! `clickhouse` on the PATH.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::EmbeddedError;

const VARIABLE: &str = "WINDROW_EMBEDDED_ENGINE";
/// The library's file name, on every system.
const FILE: &str = "libchdb.so";

/// The places that are searched; separate from the process's own state so that the search can be tested.
struct SearchPath<'a> {
    settings: Option<&'a Path>,
    variable: Option<PathBuf>,
    /// Folders that packages may have put the library into.
    packaged: Vec<PathBuf>,
    /// Folders that may have an `embedded/` beside or above them.
    starts: Vec<PathBuf>,
    path: Vec<PathBuf>,
}

pub(crate) fn locate(settings: Option<&Path>) -> Result<PathBuf, EmbeddedError> {
    let executable = env::current_exe().ok();
    let packaged = executable.as_deref().and_then(Path::parent).map(packaged_with).unwrap_or_default();
    let starts = [executable, env::current_dir().ok()].into_iter().flatten().collect();
    let path = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    let variable = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    SearchPath { settings, variable, packaged, starts, path }.search()
}

/// Says whether no engine is in any of the usual places. An engine that was named and is not there does not
/// count as missing.
pub fn engine_is_missing() -> bool {
    matches!(locate(None), Err(EmbeddedError::EngineMissing { .. }))
}

/// Returns the folders that packages put the library into: the executable's own folder, and the Python
/// package that brings the library, because Python's packages lie side by side.
fn packaged_with(folder: &Path) -> Vec<PathBuf> {
    let beside = folder.parent().map(|packages| packages.join("windrow_clickhouse"));
    std::iter::once(folder.to_owned()).chain(beside).collect()
}

impl SearchPath<'_> {
    fn search(&self) -> Result<PathBuf, EmbeddedError> {
        if let Some(path) = self.settings {
            return named(path, "the setting embedded.engine");
        }
        if let Some(path) = &self.variable {
            return named(path, VARIABLE);
        }
        let packaged = self.packaged.iter().map(|folder| folder.join(FILE));
        let libraries = self.starts.iter().flat_map(|start| start.ancestors()).map(library_below);
        let binaries = self.path.iter().map(|folder| folder.join("clickhouse"));
        let candidates: Vec<PathBuf> = packaged.chain(libraries).chain(binaries).collect();
        match candidates.iter().find(|path| path.is_file()) {
            Some(found) => Ok(absolute(found)),
            None => Err(EmbeddedError::EngineMissing { searched: candidates }),
        }
    }
}

fn named(path: &Path, named_by: &'static str) -> Result<PathBuf, EmbeddedError> {
    if path.is_file() {
        return Ok(absolute(path));
    }
    Err(EmbeddedError::EngineNotAFile { path: path.to_owned(), named_by })
}

/// Returns the absolute path, because the child works in another directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn library_below(folder: &Path) -> PathBuf {
    let platform = match (env::consts::OS, env::consts::ARCH) {
        ("macos", "aarch64") => "darwin-arm64",
        ("macos", _) => "darwin-x64",
        (_, "aarch64") => "linux-arm64-gnu",
        _ => "linux-x64-gnu",
    };
    folder.join("embedded/node_modules/@chdb").join(format!("lib-{platform}")).join(FILE)
}

/// Says whether the engine is a shared library. A library is loaded, every other file is executed.
pub(crate) fn is_library(engine: &Path) -> bool {
    let name = engine.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.ends_with(".so") || name.contains(".so.") || name.ends_with(".dylib")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = env::temp_dir().join(format!("windrow-locate-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).expect("a temporary folder");
            Folder(path)
        }

        fn file(&self, path: &Path) -> PathBuf {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(&path, "").expect("a file");
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_order_is_settings_variable_package_library_path() {
        let folder = Folder::new("order");
        let settings = folder.file(Path::new("mine/clickhouse"));
        let variable = folder.file(Path::new("env/libchdb.so"));
        let beside = folder.file(Path::new("site-packages/windrow_server/libchdb.so"));
        let package = folder.file(Path::new("site-packages/windrow_clickhouse/libchdb.so"));
        let library = folder.file(&library_below(Path::new("")));
        let binary = folder.file(Path::new("bin/clickhouse"));
        let mut search_path = SearchPath {
            settings: Some(&settings),
            variable: Some(variable.clone()),
            packaged: packaged_with(&folder.0.join("site-packages/windrow_server")),
            starts: vec![folder.0.join("target/release")],
            path: vec![folder.0.join("bin")],
        };
        assert_eq!(search_path.search().expect("found"), settings);
        search_path.settings = None;
        assert_eq!(search_path.search().expect("found"), variable);
        search_path.variable = None;
        for packaged in [beside, package] {
            assert_eq!(search_path.search().expect("found"), packaged);
            fs::remove_file(packaged).expect("it was there");
        }
        assert_eq!(search_path.search().expect("found"), library);
        search_path.starts.clear();
        assert_eq!(search_path.search().expect("found"), binary);
        search_path.path.clear();
        let error = search_path.search().expect_err("nothing left");
        assert!(error.to_string().contains("make setup"), "{error}");
    }

    #[test]
    fn an_engine_that_is_named_but_missing_is_no_reason_to_take_another() {
        let folder = Folder::new("named");
        folder.file(Path::new("bin/clickhouse"));
        let missing = folder.0.join("nothing");
        let search_path = SearchPath {
            settings: Some(&missing),
            variable: None,
            packaged: vec![],
            starts: vec![],
            path: vec![folder.0.join("bin")],
        };
        let error = search_path.search().expect_err("it is not there").to_string();
        assert!(error.contains("embedded.engine") && error.contains("nothing"), "{error}");
    }

    #[test]
    fn libraries_are_told_from_binaries() {
        for library in ["a/libchdb.so", "libchdb.so.26", "libchdb.dylib"] {
            assert!(is_library(Path::new(library)), "{library}");
        }
        for binary in ["clickhouse", "a.so/clickhouse", "clickhouse-26.7"] {
            assert!(!is_library(Path::new(binary)), "{binary}");
        }
    }
}
