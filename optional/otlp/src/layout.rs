//! The columns of a table that are filled, with the source and the type of each.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use windrow_columns::{ColumnSpec, DataType, DefaultKind, ReadPlan, ReadSettings};

use crate::kind::Kind;
use crate::source::{is_structure, Source};
use crate::tables::filled_columns;
use crate::target::{advice, choose, natural, Target};

/// The columns of one table that are filled. A layout is made once for a table, and is cheap to clone.
#[derive(Clone)]
pub struct Layout {
    kind: Kind,
    filling: Arc<Filling>,
}

struct Filling {
    columns: Vec<FilledColumn>,
    names: Vec<String>,
    /// The types that a block names for its columns.
    types: Vec<DataType>,
    /// The plan by which the block's columns are put together.
    plan: ReadPlan,
}

pub(crate) struct FilledColumn {
    pub(crate) source: Source,
    pub(crate) target: Target,
}

/// The reason why rows can't be written into a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// A column has a type that its values can't be written as.
    Type { column: String, type_text: String, instead: &'static str },
    /// A column is one whole, but its parts are filled separately.
    Structure { column: String },
    /// A mapping names a source that the kind doesn't have.
    Source { column: String, source: String },
    /// A mapping names a column that the table doesn't have.
    NoColumn { column: String },
    /// A column is there, or is filled, twice.
    Twice { column: String },
    /// A mapping fills columns of one Nested with lists of different lengths.
    Lists { column: String, other: String },
    /// The table has no column that is filled.
    NothingToFill,
}

impl Display for LayoutError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::Type { column, type_text, instead } => write!(
                out,
                "column {column} can't be filled, as its type is {type_text}: make it {instead}, and another column of it \
                 by MATERIALIZED"
            ),
            LayoutError::Structure { column } => write!(
                out,
                "column {column} can't be filled, as it is one column: make the table with flatten_nested = 1"
            ),
            LayoutError::Source { column, source } => write!(
                out,
                "column {column} is to be filled with {source}, which is not there: name a column of the exporter's table, \
                 or an attribute as in LogAttributes['key']"
            ),
            LayoutError::NoColumn { column } => {
                write!(out, "the table has no column {column} to be filled: add it, or leave it out of the mapping")
            }
            LayoutError::Twice { column } => write!(out, "column {column} is to be filled twice: leave one of them out"),
            LayoutError::Lists { column, other } => write!(
                out,
                "columns {column} and {other} belong to one Nested, and would have lists of different lengths: fill them from \
                 one of the exporter's (as Events.Timestamp and Events.Name)"
            ),
            LayoutError::NothingToFill => {
                write!(out, "the table has none of the columns of the exporter's table: give a mapping for it")
            }
        }
    }
}

impl std::error::Error for LayoutError {}

impl Layout {
    /// Makes the layout of a table as the exporter makes it now or made it once. Missing columns are not
    /// filled, and columns with other names keep their defaults.
    ///
    /// # Errors
    /// Fails where a column has a type that its values can't be written as, or is one whole instead of its
    /// parts, or where no column is filled.
    pub fn new(kind: Kind, columns: &[(String, String)]) -> Result<Layout, LayoutError> {
        let mut filled = Vec::new();
        for (name, type_text) in columns {
            match Source::parse(kind, name) {
                Some(source) => filled.push((name, type_text, source)),
                None if is_structure(kind, name) => {
                    return Err(LayoutError::Structure { column: name.clone() });
                }
                None => {}
            }
        }
        Layout::filling(kind, filled)
    }

