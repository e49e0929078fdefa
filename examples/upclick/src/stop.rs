//! Requests to stop. They are counted, so that none is missed, whenever it comes.

use tokio::sync::watch;

/// The count of requests to stop the demo.
#[derive(Clone)]
pub struct StopRequests(watch::Receiver<usize>);

impl StopRequests {
    /// Makes a counter and its sender, which adds one for each request.
    pub fn channel() -> (watch::Sender<usize>, StopRequests) {
        let (sender, receiver) = watch::channel(0);
        (sender, StopRequests(receiver))
    }

    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until there are more than `count` requests. It waits for ever if no more can come.
    pub async fn more_than(&mut self, count: usize) {
        if self.0.wait_for(|asked| *asked > count).await.is_err() {
            std::future::pending().await
        }
    }
}
