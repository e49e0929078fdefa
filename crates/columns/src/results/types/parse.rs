//! The name of a type, as the server writes it in the head of a column.

use std::fmt::{self, Display, Formatter};

use crate::DataType;

use super::{Type, MAX_DEPTH};

/// More than a `Tuple` of every column of a wide table.
const MAX_NAME_BYTES: usize = 16 << 20;
/// The last discriminator means NULL.
const MAX_ALTERNATIVES: usize = 255;
/// ClickHouse's own limit is lower; a row is `dimension` numbers.
const MAX_QBIT_DIMENSION: usize = 1 << 20;

/// Why a type's name was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeError {
    /// Values of it can't be read: the states of aggregate functions, and types that came after this version.
    Unsupported {
        name: String,
    },
    /// Not a type in ClickHouse's spelling.
    Malformed {
        offset: usize,
    },
    TooDeep,
}

impl Display for TypeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TypeError::Unsupported { name } => write!(out, "values of type {name} can't be read: cast it in the query"),
            TypeError::Malformed { offset } => write!(out, "no type in ClickHouse's spelling, at byte {offset}"),
            TypeError::TooDeep => write!(out, "types nested more than {MAX_DEPTH} deep"),
        }
    }
}

impl std::error::Error for TypeError {}

impl Type {
    /// Reads a type in the server's spelling.
    pub fn parse(text: &str) -> Result<Type, TypeError> {
        Type::parse_at(text, 0)
    }

    /// For a name that occurs inside values, `depth` types down.
    pub(crate) fn parse_at(text: &str, depth: usize) -> Result<Type, TypeError> {
        if text.len() > MAX_NAME_BYTES {
            return Err(TypeError::Malformed { offset: MAX_NAME_BYTES });
        }
        let mut parser = Parser { text, at: 0 };
        let parsed = parser.data_type(depth)?;
        parser.skip_space();
        if parser.at < text.len() {
            return Err(parser.malformed());
        }
        Ok(parsed)
    }
}

fn scalar_tuple() -> Type {
    Type::Tuple { names: None, elements: vec![Type::Scalar(DataType::Float64), Type::Scalar(DataType::Float64)] }
}

