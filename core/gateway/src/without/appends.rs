//! Stands for `appends/` where the program is built without the feature `append`: the path is like any other.

use serde_json::Value;
use windrow_http::Connection;

use super::exchange::Exchange;
use super::After;

pub enum Appends {}

impl Appends {
    pub(crate) fn list_all(&self) -> Vec<(String, Value)> {
        match *self {}
    }

    pub(crate) async fn shut_down(&self) {
        match *self {}
    }
}

pub(crate) fn is_of_appends(_: &str) -> bool {
    false
}

impl Exchange<'_> {
    pub(super) async fn append(&self, _: &mut Connection, _: &mut Vec<u8>) -> After {
        After::Close
    }
}
