//! The thread that writes a log, from its opening to its end.

use std::time::Duration;

use tokio::sync::oneshot;
use windrow_log::{Committer, Disk, Log};

pub(crate) struct LogWriter {
    name: &'static str,
    log: Log,
    ended: oneshot::Receiver<()>,
}

/// Time that the last group may take. A disk that takes longer does not answer.
const LAST_GROUP: Duration = Duration::from_secs(10);

impl LogWriter {
    pub(crate) fn start<D: Disk>(name: &'static str, log: Log, committer: Committer<D>) -> Result<LogWriter, String> {
        let (end, ended) = oneshot::channel();
        let work = move || {
            committer.run();
            // Nobody listens if the gateway did not end in order.
            let _ = end.send(());
        };
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        started.map_err(|error| format!("cannot start the thread of the {name}: {error}"))?;
        Ok(LogWriter { name, log, ended })
    }

    /// Closes the log and waits for its thread. Records that were appended before are on the disk afterwards,
    /// if the disk answers in time.
    pub(crate) async fn stop(self) {
        self.log.close();
        if tokio::time::timeout(LAST_GROUP, self.ended).await.is_err() {
            tracing::error!(log = self.name, "the disk does not answer; what was to be written last is not written");
        }
    }
}
