//! A data directory per test, an engine in it, and queries to that engine.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use windrow_embedded::{Embedded, EmbeddedOptions, Endpoint};

pub const HOLDER: &str = env!("CARGO_BIN_EXE_windrow-engine-holder");

/// The data directory of a test, removed at its end.
pub struct DataDir(pub PathBuf);

impl DataDir {
    pub fn new() -> DataDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // All are of one length, so that none is how another's begins (see `processes_of`).
        let name = format!("windrow-embedded-{}-{number:04}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        DataDir(path)
    }

    pub fn options(&self) -> EmbeddedOptions {
        let mut options = EmbeddedOptions::new(&self.0);
        options.executable = Some(HOLDER.into());
        options
    }

    pub async fn start(&self) -> Embedded {
        Embedded::start(self.options()).await.expect("the engine starts")
    }

    /// Writes a program of the test's own in the place of a `clickhouse` binary.
    pub fn script(&self, text: &str) -> PathBuf {
        std::fs::create_dir_all(&self.0).expect("a folder");
        let path = self.0.join("clickhouse");
        // Another process writes the program: a file that is open for writing can't be run, and what other tests start
        // at the same time would have it open for a moment, since it inherits all that is open here.
        let written = self.0.join("clickhouse.text");
        std::fs::write(&written, format!("#!/bin/sh\n{text}\n")).expect("a script");
        assert!(Command::new("cp").arg(&written).arg(&path).status().expect("cp").success());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("a mode");
        path
    }

    /// Writes a `clickhouse` binary: the real engine behind a script that takes the same arguments, and runs
    /// `first` before.
    pub fn binary(&self, first: &str) -> PathBuf {
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../embedded/node_modules/@chdb");
        // Opened for reading and writing, a FIFO never ends: the engine behind the script has no holder of its own.
        self.script(&format!(
            "[ \"$1\" = local ] || exit 9; shift\n{first}\n[ -p \"$0.fifo\" ] || mkfifo \"$0.fifo\"\n\
             exec {HOLDER} embedded-engine {}/lib-*/libchdb.so -- \"$@\" 0<>\"$0.fifo\"",
            library.display()
        ))
    }

    pub fn mode(&self, path: &str) -> u32 {
        let path = self.0.join(path);
        std::fs::metadata(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode()
            & 0o777
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the body of a 200, or the text of the error as an error.
pub fn query(endpoint: &Endpoint, statement: &str) -> Result<String, String> {
    query_as(endpoint.http_port, &endpoint.user, &endpoint.password, statement)
}

pub fn query_as(port: u16, user: &str, password: &str, statement: &str) -> Result<String, String> {
    let answer = exchange(port, user, password, statement).map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
    let body = body.trim_end().to_owned();
    if head.starts_with("HTTP/1.0 200") {
        Ok(body)
    } else {
        Err(body)
    }
}

fn exchange(port: u16, user: &str, password: &str, statement: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "POST / HTTP/1.0\r\nX-ClickHouse-User: {user}\r\nX-ClickHouse-Key: {password}\r\nContent-Length: {}\r\n\r\n{statement}",
        statement.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

pub fn kill(pid: u32) {
    let pid = libc::pid_t::try_from(pid).expect("a pid");
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0, "kill {pid}");
}

/// A process that this process can't wait for. The kernel reports its end.
pub struct Watched(OwnedFd);

impl Watched {
    pub fn new(pid: u32) -> Watched {
        // SAFETY: the result is checked and then owned once.
        unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
            assert!(descriptor >= 0, "process {pid}: {}", io::Error::last_os_error());
            Watched(OwnedFd::from_raw_fd(descriptor as libc::c_int))
        }
    }

    pub fn wait_for_end(&self) {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one element, which lives through the call.
        let ready = unsafe { libc::poll(&mut poll, 1, 60_000) };
        assert_eq!(ready, 1, "the process still runs");
    }
}

/// Returns the processes whose command line names the folder.
pub fn processes_of(folder: &Path) -> Vec<u32> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| *pid != std::process::id())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(needle.len()).any(|window| window == needle)
        })
        .collect()
}
