//! The rows before the first one: names of columns, and of types.

use super::dialect::Dialect;
use super::field::Fields;
use crate::plan::ReadPlan;
use crate::present::Present;
use crate::read::cursor::Cursor;
use crate::read::outcome::NotTypedReason;

/// Which column each field belongs to, and which columns no field does.
pub(super) struct Layout {
    pub(super) fields: Vec<Option<usize>>,
    pub(super) missing: Vec<usize>,
}

impl Layout {
    pub(super) fn of_table(plan: &ReadPlan) -> Self {
        Layout { fields: (0..plan.columns().len()).map(Some).collect(), missing: Vec::new() }
    }
}

impl<D: Dialect> Fields<'_, '_, D> {
    /// The first row as names of columns.
    pub(super) fn read_names(&mut self, plan: &ReadPlan) -> Result<Layout, NotTypedReason> {
        let mut fields = Vec::new();
        let mut seen = Present::default();
        self.read_header_row(|name| {
            let column = plan.position(name);
            match column {
                Some(column) if seen.contains(column) => return Err(NotTypedReason::DuplicateField),
                Some(column) => seen.insert(column),
                None if !plan.settings.skip_unknown_fields || plan.resembles_a_column(name) => {
                    return Err(NotTypedReason::UnknownField)
                }
                None => {}
            }
            fields.push(column);
            Ok(())
        })?;
        let missing = (0..plan.columns().len()).filter(|column| !seen.contains(*column)).collect();
        Ok(Layout { fields, missing })
    }

    /// The second row as names of types, which have to be those of the table.
    pub(super) fn read_types(&mut self, plan: &ReadPlan, layout: &Layout) -> Result<(), NotTypedReason> {
        let mut fields = layout.fields.iter();
        self.read_header_row(|type_name| match fields.next() {
            None => Err(NotTypedReason::Syntax),
            Some(None) => Ok(()),
            Some(Some(column)) if plan.columns()[*column].data_type.to_string().as_bytes() == type_name => Ok(()),
            Some(Some(_)) => Err(NotTypedReason::Value),
        })?;
        match fields.next() {
            None => Ok(()),
            Some(_) => Err(NotTypedReason::Syntax),
        }
    }

    /// Whether ClickHouse takes the first row for names of columns: it has no others, or has all of them.
    pub(super) fn has_names(&mut self, plan: &ReadPlan) -> Result<bool, NotTypedReason> {
        let mut seen = Present::default();
        let mut has_others = false;
        self.peek_row(|field| {
            match plan.position(field) {
                Some(column) => seen.insert(column),
                None => has_others = true,
            }
            Ok(())
        })?;
        Ok(!has_others || seen.count() == plan.columns().len())
    }

    /// Whether ClickHouse might take the row behind names for names of types. They all begin with a letter.
    pub(super) fn may_have_types(&mut self) -> Result<bool, NotTypedReason> {
        let mut may_be_types = true;
        self.peek_row(|field| {
            let may_begin_type = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'\\');
            may_be_types &= field.first().is_some_and(may_begin_type);
            Ok(())
        })?;
        Ok(may_be_types)
    }

    pub(super) fn skip_header_row(&mut self) -> Result<(), NotTypedReason> {
        self.read_header_row(|_| Ok(()))
    }

    fn peek_row(&mut self, field: impl FnMut(&[u8]) -> Result<(), NotTypedReason>) -> Result<(), NotTypedReason> {
        let start = self.cursor.at;
        self.read_header_row(field)?;
        self.cursor = Cursor { bytes: self.cursor.bytes, at: start };
        Ok(())
    }

    fn read_header_row(
        &mut self,
        mut field: impl FnMut(&[u8]) -> Result<(), NotTypedReason>,
    ) -> Result<(), NotTypedReason> {
        loop {
            self.dialect.start_field(&mut self.cursor);
            let text = self.dialect.text(&mut self.cursor, &mut self.scratch)?;
            field(text.bytes(&self.scratch))?;
            if !self.dialect.at_delimiter(&self.cursor) {
                break;
            }
            self.cursor.at += 1;
        }
        self.dialect.end_row(&mut self.cursor)
    }
}
