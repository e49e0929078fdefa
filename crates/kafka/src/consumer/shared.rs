//! What the conductor, the fetchers and the handles know together.

use std::sync::Mutex;

use crate::consumer::options::FetchSizes;
use crate::consumer::records::Delivery;

#[derive(Debug)]
pub(crate) struct Shared {
    pub fetch: Mutex<FetchSizes>,
}

impl Shared {
    pub(crate) fn is_current(&self, delivery: &Delivery) -> bool {
        delivery.start > 0
    }
}
