//! Reads one message of a topic after the other into the same columns. A message is read whole, or nothing of
//! it stays. Nothing is allocated for a message.

use std::sync::Arc;

use windrow_columns::{BlockBuilder, ColumnSpec, DataType, NotParsedReason, Parsed, ReadPlan, SeriesError, StringsEnd};

use super::grow::{self, Growing, Reading};
use super::schema::{self, Field, Kind, Message};
use super::{plain, Rules};
use crate::budget::Budget;
use crate::growing::element_of;
use crate::input::Input;

/// A message of a `.proto` file, by which rows are read.
#[derive(Clone, Debug)]
pub struct ProtobufSchema {
    text: String,
    /// Name of the message, without the package.
    name: String,
    message: Arc<Message>,
    is_whole: bool,
}

/// Collects the fields that are not taken. It goes no deeper than the taken ones, so that a message inside
/// itself has an end.
fn collect_left(message: &Message, before: &str, taken: &[(&str, &DataType)], left: &mut Vec<String>) {
    for field in &message.fields {
        let path = format!("{before}{}", field.name);
        let begins = format!("{path}.");
        let column = taken.iter().find(|(taken, _)| *taken == path);
        match (column, field.inside()) {
            (Some((_, data_type)), Some(inner)) => collect_left_by(inner, &begins, data_type, left),
            (Some(_), None) => {}
            (None, Some(inner)) if taken.iter().any(|(taken, _)| taken.starts_with(&begins)) => {
                collect_left(inner, &begins, taken, left);
            }
            (None, _) => left.push(path),
        }
    }
}

/// Collects the fields of a message that is one column, as far as the column's type has no name for them.
fn collect_left_by(message: &Message, before: &str, data_type: &DataType, left: &mut Vec<String>) {
    match data_type.plain() {
        DataType::Array(inner) | DataType::Nullable(inner) => collect_left_by(message, before, inner, left),
        DataType::Tuple(tuple) => {
            let names = tuple.names.as_deref().unwrap_or_default();
            for field in &message.fields {
                let path = format!("{before}{}", field.name);
                match (names.iter().position(|name| *name == field.name), field.inside()) {
                    (Some(at), Some(inner)) => {
                        collect_left_by(inner, &format!("{path}."), &tuple.elements[at], left);
                    }
                    (Some(_), None) => {}
                    (None, _) => left.push(path),
                }
            }
        }
        DataType::Map(_, value) => {
            if let Some(inner) = message.fields.get(1).and_then(Field::inside) {
                collect_left_by(inner, &format!("{before}value."), value, left);
            }
        }
        _ => {}
    }
}

impl ProtobufSchema {
    /// Parses a schema. `name` is that of the message, with the package or without; it may be left out if
    /// there is only one.
    ///
    /// # Errors
    /// Fails where the schema can't be parsed, has no such message, or has several and no name is given.
    pub fn parse(text: &str, name: Option<&str>) -> Result<Self, String> {
        let file = schema::file(text)?;
        let message = match name {
            Some(name) => file.message(name).ok_or_else(|| {
                format!(
                    "the schema has no message {name} at its top; it has {}",
                    file.names().collect::<Vec<_>>().join(", ")
                )
            })?,
            None => file.only_message().ok_or_else(|| {
                format!(
                    "the schema has the messages {}: say which one rows are",
                    file.names().collect::<Vec<_>>().join(", ")
                )
            })?,
        };
        Ok(ProtobufSchema { text: text.to_owned(), name: message.name.clone(), message, is_whole: file.is_whole })
    }

    /// Returns the fields that none of these columns takes, with dots where they lie in others. `taken` has
    /// each column with its type. A field inside another one is named only if a neighbour is taken.
    pub fn fields_without(&self, taken: &[(&str, &DataType)]) -> Vec<String> {
        let mut left = Vec::new();
        collect_left(&self.message, "", taken, &mut left);
        left
    }

    /// Says whether the schema needs no other file.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the message's name without the package.
    pub fn message_name(&self) -> &str {
        &self.name
    }

    /// Returns the field that a column of this name takes: a path with dots, or, as in ClickHouse, a name
    /// that differs only in case or has `_` for the dots. Returns `None` where there is none, or more than
    /// one.
    pub fn field(&self, name: &str) -> Option<String> {
        if path(&self.message, name).is_some() {
            return Some(name.to_owned());
        }
        let mut alike = Vec::new();
        collect_alike(&self.message, "", &plain(name), 0, &mut alike);
        alike.pop().filter(|_| alike.is_empty())
    }

    /// Returns the field that a field of this name would lie in, and its type, if that type is not known
    /// here: it is imported, or contains itself.
    pub fn unknown_around(&self, name: &str) -> Option<(String, String)> {
        let parts: Vec<&str> = name.split('.').collect();
        (1..parts.len()).find_map(|count| {
            let outer = parts[..count].join(".");
            let field = *path(&self.message, &outer)?.last()?;
            match &field.kind {
                Kind::Unknown(type_name) => Some((outer, type_name.clone())),
                _ => None,
            }
        })
    }
}

