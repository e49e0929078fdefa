//! ClickHouse's answer for a message, turned into the plan's fields.

use windrow_columns::{Block, ColumnView, DefaultKind, Layout, Parsed, Present};

use crate::messages::error::{MessageError, Unread};
use crate::messages::plan::MessagePlan;

/// Turns an answer into fields. Columns with a DEFAULT expression were asked for as Nullable: NULL in all
/// rows says that the message left the column out.
pub(crate) fn fields(plan: &MessagePlan, answer: Block) -> Result<Parsed, Unread> {
    let specs = plan.fields.columns();
    if answer.columns() != specs.len() {
        return Err(refused(
            format!("ClickHouse answered with {} columns for {}", answer.columns(), specs.len()),
            None,
        ));
    }
    let mut present = Present::default();
    let mut kept = Vec::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        let nulls = answer.column(index).filter(|_| spec.default_kind == DefaultKind::Default).and_then(nulls);
        let is_left_out = nulls.is_some_and(|nulls| nulls.contains(&1));
        if is_left_out && nulls.is_some_and(|nulls| nulls.contains(&0)) {
            let column = plan.column_of_field(index).map(|column| column.name.clone());
            let text =
                "Some rows of the message have a value for a column with a DEFAULT expression and others have none";
            return Err(refused(text.to_owned(), column));
        }
        if !is_left_out {
            present.insert(index);
            kept.push((index, nulls.is_some()));
        }
    }
    let mut block = answer.select(kept.iter().map(|(index, _)| *index));
    for (position, (_, is_asked_nullable)) in kept.into_iter().enumerate() {
        if is_asked_nullable {
            block.unwrap_nullable(position);
        }
    }
    Ok(Parsed { block, present })
}

fn nulls(column: ColumnView<'_>) -> Option<&[u8]> {
    match column.layout() {
        Layout::Nullable { nulls, .. } => Some(nulls),
        _ => None,
    }
}

fn refused(text: String, column: Option<String>) -> Unread {
    Unread::Refused(MessageError { text, row: 1, column, certain: true })
}
