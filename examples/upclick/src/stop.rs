//! Requests to stop: counted, so that none is missed, whenever it comes.

use tokio::sync::watch;

/// How often somebody has asked the demo to stop.
#[derive(Clone)]
pub struct StopRequests(watch::Receiver<usize>);

impl StopRequests {
    /// The sender raises the count by one for each request.
    pub fn channel() -> (watch::Sender<usize>, StopRequests) {
        let (sender, receiver) = watch::channel(0);
        (sender, StopRequests(receiver))
    }

    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until there are more than so many; for ever, if nobody can ask any more.
    pub async fn more_than(&mut self, count: usize) {
        if self.0.wait_for(|asked| *asked > count).await.is_err() {
            std::future::pending().await
        }
    }
}
