//! Actions: statements are prepared and closed. Transactions are not offered, and the answer says so.

use arrow_flight::{Action, ActionType, Result as ActionResult};
use tonic::Status;
use windrow_clickhouse::Exception;

use super::{get, Inner};
use crate::command::Command;
use crate::error::status;
use crate::login::Caller;
use crate::messages::*;
use crate::outgoing::schema_bytes;

pub(super) async fn act(
    inner: &Inner,
    caller: &Caller,
    action: Action,
) -> Result<std::option::IntoIter<ActionResult>, Status> {
    let answer = match action.r#type.as_str() {
        "CreatePreparedStatement" => match Command::read(&action.body)? {
            Command::CreatePrepared(request) => {
                get::no_transaction(request.transaction_id.as_ref())?;
                let made = prepare(inner, caller, request.query).await.map_err(|exception| status(&exception))?;
                Some(ActionResult { body: made.in_any() })
            }
            _ => return Err(Status::invalid_argument("CreatePreparedStatement has another body than that")),
        },
        "ClosePreparedStatement" => match Command::read(&action.body)? {
            Command::ClosePrepared(request) => {
                inner.statements.close(caller, &request.prepared_statement_handle);
                None
            }
            _ => return Err(Status::invalid_argument("ClosePreparedStatement has another body than that")),
        },
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            return Err(Status::unimplemented("transactions are not supported: each statement is one of its own"));
        }
        other => return Err(Status::unimplemented(format!("the action {other:?} is not supported"))),
    };
    Ok(answer.into_iter())
}

async fn prepare(
    inner: &Inner,
    caller: &Caller,
    sql: String,
) -> Result<ActionCreatePreparedStatementResult, Exception> {
    let result = get::result_schema(&inner.store, caller, &sql).await?;
    let parameters = super::bound::parameter_schema(inner, caller, &sql).await?;
    let dataset_schema = match result {
        Some(schema) => schema_bytes(&schema)?,
        None => Default::default(),
    };
    let parameter_schema = match parameters {
        Some(schema) => schema_bytes(&schema)?,
        None => Default::default(),
    };
    let prepared_statement_handle = inner.statements.add(caller, sql)?;
    Ok(ActionCreatePreparedStatementResult { prepared_statement_handle, dataset_schema, parameter_schema })
}

pub(super) fn known() -> impl Iterator<Item = ActionType> {
    let known = [
        ("CreatePreparedStatement", "Prepares a statement: ActionCreatePreparedStatementRequest gives its result."),
        (
            "ClosePreparedStatement",
            "Forgets a prepared statement: ActionClosePreparedStatementRequest, without a result.",
        ),
    ];
    known
        .into_iter()
        .map(|(name, description)| ActionType { r#type: name.to_owned(), description: description.to_owned() })
}