/// The deepest level at which fields are searched by names that are written in another way.
const MAX_PATH_DEPTH: usize = 16;

fn collect_alike(message: &Message, prefix: &str, wanted: &str, depth: usize, found: &mut Vec<String>) {
    for field in &message.fields {
        let name = format!("{prefix}{}", field.name);
        let known = plain(&name);
        if known == wanted {
            found.push(name.clone());
        }
        let Some(inner) = field.inside().filter(|_| depth < MAX_PATH_DEPTH) else { continue };
        if let Kind::Map(_) = field.kind {
            // ClickHouse's own names of a Map's parts.
            let parts = [("key", "keys"), ("value", "values")];
            let part = parts.iter().find(|(_, many)| wanted == format!("{known}_{many}"));
            found.extend(part.map(|(single, _)| format!("{name}.{single}")));
        }
        if wanted.starts_with(&format!("{known}_")) {
            collect_alike(inner, &format!("{name}."), wanted, depth + 1, found);
        }
    }
}

/// Returns the fields that lead to a field, with itself.
fn path<'m>(message: &'m Message, name: &str) -> Option<Vec<&'m Field>> {
    let (mut fields, mut inside) = (Vec::new(), Some(message));
    for part in name.split('.') {
        let field = inside?.fields.iter().find(|field| field.name == part)?;
        inside = field.inside();
        fields.push(field);
    }
    Some(fields)
}

/// The mapping of fields to columns, with the way of reading each.
pub struct ProtobufPlan {
    fields: Vec<Growing>,
    has_lengths: bool,
}

impl ProtobufPlan {
    /// Makes the plan. The columns of `plan` are named by the paths of their fields. `has_lengths` says that
    /// payloads are many messages, each after its length.
    ///
    /// # Errors
    /// Fails where a column has no field, a field is wanted as a whole and in parts, or its type can't be
    /// read into the column's.
    pub fn new(schema: &ProtobufSchema, plan: &ReadPlan, has_lengths: bool) -> Result<Self, String> {
        let rules = Rules { exact: plan.settings().is_exact(), every_pair: true, settings: plan.settings().clone() };
        let mut root = Tree::default();
        for (index, column) in plan.columns().iter().enumerate() {
            let path = path(&schema.message, &column.name)
                .ok_or_else(|| format!("the schema's message {} has no field {}", schema.name, column.name))?;
            root.insert(&path, index).map_err(|()| {
                format!("field {} is wanted both as a whole and for fields in it; take one of both", column.name)
            })?;
        }
        let fields = root.growing(plan.columns(), &rules, 0)?;
        Ok(ProtobufPlan { fields, has_lengths })
    }
}

/// The wanted fields of a message.
#[derive(Default)]
struct Tree<'m> {
    children: Vec<(&'m Field, Node<'m>)>,
}

enum Node<'m> {
    Column(usize),
    Inside(Tree<'m>),
}

impl<'m> Tree<'m> {
    fn insert(&mut self, path: &[&'m Field], column: usize) -> Result<(), ()> {
        let Some((first, rest)) = path.split_first() else { return Err(()) };
        let known = self.children.iter_mut().find(|(field, _)| field.number == first.number);
        match (known, rest.is_empty()) {
            (Some((_, Node::Inside(inner))), false) => inner.insert(rest, column),
            (Some(_), _) => Err(()),
            (None, true) => {
                self.children.push((first, Node::Column(column)));
                Ok(())
            }
            (None, false) => {
                let mut inner = Tree::default();
                inner.insert(rest, column)?;
                self.children.push((first, Node::Inside(inner)));
                Ok(())
            }
        }
    }

    /// Makes the readers of the fields, in the order of their numbers, in which messages have them. `depth`
    /// is the number of lists that these fields lie in; they are Arrays of the columns.
    fn growing(mut self, columns: &[ColumnSpec], rules: &Rules, depth: usize) -> Result<Vec<Growing>, String> {
        self.children.sort_by_key(|(field, _)| field.number);
        let growing = self.children.into_iter().map(|(field, node)| match node {
            // As ClickHouse has it: into columns that are no Arrays one of many messages is read, and which one is its to say.
            Node::Inside(inner) if field.is_many() && inner.all_arrays(columns, depth) => {
                Ok(Growing::each(field.number, inner.growing(columns, rules, depth + 1)?))
            }
            Node::Inside(inner) => Ok(Growing::path(field.number, inner.growing(columns, rules, depth)?)),
            Node::Column(column) => {
                let spec = &columns[column];
                let growing = element_of(&spec.data_type, depth).and_then(|wanted| Growing::new(field, wanted, rules));
                let growing = growing.ok_or_else(|| {
                    format!(
                        "field {} ({}) can't be read into a column of type {}",
                        spec.name,
                        field.type_name(),
                        spec.data_type
                    )
                })?;
                Ok(growing.for_column(column))
            }
        });
        growing.collect()
    }

    /// Says whether the columns of all fields in it are Arrays inside `depth` others.
    fn all_arrays(&self, columns: &[ColumnSpec], depth: usize) -> bool {
        self.children.iter().all(|(_, node)| match node {
            Node::Column(column) => element_of(&columns[*column].data_type, depth + 1).is_some(),
            Node::Inside(inner) => inner.all_arrays(columns, depth),
        })
    }
}

/// The rows that were read so far.
pub struct ProtobufRows<'p> {
    plan: &'p ReadPlan,
    has_lengths: bool,
    fields: Vec<Growing>,
    rows: usize,
    /// Count of rows at which the ends of strings were noted.
    noted_rows: usize,
    noted: Vec<StringsEnd>,
}

