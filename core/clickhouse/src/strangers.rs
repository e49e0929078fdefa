//! A limit for queries about unknown users: few at a time, and fewer for one network, so that a client that
//! tries names and passwords delays only itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use windrow_http::network_of;

/// The most users that ClickHouse is asked about at a time.
const ASKED_ABOUT: usize = 16;
const ASKED_ABOUT_OF_ONE_NETWORK: usize = 4;

/// Unknown users that wait until ClickHouse is asked about them.
pub struct Strangers {
    asked_about: Semaphore,
    by_network: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// Leave to ask about one user, until it is dropped.
pub struct Turn<'a> {
    // Given back before its network is forgotten.
    _of_network: OwnedSemaphorePermit,
    _of_all: SemaphorePermit<'a>,
    _asker: Asker<'a>,
}

/// A client that has a turn or waits for one. It keeps the limit of its network in the map.
struct Asker<'a> {
    strangers: &'a Strangers,
    network: IpAddr,
    turns: Arc<Semaphore>,
}

impl Default for Strangers {
    fn default() -> Strangers {
        Strangers { asked_about: Semaphore::new(ASKED_ABOUT), by_network: Mutex::default() }
    }
}

impl Strangers {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<Semaphore>>> {
        self.by_network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until ClickHouse may be asked about a user from this address.
    pub async fn turn(&self, address: IpAddr) -> Option<Turn<'_>> {
        let network = network_of(address);
        let new = || Arc::new(Semaphore::new(ASKED_ABOUT_OF_ONE_NETWORK));
        let turns = self.lock().entry(network).or_insert_with(new).clone();
        let asker = Asker { strangers: self, network, turns };
        // Those of one network wait for each other, and only then for the others.
        let of_network = asker.turns.clone().acquire_owned().await.ok()?;
        let of_all = self.asked_about.acquire().await.ok()?;
        Some(Turn { _of_network: of_network, _of_all: of_all, _asker: asker })
    }
}

impl Drop for Asker<'_> {
    fn drop(&mut self) {
        let mut by_network = self.strangers.lock();
        // The map's and this one: nobody else of the network has a turn or waits for one.
        if Arc::strong_count(&self.turns) == 2 {
            by_network.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::*;

    #[tokio::test]
    async fn one_network_does_not_take_all_turns() {
        let strangers = Strangers::default();
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let mut turns = Vec::new();
        for _ in 0..ASKED_ABOUT_OF_ONE_NETWORK {
            turns.push(strangers.turn(address(1)).await.unwrap());
        }
        let mut waits = std::pin::pin!(strangers.turn(address(1)));
        let is_waiting = std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx).is_pending())).await;
        assert!(is_waiting);
        drop(strangers.turn(address(2)).await.unwrap());
        assert_eq!(strangers.lock().len(), 1, "nothing is kept of those who have had their turn");
        turns.pop();
        drop(waits.await.unwrap());
        turns.push(strangers.turn(address(1)).await.unwrap());
        {
            let mut waits = std::pin::pin!(strangers.turn(address(1)));
            let _ = std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx).is_pending())).await;
        }
        turns.clear();
        assert!(strangers.lock().is_empty(), "nor of those who have given up");
    }
}
