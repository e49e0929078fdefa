//! The types a SELECT may answer with.

use windrow_block::DataType;

/// A type of a result's column.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Whatever has values of a fixed width, and `String`. Never one of `DataType`'s own containers.
    Scalar(DataType),
    Nullable(Box<Type>),
    LowCardinality(Box<Type>),
    Array(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Tuple {
        names: Option<Vec<String>>,
        elements: Vec<Type>,
    },
    /// Alternatives in the order of their discriminators: sorted by name.
    Variant(Vec<Type>),
    Dynamic,
    /// `JSON` with the paths whose types were declared.
    Json {
        typed_paths: Vec<(String, Type)>,
    },
    Nothing,
    /// Another name for a type: `Point`, `Ring`, `SimpleAggregateFunction(sum, UInt64)`, `Nested(a UInt8)`. The name is as the server writes it.
    Alias {
        name: String,
        inner: Box<Type>,
    },
}
