//! A map that keeps the entries that were used lately, up to a number of entries.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A map of two generations. An entry that is used moves to the younger generation; when that has half of all
/// entries, the older one is dropped. So an entry is dropped only after as many others have been used since,
/// and a find in the younger generation costs a shared lock only.
pub struct Recent<K, V> {
    generations: RwLock<Generations<K, V>>,
    max_young: usize,
}

struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    pub fn new(max_entries: usize) -> Recent<K, V> {
        let generations = RwLock::new(Generations { young: HashMap::new(), old: HashMap::new() });
        Recent { generations, max_young: (max_entries / 2).max(1) }
    }

    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let generations = self.read();
        if let Some(value) = generations.young.get(key) {
            return Some(value.clone());
        }
        let is_old = generations.old.contains_key(key);
        drop(generations);
        if !is_old {
            return None;
        }
        let mut generations = self.write();
        let Some((key, value)) = generations.old.remove_entry(key) else {
            // Somebody else has just brought it over.
            return generations.young.get(key).cloned();
        };
        let found = value.clone();
        generations.young.insert(key, value);
        Some(found)
    }

    pub fn put(&self, key: K, value: V) {
        let mut generations = self.write();
        generations.old.remove(&key);
        generations.young.insert(key, value);
        let gone = (generations.young.len() > self.max_young).then(|| generations.age());
        // Many entries may go at once: not under the lock.
        drop(generations);
        drop(gone);
    }

    pub(crate) fn remove<Q>(&self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut generations = self.write();
        generations.young.remove(key);
        generations.old.remove(key);
    }

    /// Drops the entries that were not used since the last call, or since the younger generation was last full.
    pub fn age(&self) {
        let gone = self.write().age();
        drop(gone);
    }

    pub(crate) fn entries(&self) -> Vec<(K, V)>
    where
        K: Clone,
    {
        let generations = self.read();
        let all = generations.young.iter().chain(&generations.old);
        all.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Generations<K, V>> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Generations<K, V>> {
        self.generations.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Generations<K, V> {
    /// Makes the younger generation the older one, and returns the entries that are dropped.
    fn age(&mut self) -> HashMap<K, V> {
        let young = std::mem::take(&mut self.young);
        std::mem::replace(&mut self.old, young)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays() {
        let recent = Recent::<u32, u32>::new(20);
        for key in 0..1_000 {
            recent.put(key, key * 2);
            assert_eq!(recent.get(&0), Some(0), "it was used before each of the others: {key}");
        }
        assert_eq!(recent.get(&999), Some(1_998));
        assert_eq!(recent.get(&500), None);
        let generations = recent.read();
        assert!(generations.young.len() + generations.old.len() <= 22);
    }

    #[test]
    fn what_nobody_uses_goes_with_time() {
        let recent = Recent::<String, u32>::new(20);
        recent.put("a".to_owned(), 1);
        recent.put("b".to_owned(), 2);
        recent.age();
        assert_eq!(recent.get("a"), Some(1));
        recent.age();
        assert_eq!((recent.get("a"), recent.get("b")), (Some(1), None));
        recent.remove("a");
        assert_eq!(recent.get("a"), None);
    }
}
