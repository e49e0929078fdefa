//! A message's payload read by ClickHouse, with the gateway's own account.

use windrow_clickhouse::{CallError, Client};
use windrow_columns::Block;
use windrow_kafka::pipeline::{AskError, FormatQuestion};

use super::own_account;
use crate::backend_reading::Reading;

/// Limit of the bytes that a message's rows may take in Native, however few bytes the message has.
const MAX_BYTES: usize = 64 << 20;

pub(super) async fn ask(client: &Client, question: FormatQuestion<'_>) -> Result<Block, AskError> {
    let columns = question.columns.iter().map(|column| (column.name.clone(), column.data_type.to_string()));
    let columns: Vec<_> = columns.collect();
    let reading = Reading {
        credentials: own_account(client),
        format: question.format,
        columns: &columns,
        payload: &question.payload,
        max_bytes: MAX_BYTES,
    };
    let settings = question.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    match reading.ask(client, settings).await {
        Ok(answer) => answer.block(question.columns).map_err(AskError::Refused),
        Err(CallError::Exception(exception)) if !exception.is_passing() => Err(AskError::Refused(exception)),
        Err(CallError::Exception(exception)) => Err(AskError::Unavailable(exception.line)),
        Err(CallError::NotSent(error)) => Err(AskError::Unavailable(error.to_string())),
        Err(CallError::Unknown(text)) => Err(AskError::Unavailable(text)),
    }
}
