//! Types whose values say themselves what they are, and `QBit`: they are read in results only. States of
//! aggregate functions are never read.

use super::cursor::Parser;
use super::{custom, TypeError};
use crate::types::{AggregateFunction, DataType};

/// The largest dimension: ClickHouse's own limit is lower; a row is `dimension` numbers.
const MAX_QBIT_DIMENSION: u64 = 1 << 20;

impl Parser<'_> {
    /// Reads `Dynamic(max_types=2)`: the server's limit makes no difference to a reader.
    pub(super) fn dynamic(&mut self, start: usize) -> Result<DataType, TypeError> {
        if !self.eat('(') {
            return Ok(DataType::Dynamic);
        }
        self.rest_of_arguments()?;
        Ok(self.as_written(start, DataType::Dynamic))
    }

    /// Reads `JSON(max_dynamic_paths=1, a UInt32, SKIP b, SKIP REGEXP 'c')`: only the typed paths matter to a
    /// reader.
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

    /// Skips the path behind `SKIP`, and says whether there was one. A path may itself be named `SKIP`; then
    /// a type follows.
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

    /// Reads `AggregateFunction(1, sumMap, Array(UInt8), Array(UInt64))`: a number in front is the version of
    /// the states.
    pub(super) fn aggregate_function(&mut self, start: usize, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let mut name = Some(self.word()?.to_string());
        if name.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.expect(',')?;
            self.word()?;
            name = None;
        }
        if self.eat('(') {
            self.rest_of_arguments()?;
        }
        let mut arguments = Vec::new();
        while self.eat(',') {
            arguments.push(self.data_type(depth + 1)?);
        }
        self.expect(')')?;
        let spelled = self.text[start..self.at].to_string();
        Ok(DataType::AggregateFunction(Box::new(AggregateFunction { spelled, name, arguments })))
    }

    fn as_written(&self, start: usize, inner: DataType) -> DataType {
        custom(self.text[start..self.at].to_string(), inner)
    }
}
