//! The rows before the first one: names of columns, and of types.

use super::dialect::Dialect;
use super::field::Fields;
use crate::plan::ReadPlan;
use crate::present::Present;
use crate::read::layout::Layout;
use crate::read::outcome::NotParsedReason;

impl<D: Dialect> Fields<'_, '_, D> {
    /// Reads the first row as names of columns.
    pub(super) fn read_names(&mut self, plan: &ReadPlan) -> Result<Layout, NotParsedReason> {
        let names = self.read_texts()?;
        Layout::of_names(names.iter().map(Vec::as_slice), plan)
    }

    /// Reads the second row as names of types, which have to be those of the table.
    pub(super) fn read_types(&mut self, layout: Layout, plan: &ReadPlan) -> Result<Layout, NotParsedReason> {
        let types = self.read_texts()?;
        layout.with_types(types.iter().map(Vec::as_slice), plan)
    }

    fn read_texts(&mut self) -> Result<Vec<Vec<u8>>, NotParsedReason> {
        let mut texts = Vec::new();
        self.read_header_row(|text| texts.push(text.to_vec()))?;
        Ok(texts)
    }

    /// Says whether ClickHouse takes the first row for names of columns: the row has no other texts, or it
    /// has all names.
    pub(super) fn has_names(&mut self, plan: &ReadPlan) -> Result<bool, NotParsedReason> {
        let mut seen = Present::default();
        let mut has_others = false;
        self.peek_row(|field| match plan.position(field) {
            Some(column) => seen.insert(column),
            None => has_others = true,
        })?;
        Ok(!has_others || seen.count() == plan.columns().len())
    }

    /// Says whether ClickHouse might take the row behind names for names of types. These all begin with a
    /// letter.
    pub(super) fn may_have_types(&mut self) -> Result<bool, NotParsedReason> {
        let mut may_be_types = true;
        self.peek_row(|field| {
            let may_begin_type = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'\\');
            may_be_types &= field.first().is_some_and(may_begin_type);
        })?;
        Ok(may_be_types)
    }

    pub(super) fn skip_header_row(&mut self) -> Result<(), NotParsedReason> {
        self.read_header_row(|_| {})
    }

    fn peek_row(&mut self, field: impl FnMut(&[u8])) -> Result<(), NotParsedReason> {
        let start = self.cursor.at;
        self.read_header_row(field)?;
        self.cursor.at = start;
        Ok(())
    }

    fn read_header_row(&mut self, mut field: impl FnMut(&[u8])) -> Result<(), NotParsedReason> {
        loop {
            self.dialect.skip_blanks(&mut self.cursor);
            let text = self.dialect.text(&mut self.cursor, &mut self.scratch)?;
            field(text.bytes(&self.scratch));
            if !self.dialect.at_delimiter(&self.cursor) {
                break;
            }
            self.cursor.at += 1;
        }
        self.dialect.end_row(&mut self.cursor)
    }
}
