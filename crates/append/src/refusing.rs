//! Appends before a store that takes none: each is refused, with the reason.

use async_trait::async_trait;

use crate::answer::{Committed, Opened, Progress, Status};
use crate::appends::{Announced, AppendService, Attended};
use crate::error::AppendError;
use crate::errors;
use crate::id::AppendId;
use crate::request::OpenRequest;

pub(crate) struct Refusing;

#[async_trait]
impl AppendService for Refusing {
    async fn open(&self, _: OpenRequest) -> Result<Opened, AppendError> {
        Err(errors::not_taken_here())
    }

    async fn attend(&self, _: OpenRequest) -> Result<Attended, AppendError> {
        Err(errors::not_taken_here())
    }

    async fn announce(
        &self,
        _: AppendId,
        _: &str,
        _: u64,
        _: u64,
        _: Option<OpenRequest>,
    ) -> Result<Announced, AppendError> {
        Err(errors::not_taken_here())
    }

    async fn commit(&self, _: AppendId, _: &str, _: u64, _: Option<OpenRequest>) -> Result<Committed, AppendError> {
        Err(errors::not_taken_here())
    }

    async fn abort(&self, id: AppendId, _: &str) -> Result<(), AppendError> {
        Err(errors::gone(id))
    }

    async fn status(&self, id: AppendId, _: &str) -> Result<Status, AppendError> {
        Err(errors::gone(id))
    }

    fn list(&self) -> Vec<(String, Progress)> {
        Vec::new()
    }

    async fn shut_down(&self) {}
}
