//! Types whose values say themselves what they are, and `QBit`: read in results only.

use super::cursor::Parser;
use super::{custom, TypeError};
use crate::types::DataType;

/// ClickHouse's own limit is lower; a row is `dimension` numbers.
const MAX_QBIT_DIMENSION: u64 = 1 << 20;

impl Parser<'_> {
    /// `Dynamic(max_types=2)`: what the server's limit is makes no difference to a reader.
    pub(super) fn dynamic(&mut self, start: usize) -> Result<DataType, TypeError> {
        if !self.eat('(') {
            return Ok(DataType::Dynamic);
        }
        self.rest_of_arguments()?;
        Ok(self.as_written(start, DataType::Dynamic))
    }

    /// `JSON(max_dynamic_paths=1, a UInt32, SKIP b, SKIP REGEXP 'c')`: only the typed paths matter to a reader.
    pub(super) fn json(&mut self, start: usize, depth: usize) -> Result<DataType, TypeError> {
        let mut typed_paths = Vec::new();
        if !self.eat('(') {
            return Ok(DataType::Json { typed_paths });
        }
        loop {
            if let Some(typed_path) = self.json_argument(depth)? {
                typed_paths.push(typed_path);
            }
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')')?;
        typed_paths.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(self.as_written(start, DataType::Json { typed_paths }))
    }

    fn json_argument(&mut self, depth: usize) -> Result<Option<(String, DataType)>, TypeError> {
        self.skip_space();
        let path = match self.peek() {
            Some('`') => self.quoted('`')?,
            _ => self.word()?.to_string(),
        };
        if self.eat('=') {
            self.word()?;
            return Ok(None);
        }
        self.skip_space();
        if path == "SKIP" && self.skipped_path()? {
            return Ok(None);
        }
        Ok(Some((path, self.data_type(depth + 1)?)))
    }

    /// What follows `SKIP`. A path may itself be named so; then a type follows.
    fn skipped_path(&mut self) -> Result<bool, TypeError> {
        let before = self.at;
        match self.peek() {
            Some('`') => drop(self.quoted('`')?),
            _ => {
                let word = self.word()?;
                self.skip_space();
                if word == "REGEXP" && self.peek() == Some('\'') {
                    self.quoted('\'')?;
                } else if DataType::parse_result(word).is_ok() || self.peek() == Some('(') {
                    self.at = before;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    pub(super) fn qbit(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let element = self.data_type(depth + 1)?;
        self.expect(',')?;
        let dimension = self.unsigned()?;
        self.expect(')')?;
        if !(1..=MAX_QBIT_DIMENSION).contains(&dimension) {
            return Err(self.malformed());
        }
        Ok(DataType::QBit { dimension: dimension as usize, array: Box::new(DataType::Array(Box::new(element))) })
    }

    fn as_written(&self, start: usize, inner: DataType) -> DataType {
        custom(self.text[start..self.at].to_string(), inner)
    }
}
