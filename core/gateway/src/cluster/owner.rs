//! The choice of the gateway that owns an insert: rendezvous hashing.
//!
//! Each gateway's name is hashed together with the insert's keys, and the highest hash wins. So all gateways
//! with the same list agree, whatever its order. When a gateway is added to or taken from a list of `n`, only
//! its own inserts change their owner, about one in `n`. The hash is of the keys by which the deduplication
//! index knows an insert: the table, and the token or the rows. The same insert in another format, or into a
//! table that was renamed, has the same keys.
//!
//! The hash is a contract between gateways of different versions. It is CityHash128, as ClickHouse has it.

use windrow_compression::cityhash128;

use super::InsertKey;

pub(super) struct Owners {
    /// Hashes of the gateways' names.
    hashes: Vec<[u8; 16]>,
}

impl Owners {
    pub(super) fn of(names: &[String]) -> Owners {
        Owners { hashes: names.iter().map(|name| cityhash128(name.as_bytes())).collect() }
    }

    /// Returns the index of the owner in the list.
    pub(super) fn owner(&self, insert: InsertKey) -> usize {
        let mut bytes = [0; 48];
        bytes[16..32].copy_from_slice(&insert.table.to_le_bytes());
        bytes[32..].copy_from_slice(&insert.key.to_le_bytes());
        let weight = |name: &[u8; 16]| {
            bytes[..16].copy_from_slice(name);
            // Two names of one weight: by the name, since places differ between lists.
            (u128::from_le_bytes(cityhash128(&bytes)), *name)
        };
        let weights = self.hashes.iter().map(weight).enumerate();
        weights.max_by_key(|(_, weight)| *weight).map_or(0, |(place, _)| place)
    }

    /// Returns a fingerprint of the list. It is equal if two lists name the same gateways.
    pub(super) fn fingerprint(&self) -> String {
        let mut sorted = self.hashes.clone();
        sorted.sort_unstable();
        format!("{:032x}", u128::from_le_bytes(cityhash128(&sorted.concat())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: std::ops::Range<usize>) -> Vec<String> {
        numbers.map(|number| format!("http://windrow-{number}.windrow:8123")).collect()
    }

    fn keys(number: u128) -> InsertKey {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        InsertKey { table: 7, key, has_token: true }
    }

    #[test]
    fn owners_are_spread_evenly_and_do_not_depend_on_the_lists_order() {
        let (mut list, mut counts) = (names(0..4), [0; 4]);
        let owners = Owners::of(&list);
        let found: Vec<String> = (0..4_000).map(|number| list[owners.owner(keys(number))].clone()).collect();
        for name in &found {
            counts[list.iter().position(|known| known == name).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        list.reverse();
        let reversed = Owners::of(&list);
        assert!(found.iter().enumerate().all(|(number, name)| list[reversed.owner(keys(number as u128))] == *name));
        assert_eq!(owners.fingerprint(), reversed.fingerprint());
    }

    #[test]
    fn a_gateway_more_takes_its_share_and_no_other_owner_changes() {
        let (four, five) = (Owners::of(&names(0..4)), Owners::of(&names(0..5)));
        let moved: Vec<usize> =
            (0..4_000).filter(|n| four.owner(keys(*n)) != five.owner(keys(*n))).map(|n| five.owner(keys(n))).collect();
        assert!(moved.iter().all(|owner| *owner == 4));
        assert!((700..900).contains(&moved.len()), "{}", moved.len());
        assert_ne!(four.fingerprint(), five.fingerprint());
    }

    /// Gateways of another version must find the same owners.
    #[test]
    fn the_hash_stays_as_it_is() {
        let owners = Owners::of(&names(0..4));
        let found: Vec<usize> = (0..16).map(|number| owners.owner(keys(number))).collect();
        assert_eq!(found, [2, 3, 2, 3, 1, 0, 3, 1, 1, 0, 0, 0, 3, 2, 3, 3]);
    }
}
