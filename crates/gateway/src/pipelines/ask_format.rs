//! A message's payload read by ClickHouse, with the gateway's own account.

use windrow_block::Block;
use windrow_client::{CallError, Client};
use windrow_pipeline::{AskError, FormatQuestion};

use super::own_account;
use crate::backend_reading::Reading;

/// What a message's rows may become, however few its bytes are.
const MAX_BYTES: usize = 64 << 20;

pub(super) async fn ask(client: &Client, question: FormatQuestion<'_>) -> Result<Block, AskError> {
    let reading = Reading {
        credentials: own_account(client),
        format: question.format,
        columns: question.columns,
        payload: &question.payload,
        max_bytes: MAX_BYTES,
    };
    let settings = question.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    reading.ask(client, settings).await.map_err(|error| match error {
        CallError::Exception(exception) if !exception.is_passing() => AskError::Refused(exception),
        CallError::Exception(exception) => AskError::Unavailable(exception.line),
        CallError::NotSent(error) => AskError::Unavailable(error.to_string()),
        CallError::Unknown(text) => AskError::Unavailable(text),
    })
}
