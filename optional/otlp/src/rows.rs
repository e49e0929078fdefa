//! The rows of a request for one table: a walk over its resources and scopes, which is the same for logs,
//! spans and points. Values that many rows share are written once and repeated.

use windrow_columns::{Block as Columns, BlockBuilder};

use crate::cells::{Column, Value};
use crate::json_column::{flattened_keys, unfit};
use crate::kind::Kind;
use crate::layout::Layout;
use crate::logs::LogRecord;
use crate::metrics::{Metric, Point};
use crate::source::{Field, Level};
use crate::target::Target;
use crate::traces::Span;
use crate::value::Attribute;
use crate::wire::{checked, Payload};

/// The fields of a row, or the fields that it shares with others.
pub(crate) trait Fields {
    fn write(&self, field: Field, column: &mut Column<'_>);

    /// Returns the attributes that a field stands for; each level has one such field.
    fn attributes(&self) -> &[Attribute<'_>];

    /// Returns all lists of attributes.
    fn all_attributes<'s>(&'s self) -> Box<dyn Iterator<Item = &'s [Attribute<'s>]> + 's> {
        Box::new(std::iter::once(self.attributes()))
    }
}

/// The rows that are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The rows that the table can accept.
    Fit,
    /// The other rows.
    Unfit,
}

/// The rows of one kind, with the count of those that are left out.
pub(crate) struct Rows<'l> {
    layout: &'l Layout,
    which: Which,
    columns: Vec<Column<'l>>,
    /// The positions of the columns that are filled at each level.
    of_level: [Vec<usize>; 4],
    rows: usize,
    pub(crate) rejected: usize,
    pub(crate) rejected_because: Option<&'static str>,
    /// The reason why the present rows can't be accepted because of values that they share.
    unfit: Option<&'static str>,
    /// Says whether attributes become JSON, or a list of their keys; not all of them can.
    is_choosy: bool,
}

#[derive(Default)]
struct Resource<'a> {
    attributes: Vec<Attribute<'a>>,
    schema_url: &'a [u8],
}

#[derive(Default)]
struct Scope<'a> {
    name: &'a [u8],
    version: &'a [u8],
    attributes: Vec<Attribute<'a>>,
    dropped_attributes: u64,
    schema_url: &'a [u8],
}

impl<'l> Rows<'l> {
    /// Makes an empty set of rows with room for `rows`.
    pub(crate) fn new(layout: &'l Layout, which: Which, rows: usize) -> Self {
        let filled = layout.filled();
        let level = |level| {
            let at = |at: &usize| filled[*at].source.field.level() == level;
            (0..filled.len()).filter(at).collect()
        };
        Rows {
            layout,
            which,
            columns: filled.iter().map(|column| Column::new(&column.target, rows)).collect(),
            of_level: [level(Level::Resource), level(Level::Scope), level(Level::Metric), level(Level::Row)],
            rows: 0,
            rejected: 0,
            rejected_because: None,
            unfit: None,
            is_choosy: filled.iter().any(|column| is_choosy(column.source.field, &column.target)),
        }
    }

    /// Adds all rows of a resource, whose message this is.
    pub(crate) fn add_resource(&mut self, message: &[u8]) {
        let resource = Resource::read(message);
        self.shared(Level::Resource, &resource, |rows| {
            for field in checked(message) {
                if let (2, Payload::Bytes(scope)) = (field.number, field.payload) {
                    rows.add_scope(scope);
                }
            }
        });
    }

    fn add_scope(&mut self, message: &[u8]) {
        let scope = Scope::read(message);
        self.shared(Level::Scope, &scope, |rows| match rows.layout.kind() {
            Kind::Logs => rows.add_each(message, LogRecord::default(), LogRecord::read),
            Kind::Traces => rows.add_each(message, Span::default(), Span::read),
            kind => rows.add_metrics(message, kind),
        });
    }

    fn add_metrics(&mut self, scope: &[u8], kind: Kind) {
        for field in checked(scope) {
            let (2, Payload::Bytes(message)) = (field.number, field.payload) else { continue };
            let metric = Metric::read(message);
            if let Some(points) = metric.points_of(kind) {
                self.shared(Level::Metric, &metric, |rows| {
                    for field in checked(points) {
                        if let (1, Payload::Bytes(message)) = (field.number, field.payload) {
                            rows.add(&Point::read(message, kind));
                        }
                    }
                });
            }
        }
    }

    /// Adds the rows of a scope. Each row is read into the same place as the one before.
    fn add_each<'a, R: Fields>(&mut self, scope: &'a [u8], mut row: R, read: impl Fn(&mut R, &'a [u8])) {
        for field in checked(scope) {
            if let (2, Payload::Bytes(message)) = (field.number, field.payload) {
                read(&mut row, message);
                self.add(&row);
            }
        }
    }

    /// Adds rows, and then the values that all of them share.
    fn shared(&mut self, level: Level, shared: &impl Fields, add: impl FnOnce(&mut Self)) {
        let (before, unfit) = (self.rows, self.unfit);
        self.unfit = unfit.or_else(|| self.is_unfit(shared));
        add(self);
        self.unfit = unfit;
        if self.rows > before {
            self.write(level, shared, self.rows - before);
        }
    }

