//! Types with types inside.

use super::cursor::Parser;
use super::{custom, Purpose, TypeError};
use crate::types::{DataType, TupleType};

/// The most alternatives of a Variant: the last discriminator means NULL.
const MAX_ALTERNATIVES: usize = 255;

impl Parser<'_> {
    pub(super) fn nullable(&mut self, depth: usize) -> Result<DataType, TypeError> {
        let inner = self.only_inner(depth)?;
        match inner.plain() {
            DataType::Nullable(_)
            | DataType::LowCardinality(_)
            | DataType::Array(_)
            | DataType::Map(..)
            | DataType::Variant(_)
                if self.purpose == Purpose::Insert =>
            {
                Err(self.refused(&format!("Nullable({inner})")))
            }
            _ => Ok(DataType::Nullable(Box::new(inner))),
        }
    }

    pub(super) fn low_cardinality(&mut self, depth: usize) -> Result<DataType, TypeError> {
        let inner = self.only_inner(depth)?;
        let is_for_dictionaries = match self.dictionary_type(&inner) {
            DataType::Nullable(inner) => self.dictionary_type(inner).is_scalar(),
            plain => plain.is_scalar(),
        };
        if is_for_dictionaries {
            Ok(DataType::LowCardinality(Box::new(inner)))
        } else {
            Err(self.refused(&format!("LowCardinality({inner})")))
        }
    }

    /// Returns the type of a dictionary's values. Readers of results look for the NULL of a dictionary in the
    /// type itself, and ClickHouse puts no other name there.
    fn dictionary_type<'t>(&self, inner: &'t DataType) -> &'t DataType {
        match self.purpose {
            Purpose::Insert => inner.plain(),
            Purpose::Result | Purpose::Passing => inner,
        }
    }

    /// Reads a Variant. The alternatives are kept in ClickHouse's order. On insert a Variant is converted
    /// only into one with the same alternatives, so alternatives that a Native block would spell otherwise
    /// are refused.
    pub(super) fn variant(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let mut alternatives = Vec::new();
        loop {
            let alternative = self.data_type(depth + 1)?;
            if self.purpose == Purpose::Insert && !is_inserted_alternative(&alternative) {
                return Err(self.refused(&format!("{alternative} in a Variant")));
            }
            alternatives.push(alternative);
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')')?;
        alternatives.sort_by_cached_key(DataType::to_string);
        alternatives.dedup();
        if alternatives.len() > MAX_ALTERNATIVES {
            return Err(self.malformed());
        }
        Ok(DataType::Variant(alternatives))
    }

    pub(super) fn nested(&mut self, depth: usize) -> Result<DataType, TypeError> {
        let DataType::Tuple(tuple) = self.tuple(depth)? else { return Err(self.malformed()) };
        if tuple.names.is_none() {
            return Err(self.malformed());
        }
        let tuple = DataType::Tuple(tuple);
        let name = tuple.to_string().replacen("Tuple", "Nested", 1);
        Ok(custom(name, DataType::Array(Box::new(tuple))))
    }

    /// Reads `SimpleAggregateFunction(sum, UInt64)`: values of the type that is aggregated, which stands
    /// last.
    pub(super) fn simple_aggregate_function(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let mut function = self.word()?.to_string();
        if self.eat('(') {
            let arguments: Vec<&str> = self.rest_of_arguments()?.split(',').map(str::trim).collect();
            if self.purpose == Purpose::Insert && !arguments.iter().all(|argument| is_word(argument)) {
                return Err(self.malformed());
            }
            function = format!("{function}({})", arguments.join(", "));
        }
        self.expect(',')?;
        let inner = self.data_type(depth + 1)?;
        self.expect(')')?;
        Ok(custom(format!("SimpleAggregateFunction({function}, {inner})"), inner))
    }

    pub(super) fn map(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let key = self.data_type(depth + 1)?;
        self.expect(',')?;
        let value = self.data_type(depth + 1)?;
        self.expect(')')?;
        Ok(DataType::Map(Box::new(key), Box::new(value)))
    }

    pub(super) fn tuple(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        if self.eat(')') {
            return self.empty_tuple();
        }
        let mut names = Vec::new();
        let mut elements = Vec::new();
        loop {
            let element = self.tuple_element(depth, &mut names)?;
            elements.push(element);
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')')?;
        let names = match names.len() {
            0 => None,
            count if count == elements.len() => Some(names),
            _ => return Err(self.malformed()),
        };
        Ok(DataType::Tuple(TupleType { names, elements }))
    }

    /// Reads `Tuple()`. An inserted row of it would take no bytes at all; it is rare enough to be left to
    /// ClickHouse.
    fn empty_tuple(&self) -> Result<DataType, TypeError> {
        match self.purpose {
            Purpose::Insert => Err(self.refused("Tuple()")),
            Purpose::Result | Purpose::Passing => Ok(DataType::Tuple(TupleType { names: None, elements: Vec::new() })),
        }
    }

    fn tuple_element(&mut self, depth: usize, names: &mut Vec<String>) -> Result<DataType, TypeError> {
        self.skip_space();
        if self.peek() == Some('`') {
            names.push(self.quoted('`')?);
            return self.data_type(depth + 1);
        }
        let start = self.at;
        let word = self.word()?;
        self.skip_space();
        // `a UInt8` has a second word, `UInt8` and `Array(UInt8)` have not.
        if self.peek().is_some_and(|next| next.is_ascii_alphabetic()) {
            names.push(word.to_string());
        } else {
            self.at = start;
        }
        self.data_type(depth + 1)
    }

    pub(super) fn only_inner(&mut self, depth: usize) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let inner = self.data_type(depth + 1)?;
        self.expect(')')?;
        Ok(inner)
    }
}

fn is_inserted_alternative(alternative: &DataType) -> bool {
    !alternative.is_nullable()
        && alternative.native_name() == alternative.to_string()
        && !matches!(alternative.plain(), DataType::Variant(_))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