    /// Makes the layout of the user's own table. Each pair of `mapping` has a column and its source, by the
    /// name of a column of the exporter's table (`Body`), or as `ResourceAttributes['k8s.pod.name']`.
    ///
    /// # Errors
    /// Fails where a column or a source does not exist, a column is filled twice, or its type can't have the values.
    pub fn mapped(
        kind: Kind,
        columns: &[(String, String)],
        mapping: &[(String, String)],
    ) -> Result<Layout, LayoutError> {
        let mut filled: Vec<(&String, &String, Source)> = Vec::new();
        for (name, source) in mapping {
            let Some((name, type_text)) = columns.iter().map(|(name, of)| (name, of)).find(|(known, _)| *known == name)
            else {
                return Err(LayoutError::NoColumn { column: name.clone() });
            };
            let parsed = Source::parse(kind, source);
            let not_there = || LayoutError::Source { column: name.clone(), source: source.clone() };
            filled.push((name, type_text, parsed.ok_or_else(not_there)?));
        }
        Layout::filling(kind, filled)
    }

    /// Makes a layout for rows that their table can't accept as it is, or that have no table. Its columns are
    /// those of the exporter's table, or of the mapping, with types that hold everything that is sent.
    ///
    /// # Errors
    /// Fails where the mapping fills no column, fills one twice, or fills one Nested with lists of different lengths.
    pub fn natural(kind: Kind, mapping: Option<&[(String, String)]>) -> Result<Layout, LayoutError> {
        let columns: Vec<(String, String, Source)> = match mapping {
            Some(mapping) => mapping.iter().filter_map(|(name, source)| of_natural_type(kind, name, source)).collect(),
            None => filled_columns(kind).filter_map(|name| of_natural_type(kind, name, name)).collect(),
        };
        Layout::filling(kind, columns.iter().map(|(name, of, source)| (name, of, source.clone())).collect())
    }

    fn filling(kind: Kind, filled: Vec<(&String, &String, Source)>) -> Result<Layout, LayoutError> {
        if filled.is_empty() {
            return Err(LayoutError::NothingToFill);
        }
        let mut columns: Vec<FilledColumn> = Vec::new();
        let (mut names, mut types): (Vec<String>, Vec<DataType>) = (Vec::new(), Vec::new());
        for (name, type_text, source) in filled {
            if names.contains(name) {
                return Err(LayoutError::Twice { column: name.clone() });
            }
            let shape = source.shape();
            let choice = choose(shape, type_text).ok_or_else(|| LayoutError::Type {
                column: name.clone(),
                type_text: type_text.clone(),
                instead: advice(shape),
            })?;
            columns.push(FilledColumn { source, target: choice.target });
            names.push(name.clone());
            types.push(choice.sent);
        }
        let plan = ReadPlan::new(specs(&names, &types), ReadSettings::default());
        let list = |at: usize| (columns[at].source.field.list(), &columns[at].source.attribute);
        for group in plan.nested_groups() {
            if let Some(other) = group.iter().find(|at| list(**at) != list(group[0])) {
                return Err(LayoutError::Lists { column: names[group[0]].clone(), other: names[*other].clone() });
            }
        }
        Ok(Layout { kind, filling: Arc::new(Filling { columns, names, types, plan }) })
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the columns of a block in their order, as the INSERT names them.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.filling.names.iter().map(String::as_str)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.filling.names
    }

    /// Returns the types of a block's columns. A LowCardinality is replaced by the type inside it, as
    /// everywhere in a block.
    pub fn types(&self) -> &[DataType] {
        &self.filling.types
    }

    pub(crate) fn filled(&self) -> &[FilledColumn] {
        &self.filling.columns
    }

    pub(crate) fn plan(&self) -> &ReadPlan {
        &self.filling.plan
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let columns = self.filling.names.iter().zip(&self.filling.types);
        out.debug_struct("Layout").field("kind", &self.kind).field("columns", &columns.collect::<Vec<_>>()).finish()
    }
}

fn of_natural_type(kind: Kind, name: &str, source: &str) -> Option<(String, String, Source)> {
    let source = Source::parse(kind, source)?;
    Some((name.to_owned(), natural(source.shape()).to_owned(), source))
}

fn specs(names: &[String], types: &[DataType]) -> Vec<ColumnSpec> {
    let spec = |(name, data_type): (&String, &DataType)| ColumnSpec {
        name: name.clone(),
        data_type: data_type.clone(),
        default_kind: DefaultKind::None,
    };
    names.iter().zip(types).map(spec).collect()
}