    fn add(&mut self, row: &impl Fields) {
        let unfit = self.unfit.or_else(|| self.is_unfit(row));
        if let Some(because) = unfit {
            self.rejected += 1;
            self.rejected_because.get_or_insert(because);
        }
        if unfit.is_some() != (self.which == Which::Unfit) {
            return;
        }
        self.write(Level::Row, row, 1);
        self.rows += 1;
    }

    fn write(&mut self, level: Level, fields: &impl Fields, times: usize) {
        for at in &self.of_level[level as usize] {
            let (source, column) = (&self.layout.filled()[*at].source, &mut self.columns[*at]);
            let start = (times > 1).then(|| column.end());
            match &source.attribute {
                Some(key) => column.push(Value::Any(Attribute::find(fields.attributes(), key.as_bytes()))),
                None => fields.write(source.field, column),
            }
            if let Some(start) = start {
                column.repeat(&start, times - 1);
            }
        }
    }

    fn is_unfit(&self, fields: &impl Fields) -> Option<&'static str> {
        if !self.is_choosy {
            return None;
        }
        fields.all_attributes().find_map(unfit)
    }

    pub(crate) fn finish(self) -> Columns {
        let mut builder = BlockBuilder::new(self.layout.plan(), 0).expect("a layout's plan takes blocks");
        for (at, column) in self.columns.into_iter().enumerate() {
            builder.put(at, column.into_data(), self.rows).expect("every row has a value for each column");
        }
        builder.end_rows(self.rows).expect("all columns were given");
        builder.finish().expect("lists that belong together are of the same length").block
    }
}

fn is_choosy(field: Field, target: &Target) -> bool {
    let is_keys = matches!(field, Field::ResourceAttributesKeys | Field::ScopeAttributesKeys | Field::AttributesKeys);
    let is_json = match target {
        Target::List(inner) => **inner == Target::Json,
        other => *other == Target::Json,
    };
    is_keys || is_json
}

/// Adds the keys of attributes. Attributes that are not fit for JSON may have none.
pub(crate) fn push_keys(column: &mut Column<'_>, attributes: &[Attribute<'_>]) {
    let keys = flattened_keys(attributes).unwrap_or_default();
    column.push_list(keys.iter().map(|key| Value::Text(key)));
}

impl<'a> Resource<'a> {
    /// Reads the message that has the resource and its scopes.
    fn read(message: &'a [u8]) -> Self {
        let mut resource = Resource::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Bytes(inner)) => resource.attributes.extend(Attribute::all_of(inner)),
                (3, Payload::Bytes(url)) => resource.schema_url = url,
                _ => {}
            }
        }
        resource
    }
}

/// Returns the attributes of a resource, from the message that has it and its scopes.
pub(crate) fn resource_attributes(message: &[u8]) -> Vec<Attribute<'_>> {
    Resource::read(message).attributes
}

impl Fields for Resource<'_> {
    fn write(&self, field: Field, column: &mut Column<'_>) {
        match field {
            Field::ResourceAttributes => column.push(Value::Attributes(&self.attributes)),
            Field::ResourceAttributesKeys => push_keys(column, &self.attributes),
            Field::ResourceSchemaUrl => column.push(Value::Text(self.schema_url)),
            Field::ServiceName => column.push(Value::Any(Attribute::find(&self.attributes, b"service.name"))),
            other => unreachable!("{other:?} is no field of a resource"),
        }
    }

    fn attributes(&self) -> &[Attribute<'_>] {
        &self.attributes
    }
}

impl<'a> Scope<'a> {
    /// Reads the message that has the scope and its rows.
    fn read(message: &'a [u8]) -> Self {
        let mut scope = Scope::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Bytes(inner)) => scope.read_own(inner),
                (3, Payload::Bytes(url)) => scope.schema_url = url,
                _ => {}
            }
        }
        scope
    }

    fn read_own(&mut self, message: &'a [u8]) {
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Bytes(name)) => self.name = name,
                (2, Payload::Bytes(version)) => self.version = version,
                (3, Payload::Bytes(attribute)) => self.attributes.push(Attribute::read(attribute)),
                (4, Payload::Varint(count)) => self.dropped_attributes = u64::from(count as u32),
                _ => {}
            }
        }
        Attribute::sort(&mut self.attributes);
    }
}

impl Fields for Scope<'_> {
    fn write(&self, field: Field, column: &mut Column<'_>) {
        match field {
            Field::ScopeName => column.push(Value::Text(self.name)),
            Field::ScopeVersion => column.push(Value::Text(self.version)),
            Field::ScopeAttributes => column.push(Value::Attributes(&self.attributes)),
            Field::ScopeAttributesKeys => push_keys(column, &self.attributes),
            Field::ScopeDroppedAttrCount => column.push(Value::Integer(self.dropped_attributes)),
            Field::ScopeSchemaUrl => column.push(Value::Text(self.schema_url)),
            other => unreachable!("{other:?} is no field of a scope"),
        }
    }

    fn attributes(&self) -> &[Attribute<'_>] {
        &self.attributes
    }
}
