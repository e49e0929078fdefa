//! A value that a reload of the settings replaces while the gateway runs.

use std::sync::{PoisonError, RwLock};

/// A value as it is at this moment. Results that were worked out from an older one stay until the value is read again.
pub struct Live<T>(RwLock<T>);

impl<T: Clone> Live<T> {
    pub fn new(value: T) -> Live<T> {
        Live(RwLock::new(value))
    }

    pub(crate) fn get(&self) -> T {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}
