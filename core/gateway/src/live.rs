//! What a reload exchanges while the gateway runs.

use std::sync::{PoisonError, RwLock};

/// Something as it is at this moment. What was worked out of it before goes on until it is asked for anew.
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