/// Rows between two notes. Noting costs more than a short row, and taking back walks these rows.
const ROWS_BETWEEN_NOTES: usize = 64;

impl<'p> ProtobufRows<'p> {
    /// Makes an empty set of rows. `plan` is the one that the Protobuf plan was made with.
    pub fn new(protobuf: &ProtobufPlan, plan: &'p ReadPlan) -> Self {
        let mut rows = ProtobufRows {
            plan,
            has_lengths: protobuf.has_lengths,
            fields: protobuf.fields.clone(),
            rows: 0,
            noted_rows: 0,
            noted: Vec::new(),
        };
        rows.note();
        rows
    }

    /// Reads all rows of a payload, and returns how many.
    ///
    /// # Errors
    /// Fails where the payload is malformed, or a value does not fit its column. Then nothing of the payload stays.
    #[inline]
    pub fn read(&mut self, payload: &[u8]) -> Result<usize, SeriesError> {
        let before = self.rows;
        if before >= self.noted_rows + ROWS_BETWEEN_NOTES {
            self.note();
        }
        let mut reading = Reading::new(Budget::of_message());
        let mut input = Input::new(payload);
        match self.read_rows(&mut input, &mut reading) {
            Ok(()) => Ok(self.rows - before),
            Err(reason) => {
                let error = SeriesError {
                    reason,
                    row: (self.rows - before) as u64,
                    column: reading.failed,
                    at: Some(payload.len() - input.rest().len()),
                    is_refused: reading.is_refused,
                };
                self.take_back(before);
                Err(error)
            }
        }
    }

    #[inline]
    fn read_rows(&mut self, input: &mut Input<'_>, reading: &mut Reading) -> Result<(), NotParsedReason> {
        if !self.has_lengths {
            return self.read_row(input, reading);
        }
        while !input.is_empty() {
            let mut row = grow::delimited(2, input, reading)?;
            self.read_row(&mut row, reading)?;
        }
        Ok(())
    }

    #[inline]
    fn read_row(&mut self, row: &mut Input<'_>, reading: &mut Reading) -> Result<(), NotParsedReason> {
        grow::message(&mut self.fields, row, reading)?;
        if !self.plan.nested_groups().is_empty() && !self.nested_lengths_agree() {
            return Err(NotParsedReason::Value);
        }
        self.rows += 1;
        Ok(())
    }

    /// Says whether lists of one Nested have the same length in the row that was read last.
    fn nested_lengths_agree(&self) -> bool {
        let length = |column: &usize| {
            let ends = self.fields.iter().find_map(|field| field.list_ends(*column))?;
            let before = self.rows.checked_sub(1).map_or(0, |row| ends[row]);
            Some(ends[self.rows] - before)
        };
        self.plan.nested_groups().iter().all(|group| {
            let mut lengths = group.iter().map(length);
            let first = lengths.next();
            lengths.all(|other| Some(other) == first)
        })
    }

    pub fn bytes(&self) -> usize {
        self.fields.iter().map(Growing::bytes).sum()
    }

    /// Returns the rows that were read, with all columns of the plan.
    pub fn take(&mut self) -> Parsed {
        let rows = std::mem::take(&mut self.rows);
        let mut columns = Vec::with_capacity(self.plan.columns().len());
        self.fields.iter_mut().for_each(|field| field.take_columns(&mut columns));
        self.note();
        let put = || {
            let mut builder = BlockBuilder::new(self.plan, 0).ok()?;
            columns.into_iter().try_for_each(|(index, column)| builder.put(index, column, rows)).ok()?;
            builder.end_rows(rows).ok()?;
            builder.finish().ok()
        };
        put().expect("every field has a value of its column's type for every row")
    }

    fn note(&mut self) {
        self.noted_rows = self.rows;
        self.noted.clear();
        self.fields.iter().for_each(|field| field.note_strings(&mut self.noted));
    }

    #[cold]
    fn take_back(&mut self, rows: usize) {
        let mut noted = self.noted.iter();
        self.fields.iter_mut().for_each(|field| field.truncate(rows, &mut noted));
        self.rows = rows;
    }
}
