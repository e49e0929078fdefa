//! Rows as objects.

use super::{Fields, PlainFields};
use crate::paths::{PathNode, Paths};
use crate::plan::resembles;
use crate::read::json_text::read_string;
use crate::read::nested::ValueReader;
use crate::read::outcome::NotParsedReason;

/// Reads objects one after the other, or one array of them.
pub(super) fn read_each_row<const STRINGS: bool>(fields: Fields<'_, '_, '_, STRINGS>) -> Result<(), NotParsedReason> {
    Objects::new(fields).read_each_row()
}

/// Reads one object whose members are the rows; the members' names are not used.
pub(super) fn read_object_of_rows(fields: PlainFields<'_, '_, '_>) -> Result<(), NotParsedReason> {
    let mut objects = Objects::new(fields);
    objects.fields.values.cursor.skip_space();
    objects.fields.values.cursor.expect(b'{')?;
    objects.fields.values.cursor.skip_space();
    if !objects.fields.values.cursor.eat(b'}') {
        loop {
            objects.fields.values.cursor.expect(b'"')?;
            read_string(&mut objects.fields.values.cursor, &mut objects.fields.values.scratch)?;
            objects.fields.values.expect_colon()?;
            objects.read_row()?;
            if objects.fields.values.ends_object()? {
                break;
            }
        }
    }
    objects.fields.values.cursor.expect_end()
}

pub(super) struct Objects<'a, 'p, 'r, const STRINGS: bool> {
    pub(super) fields: Fields<'a, 'p, 'r, STRINGS>,
    /// The columns in the order in which the second row gave them; the rows behind it mostly do the same.
    pub(super) order: Vec<usize>,
}

/// Entry of `order` for a key that is no column's.
const NO_COLUMN: usize = usize::MAX;
/// First entry of `order` for a field with columns in it: its position among the paths is added. No table has
/// as many columns.
const FIRST_PATH: usize = usize::MAX / 2;

impl<'a, 'p, 'r, const STRINGS: bool> Objects<'a, 'p, 'r, STRINGS> {
    pub(super) fn new(fields: Fields<'a, 'p, 'r, STRINGS>) -> Self {
        Objects { fields, order: Vec::new() }
    }

    pub(super) fn read_each_row(&mut self) -> Result<(), NotParsedReason> {
        self.fields.values.cursor.skip_space();
        if self.fields.values.cursor.peek() == Some(b'[') {
            self.read_array()?;
            self.fields.values.cursor.skip_space();
            self.fields.values.cursor.eat_final_semicolon()
        } else {
            self.read_sequence()
        }
    }

    /// Reads objects one after the other, with a comma between or behind them where somebody likes one.
    fn read_sequence(&mut self) -> Result<(), NotParsedReason> {
        while !matches!(self.fields.values.cursor.peek(), None | Some(b';')) {
            self.read_row()?;
            self.fields.values.cursor.skip_space();
            if self.fields.values.cursor.eat(b',') {
                self.fields.values.cursor.skip_space();
                if self.fields.values.cursor.peek() == Some(b';') {
                    return Err(NotParsedReason::Syntax);
                }
            }
        }
        self.fields.values.cursor.eat_final_semicolon()
    }

