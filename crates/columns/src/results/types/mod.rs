//! The types a SELECT may answer with.

mod display;
mod parse;

pub use parse::TypeError;

use crate::DataType;

/// Types inside types that are followed. Deeper than what people write, shallow enough for recursion on a small stack.
/// A `Dynamic` names types in its values, so a reader counts on through them.
pub(crate) const MAX_DEPTH: usize = 128;

/// A type of a result's column. `Display` gives it in the server's spelling.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Whatever has values of a fixed width, and `String`. Never one of `DataType`'s own containers.
    Scalar(DataType),
    Nullable(Box<Type>),
    LowCardinality(Box<Type>),
    Array(Box<Type>),
    Map(Box<Type>, Box<Type>),
    /// `Tuple()` has no elements and no names.
    Tuple {
        names: Option<Vec<String>>,
        elements: Vec<Type>,
    },
    /// Alternatives in the order of their discriminators: sorted by name.
    Variant(Vec<Type>),
    Dynamic,
    /// `JSON` with the paths whose types were declared, sorted by path.
    Json {
        typed_paths: Vec<(String, Type)>,
    },
    /// `QBit(Float32, 768)`: on the wire bit by bit, here an `Array` of `dimension` numbers in every row.
    QBit {
        dimension: usize,
        array: Box<Type>,
    },
    Nothing,
    /// Another name for a type: `Point`, `Ring`, `SimpleAggregateFunction(sum, UInt64)`, `Nested(a UInt8)`, and
    /// `Dynamic` and `JSON` with arguments. The name is as the server writes it.
    Alias {
        name: String,
        inner: Box<Type>,
    },
}

impl Type {
    /// The type that its values are laid out as: what an alias stands for, and the `Array` of a `QBit`.
    pub fn plain(&self) -> &Type {
        match self {
            Type::Alias { inner, .. } => inner.plain(),
            Type::QBit { array, .. } => array,
            plain => plain,
        }
    }

    /// Whether NULL is a value of the type.
    pub fn is_nullable(&self) -> bool {
        match self.plain() {
            Type::Nullable(_) | Type::Variant(_) | Type::Dynamic | Type::Nothing => true,
            Type::LowCardinality(inner) => inner.is_nullable(),
            _ => false,
        }
    }
}
