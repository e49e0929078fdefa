//! The process that the engine runs in: this executable, run again with a hidden first argument.
//!
//! A library is loaded into the process; a `clickhouse` binary replaces it. In both cases the process that
//! was spawned is the engine, so its pid is the one to measure, and its end is the engine's end.

use std::env;
use std::ffi::{c_char, c_int, c_void, CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

use super::holder::HolderPipe;
use super::locate::is_library;

/// The hidden first argument of `<executable> embedded-engine <engine> -- <arguments of clickhouse local>`.
pub(crate) const HIDDEN_COMMAND: &str = "embedded-engine";

/// Runs the engine if this process was started as its child, and does not return then. `main` must call it
/// first, before any thread is started.
pub fn run_engine_if_asked() {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == HIDDEN_COMMAND) {
        let failure = run(arguments);
        eprintln!("{failure}");
        exit(1);
    }
}

/// Runs the engine. Returns only where that failed, with the reason.
fn run(mut arguments: impl Iterator<Item = OsString>) -> String {
    let Some(engine) = arguments.next().map(PathBuf::from) else {
        return "the engine's path is missing".to_owned();
    };
    if arguments.next().is_none_or(|separator| separator != "--") {
        return "the arguments of the engine have to follow `--`".to_owned();
    }
    // What the engine creates is its owner's only, as everything below the data directory.
    // SAFETY: cannot fail.
    unsafe { libc::umask(0o077) };
    let holder = match HolderPipe::take_stdin() {
        Ok(holder) => holder,
        Err(error) => return format!("standard input has to be the holder's pipe: {error}"),
    };
    if is_library(&engine) {
        run_library(&engine, arguments, holder)
    } else {
        become_binary(&engine, arguments, holder)
    }
}

fn become_binary(engine: &Path, arguments: impl Iterator<Item = OsString>, holder: HolderPipe) -> String {
    if let Err(error) = holder.end_this_process_with_holder_from_outside() {
        return format!("no process to watch the holder: {error}");
    }
    let error = Command::new(engine).arg("local").args(arguments).exec();
    format!("{}: {error}", engine.display())
}

fn run_library(engine: &Path, arguments: impl Iterator<Item = OsString>, holder: HolderPipe) -> String {
    if let Err(error) = holder.end_this_process_with_holder() {
        return format!("no thread to watch the holder: {error}");
    }
    match call_library(engine, arguments) {
        // Not `exit`: the engine's destructors would run against threads of its own that are still there.
        // SAFETY: ends the process.
        Ok(()) => unsafe { libc::_exit(0) },
        Err(failure) => failure,
    }
}

type QueryCmdline = unsafe extern "C" fn(argc: c_int, argv: *mut *mut c_char) -> *mut c_void;

fn call_library(engine: &Path, arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let program = CString::from(c"clickhouse");
    let arguments = arguments.map(|argument| CString::new(argument.into_vec()));
    let arguments: Vec<CString> = std::iter::once(Ok(program))
        .chain(arguments)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("an argument of the engine: {error}"))?;
    let count = c_int::try_from(arguments.len()).map_err(|_| "too many arguments".to_owned())?;
    let mut pointers: Vec<*mut c_char> = arguments.into_iter().map(CString::into_raw).collect();
    pointers.push(std::ptr::null_mut());
    // SAFETY: the library is the engine that the user named or that the project pins; its initialisers are trusted as
    // the engine itself is.
    let library = unsafe { libloading::Library::new(engine.as_os_str()) };
    let library = library.map_err(|error| format!("{}: {error}", display(engine)))?;
    // SAFETY: the signature is the one of chdb.h.
    let query = unsafe { library.get::<QueryCmdline>(b"chdb_query_cmdline\0") };
    let query = query.map_err(|error| format!("{} is not a ClickHouse library: {error}", display(engine)))?;
    // SAFETY: `pointers` is an argv: `count` strings that live until the process ends, and a null.
    unsafe { query(count, pointers.as_mut_ptr()) };
    // Unloading would run the engine's destructors against threads that may still run.
    std::mem::forget(library);
    Ok(())
}

fn display(path: &Path) -> String {
    String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned()
}
