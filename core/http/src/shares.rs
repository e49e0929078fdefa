//! Memory for bytes that come before their sender is known: bounded for all senders, and for each network.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A number of bytes, of which one network gets at most half.
#[derive(Debug)]
pub struct Shares {
    most_bytes: u64,
    taken: Mutex<TakenPermits>,
}

#[derive(Debug, Default)]
struct TakenPermits {
    all: u64,
    by_network: HashMap<IpAddr, u64>,
}

/// One peer's share of the bytes, given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    shares: Arc<Shares>,
    network: IpAddr,
    bytes: u64,
}

impl Shares {
    pub fn new(most_bytes: u64) -> Arc<Shares> {
        Arc::new(Shares { most_bytes, taken: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, TakenPermits> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an empty share for a peer with this address.
    pub fn of(self: &Arc<Shares>, address: IpAddr) -> Share {
        Share { shares: self.clone(), network: network_of(address), bytes: 0 }
    }
}

impl Share {
    /// Grows the share to at least `bytes`. Returns false where there is no room; the share is unchanged then.
    pub fn grow_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let mut taken = self.shares.lock();
        let of_network = taken.by_network.get(&self.network).copied().unwrap_or(0) + more;
        if taken.all + more > self.shares.most_bytes || of_network > self.shares.most_bytes / 2 {
            return false;
        }
        taken.all += more;
        taken.by_network.insert(self.network, of_network);
        self.bytes = bytes;
        true
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn give_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes == 0 {
            return;
        }
        let mut taken = self.shares.lock();
        taken.all -= bytes;
        if let Some(of_network) = taken.by_network.get_mut(&self.network) {
            *of_network -= bytes;
            if *of_network == 0 {
                taken.by_network.remove(&self.network);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Returns the network that an address belongs to, as far as the address shows it: with IPv6 every customer
/// has 2^64 addresses (RFC 6177).
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_gets_half_and_all_together_no_more_than_there_is() {
        let shares = Shares::new(100);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut first = shares.of(address("10.0.0.1"));
        assert!(first.grow_to(30) && first.grow_to(50) && !first.grow_to(51));
        assert!(!shares.of(address("::ffff:10.0.0.1")).grow_to(1), "the same address");
        let mut second = shares.of(address("2001:db8::1"));
        assert!(second.grow_to(40));
        assert!(!shares.of(address("2001:db8::2")).grow_to(11), "the same network");
        assert!(!shares.of(address("2001:db8:0:1::1")).grow_to(11), "nothing is left");
        drop(second);
        assert!(shares.of(address("2001:db8:0:1::1")).grow_to(11));
        first.give_back();
        assert!(first.grow_to(50));
    }
}