    pub(super) fn read_array(&mut self) -> Result<(), NotParsedReason> {
        self.fields.values.cursor.expect(b'[')?;
        self.fields.values.cursor.skip_space();
        if !self.fields.values.cursor.eat(b']') {
            loop {
                self.read_row()?;
                if self.fields.values.ends_list(b']')? {
                    break;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn read_row(&mut self) -> Result<(), NotParsedReason> {
        self.fields.values.cursor.expect(b'{')?;
        self.fields.values.cursor.skip_space();
        if !self.fields.values.cursor.eat(b'}') {
            let learning = self.fields.rows.is_second();
            if learning {
                self.order.clear();
            }
            // Rows mostly give the columns in the table's order, so the next key is known before it is read.
            let mut next = 0;
            for position in 0.. {
                let column = self.read_member(self.order.get(position).copied().unwrap_or(next))?;
                if learning {
                    self.order.push(column);
                }
                next = column.wrapping_add(1);
                if self.fields.values.ends_object()? {
                    break;
                }
            }
        }
        self.fields.rows.end_row()
    }

    /// Reads a key and its value; returns the column.
    #[inline]
    fn read_member(&mut self, expected: usize) -> Result<usize, NotParsedReason> {
        if let Some(reader) = self.fields.rows.plan.rules.readers.get(expected) {
            if let Some(length) = reader.key.length_in(self.fields.values.cursor.rest()) {
                self.fields.values.cursor.at += length;
                self.fields.values.cursor.skip_space();
                self.fields.read(expected)?;
                return Ok(expected);
            }
        }
        if let Some(paths) = &self.fields.rows.plan.rules.paths {
            if let Some(node) = self.read_path_key(paths, expected)? {
                self.read_path(paths, node)?;
                return Ok(FIRST_PATH + node);
            }
        }
        let name = self.fields.values.read_plain_key()?;
        if self.fields.values.settings.json.import_nested && self.is_nested(name)? {
            self.fields.values.expect_colon()?;
            self.read_nested(name)?;
            return Ok(NO_COLUMN);
        }
        self.read_value(name)
    }

    fn read_value(&mut self, name: &[u8]) -> Result<usize, NotParsedReason> {
        let column = self.fields.position(name)?;
        self.fields.values.expect_colon()?;
        match column {
            Some(column) => self.fields.read(column)?,
            None => self.fields.skip()?,
        }
        Ok(column.unwrap_or(NO_COLUMN))
    }

    /// Reads the key of a field that columns lie in. For another key the cursor stays, and `None` is
    /// returned.
    #[inline]
    fn read_path_key(&mut self, paths: &Paths, expected: usize) -> Result<Option<usize>, NotParsedReason> {
        let expected = expected.wrapping_sub(FIRST_PATH);
        if let Some(length) = paths.get(expected).and_then(|node| node.key.length_in(self.fields.values.cursor.rest()))
        {
            self.fields.values.cursor.at += length;
            self.fields.values.cursor.skip_space();
            return Ok(Some(expected));
        }
        let start = self.fields.values.cursor.at;
        let name = self.fields.values.read_plain_key()?;
        let found = paths.root(name);
        match found {
            Some(_) => self.fields.values.expect_colon()?,
            None => self.fields.values.cursor.at = start,
        }
        Ok(found)
    }

    /// Reads a field's value, for its own column and for the columns of fields in it. NULL has no fields.
    fn read_path(&mut self, paths: &Paths, node: usize) -> Result<(), NotParsedReason> {
        let node = paths.get(node).ok_or(NotParsedReason::UnknownField)?;
        let start = self.fields.values.cursor.at;
        if let Some(column) = node.column {
            self.fields.read(column)?;
            if node.children.is_empty() {
                return Ok(());
            }
            self.fields.values.cursor.at = start;
        }
        match self.fields.values.cursor.peek() {
            Some(b'n') => self.fields.values.expect_null(),
            Some(b'{') => self.read_path_members(paths, node),
            _ => Err(NotParsedReason::Value),
        }
    }

    fn read_path_members(&mut self, paths: &Paths, node: &PathNode) -> Result<(), NotParsedReason> {
        self.fields.values.cursor.expect(b'{')?;
        self.fields.values.cursor.skip_space();
        if self.fields.values.cursor.eat(b'}') {
            return Ok(());
        }
        for position in 0.. {
            let expected = node.children.get(position).copied();
            let known = expected.and_then(|child| paths.get(child)?.key.length_in(self.fields.values.cursor.rest()));
            let child = match known {
                Some(length) => {
                    self.fields.values.cursor.at += length;
                    self.fields.values.cursor.skip_space();
                    expected
                }
                None => {
                    let name = self.fields.values.read_plain_key()?;
                    self.fields.values.expect_colon()?;
                    paths.child(&node.children, name)
                }
            };
            match child {
                Some(child) => self.read_path(paths, child)?,
                None if self.fields.values.settings.skip_unknown_fields => self.fields.skip()?,
                None => return Err(NotParsedReason::UnknownField),
            }
            if self.fields.values.ends_object()? {
                break;
            }
        }
        Ok(())
    }

    /// Says whether the name is that of a nested structure, whose columns are then asked for.
    fn is_nested(&self, name: &[u8]) -> Result<bool, NotParsedReason> {
        let plan = self.fields.rows.plan;
        if plan.structures().any(|structure| structure.as_bytes() == name) {
            return Ok(true);
        }
        match resembles(name, plan.structures()) {
            true => Err(NotParsedReason::UnknownField),
            false => Ok(false),
        }
    }

    /// Reads an object of columns whose names begin with that of the structure.
    fn read_nested(&mut self, structure: &[u8]) -> Result<(), NotParsedReason> {
        self.fields.values.cursor.expect(b'{')?;
        self.fields.values.cursor.skip_space();
        if !self.fields.values.cursor.eat(b'}') {
            loop {
                let member = self.fields.values.read_plain_key()?;
                self.read_value(&[structure, b".", member].concat())?;
                if self.fields.values.ends_object()? {
                    break;
                }
            }
        }
        Ok(())
    }
}
