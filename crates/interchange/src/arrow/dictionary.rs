//! The dictionaries of a stream, by id.

use windrow_columns::NotParsedReason;

use super::batch::Batch;
use super::message::Message;
use super::schema::{Dictionary, Field, Layout};
use crate::budget::Budget;
use crate::column::Column;

#[derive(Default)]
pub(super) struct Dictionaries {
    known: Vec<(i64, Column<'static>)>,
}

impl Dictionaries {
    pub(super) fn get(&self, dictionary: &Dictionary) -> Option<&Column<'static>> {
        self.known.iter().find(|(id, _)| *id == dictionary.id).map(|(_, values)| values)
    }

    /// A dictionary that comes again under an id, or adds to one, is left to ClickHouse.
    pub(super) fn read(
        &mut self,
        message: &Message<'_>,
        fields: &[Field],
        budget: &mut Budget,
    ) -> Result<(), NotParsedReason> {
        let syntax = NotParsedReason::Syntax;
        let id = message.table.i64(0, 0).ok_or(syntax)?;
        let record = message.table.table(1).flatten().ok_or(syntax)?;
        let adds = message.table.u8(2, 0).ok_or(syntax)? != 0;
        let mut using = Vec::new();
        fields.iter().for_each(|field| users(field, id, &mut using));
        let first = using.first().ok_or(syntax)?;
        let is_scalar = !matches!(
            first.layout,
            Layout::List { .. } | Layout::FixedList { .. } | Layout::Map { .. } | Layout::Struct(_)
        );
        let is_new = self.known.iter().all(|(known, _)| *known != id);
        if adds || !is_new || !is_scalar || using.iter().any(|field| field.layout != first.layout) {
            return Err(NotParsedReason::Value);
        }
        let plain = Field { name: String::new(), layout: first.layout.clone(), dictionary: None };
        let mut batch = Batch::new(&record, message.body, budget)?;
        let rows = batch.rows();
        let values = batch.column(&plain, rows, &Dictionaries::default())?;
        batch.finish()?;
        let values = values.at(&(0..rows as u32).collect::<Vec<_>>(), None, budget)?;
        self.known.push((id, values));
        Ok(())
    }
}

/// The fields whose values are in the dictionary `id`.
fn users<'f>(field: &'f Field, id: i64, found: &mut Vec<&'f Field>) {
    if field.dictionary.as_ref().is_some_and(|dictionary| dictionary.id == id) {
        found.push(field);
    }
    match &field.layout {
        Layout::List { inner, .. } | Layout::FixedList { inner, .. } => users(inner, id, found),
        Layout::Map { key, value } => [key, value].into_iter().for_each(|field| users(field, id, found)),
        Layout::Struct(fields) => fields.iter().for_each(|field| users(field, id, found)),
        _ => {}
    }
}