/// The geometric types, each named after what it is made of.
fn geo_type(name: &str) -> Option<Type> {
    let array_of = |element: &str| Some(Type::Array(Box::new(geo_type(element)?)));
    let inner = match name {
        "Point" => scalar_tuple(),
        "Ring" | "LineString" => array_of("Point")?,
        "Polygon" | "MultiLineString" => array_of("Ring")?,
        "MultiPolygon" => array_of("Polygon")?,
        "Geometry" => {
            let shapes = ["LineString", "MultiLineString", "MultiPolygon", "Point", "Polygon", "Ring"];
            Type::Variant(shapes.into_iter().filter_map(geo_type).collect())
        }
        _ => return None,
    };
    Some(Type::Alias { name: name.to_string(), inner: Box::new(inner) })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn data_type(&mut self, depth: usize) -> Result<Type, TypeError> {
        self.skip_space();
        let start = self.at;
        let family = self.word()?;
        self.data_type_of(family, start, depth)
    }

    fn data_type_of(&mut self, family: &str, start: usize, depth: usize) -> Result<Type, TypeError> {
        if depth >= MAX_DEPTH {
            return Err(TypeError::TooDeep);
        }
        Ok(match family {
            "Nullable" => Type::Nullable(self.only_inner(depth)?),
            "LowCardinality" => self.low_cardinality(start, depth)?,
            "Array" => Type::Array(self.only_inner(depth)?),
            "Map" => self.map(depth)?,
            "Tuple" => self.tuple(depth)?,
            "Nested" => self.nested(start, depth)?,
            "Variant" => self.variant(depth)?,
            "Nothing" => Type::Nothing,
            "Dynamic" => self.dynamic(start)?,
            "JSON" => self.json(start, depth)?,
            "QBit" => self.qbit(depth)?,
            "SimpleAggregateFunction" => self.simple_aggregate_function(start, depth)?,
            other => match geo_type(other) {
                Some(geo) => geo,
                None => self.scalar(start)?,
            },
        })
    }

    /// A type without types inside: its whole text is `windrow_columns`'s to read.
    fn scalar(&mut self, start: usize) -> Result<Type, TypeError> {
        if self.peek() == Some(b'(') {
            self.at += 1;
            self.rest_of_arguments()?;
        }
        let name = &self.text[start..self.at];
        match DataType::parse(name) {
            Ok(scalar) => Ok(Type::Scalar(scalar)),
            Err(crate::TypeError::Malformed { offset }) => Err(TypeError::Malformed { offset: start + offset }),
            Err(_) => Err(unsupported(name)),
        }
    }

    fn only_inner(&mut self, depth: usize) -> Result<Box<Type>, TypeError> {
        self.expect(b'(')?;
        let inner = self.data_type(depth + 1)?;
        self.expect(b')')?;
        Ok(Box::new(inner))
    }

    /// A dictionary is made of scalars only, which need nothing in front of a column.
    fn low_cardinality(&mut self, start: usize, depth: usize) -> Result<Type, TypeError> {
        let inner = self.only_inner(depth)?;
        let dictionary_of = match inner.as_ref() {
            Type::Nullable(inner) => inner.as_ref(),
            plain => plain,
        };
        if matches!(dictionary_of, Type::Scalar(_)) {
            Ok(Type::LowCardinality(inner))
        } else {
            Err(unsupported(&self.text[start..self.at]))
        }
    }

    fn map(&mut self, depth: usize) -> Result<Type, TypeError> {
        self.expect(b'(')?;
        let key = self.data_type(depth + 1)?;
        self.expect(b',')?;
        let value = self.data_type(depth + 1)?;
        self.expect(b')')?;
        Ok(Type::Map(Box::new(key), Box::new(value)))
    }

    fn tuple(&mut self, depth: usize) -> Result<Type, TypeError> {
        self.expect(b'(')?;
        let (mut names, mut elements) = (Vec::new(), Vec::new());
        if !self.eat(b')') {
            loop {
                let element = self.tuple_element(depth, &mut names)?;
                elements.push(element);
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b')')?;
        }
        let names = match names.len() {
            0 => None,
            count if count == elements.len() => Some(names),
            _ => return Err(self.malformed()),
        };
        Ok(Type::Tuple { names, elements })
    }

    fn tuple_element(&mut self, depth: usize, names: &mut Vec<String>) -> Result<Type, TypeError> {
        self.skip_space();
        if self.peek() == Some(b'`') {
            names.push(self.quoted(b'`')?);
            return self.data_type(depth + 1);
        }
        let start = self.at;
        let word = self.word()?;
        self.skip_space();
        // `a UInt8` has a second word, `UInt8` and `Array(UInt8)` have not.
        if self.peek().is_some_and(|next| next.is_ascii_alphabetic()) {
            names.push(word.to_string());
            self.data_type(depth + 1)
        } else {
            self.data_type_of(word, start, depth + 1)
        }
    }

    fn nested(&mut self, start: usize, depth: usize) -> Result<Type, TypeError> {
        match self.tuple(depth)? {
            tuple @ Type::Tuple { names: Some(_), .. } => Ok(self.alias(start, Type::Array(Box::new(tuple)))),
            _ => Err(self.malformed()),
        }
    }

    fn variant(&mut self, depth: usize) -> Result<Type, TypeError> {
        self.expect(b'(')?;
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.data_type(depth + 1)?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        if alternatives.len() > MAX_ALTERNATIVES {
            return Err(self.malformed());
        }
        alternatives.sort_by_cached_key(Type::to_string);
        Ok(Type::Variant(alternatives))
    }

    /// `Dynamic(max_types=2)`: what the server's limit is makes no difference to a reader.
    fn dynamic(&mut self, start: usize) -> Result<Type, TypeError> {
        if !self.eat(b'(') {
            return Ok(Type::Dynamic);
        }
        self.rest_of_arguments()?;
        Ok(self.alias(start, Type::Dynamic))
    }

    /// `JSON(max_dynamic_paths=1, a UInt32, SKIP b, SKIP REGEXP 'c')`: only the typed paths matter to a reader.
    fn json(&mut self, start: usize, depth: usize) -> Result<Type, TypeError> {
        let mut typed_paths = Vec::new();
        if !self.eat(b'(') {
            return Ok(Type::Json { typed_paths });
        }
        loop {
            if let Some(typed_path) = self.json_argument(depth)? {
                typed_paths.push(typed_path);
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        typed_paths.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(self.alias(start, Type::Json { typed_paths }))
    }

    fn json_argument(&mut self, depth: usize) -> Result<Option<(String, Type)>, TypeError> {
        self.skip_space();
        let path = match self.peek() {
            Some(b'`') => self.quoted(b'`')?,
            _ => self.word()?.to_string(),
        };
        if self.eat(b'=') {
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
            Some(b'`') => drop(self.quoted(b'`')?),
            _ => {
                let word = self.word()?;
                self.skip_space();
                if word == "REGEXP" && self.peek() == Some(b'\'') {
                    self.quoted(b'\'')?;
                } else if Type::parse(word).is_ok() || self.peek() == Some(b'(') {
                    self.at = before;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn qbit(&mut self, depth: usize) -> Result<Type, TypeError> {
        self.expect(b'(')?;
        let element = self.data_type(depth + 1)?;
        self.expect(b',')?;
        let dimension = self.word()?.parse().ok().filter(|dimension| (1..=MAX_QBIT_DIMENSION).contains(dimension));
        let dimension = dimension.ok_or_else(|| self.malformed())?;
        self.expect(b')')?;
        Ok(Type::QBit { dimension, array: Box::new(Type::Array(Box::new(element))) })
    }

    /// `SimpleAggregateFunction(sum, UInt64)`: values of the type that is aggregated, which stands last.
    fn simple_aggregate_function(&mut self, start: usize, depth: usize) -> Result<Type, TypeError> {
        self.expect(b'(')?;
        self.word()?;
        if self.eat(b'(') {
            self.rest_of_arguments()?;
        }
        self.expect(b',')?;
        let inner = self.data_type(depth + 1)?;
        self.expect(b')')?;
        Ok(self.alias(start, inner))
    }

    fn alias(&self, start: usize, inner: Type) -> Type {
        Type::Alias { name: self.text[start..self.at].to_string(), inner: Box::new(inner) }
    }

    /// On to behind the bracket that closes the one just read.
    fn rest_of_arguments(&mut self) -> Result<(), TypeError> {
        let mut open = 1;
        while open > 0 {
            match self.peek().ok_or_else(|| self.malformed())? {
                quote @ (b'\'' | b'`' | b'"') => {
                    self.quoted(quote)?;
                    continue;
                }
                b'(' => open += 1,
                b')' => open -= 1,
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self) -> Result<&'a str, TypeError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        if length == 0 {
            return Err(self.malformed());
        }
        self.at += length;
        Ok(&rest[..length])
    }

    fn quoted(&mut self, quote: u8) -> Result<String, TypeError> {
        self.expect(quote)?;
        let mut bytes = Vec::new();
        loop {
            let next = self.next()?;
            if next == b'\\' {
                bytes.push(match self.next()? {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'0' => 0,
                    b'b' => 8,
                    b'f' => 12,
                    other => other,
                });
            } else if next != quote {
                bytes.push(next);
            } else if self.peek() == Some(quote) {
                // A doubled quote stands for itself.
                self.at += 1;
                bytes.push(quote);
            } else {
                return String::from_utf8(bytes).map_err(|_| self.malformed());
            }
        }
    }

    fn next(&mut self) -> Result<u8, TypeError> {
        let next = self.peek().ok_or_else(|| self.malformed())?;
        self.at += 1;
        Ok(next)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn eat(&mut self, wanted: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: u8) -> Result<(), TypeError> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }

    fn malformed(&self) -> TypeError {
        TypeError::Malformed { offset: self.at }
    }
}

fn unsupported(name: &str) -> TypeError {
    TypeError::Unsupported { name: name.chars().take(200).collect() }
}
