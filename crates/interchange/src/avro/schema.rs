//! An Avro schema, as a file's header has it in JSON.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

const MAX_DEPTH: usize = 32;
/// A named type may be used again and again: all uses together.
const MAX_NODES: usize = 10_000;
const MAX_FIXED_BYTES: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) logical: Option<Logical>,
    nodes: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Bool,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    Array(Rc<Type>),
    Map(Rc<Type>),
    Record(Vec<Field>),
    /// A union of two, one of which is null.
    Nullable {
        null_branch: u64,
        inner: Rc<Type>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) data_type: Rc<Type>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Logical {
    Date,
    /// `10^power` ticks a second.
    Timestamp {
        power: u32,
    },
    Decimal {
        precision: u8,
        scale: u8,
    },
    Uuid,
}

/// The record that the rows of a file are.
pub(super) fn record(text: &[u8]) -> Option<Vec<Field>> {
    let json: Value = serde_json::from_slice(text).ok()?;
    let mut known = Known::default();
    let root = known.read(&json, 0)?;
    match &root.kind {
        Kind::Record(fields) => Some(fields.clone()),
        _ => None,
    }
}

#[derive(Default)]
struct Known {
    by_name: HashMap<String, Rc<Type>>,
}

impl Known {
    fn read(&mut self, json: &Value, depth: usize) -> Option<Rc<Type>> {
        if depth > MAX_DEPTH {
            return None;
        }
        match json {
            Value::String(name) => match primitive(name) {
                Some(kind) => Some(Rc::new(Type { kind, logical: None, nodes: 1 })),
                None => self.by_name.get(name).cloned(),
            },
            Value::Array(branches) => self.union(branches, depth),
            Value::Object(object) => self.object(object, depth),
            _ => None,
        }
    }

    fn union(&mut self, branches: &[Value], depth: usize) -> Option<Rc<Type>> {
        let [first, second] = branches else { return None };
        let is_null = |branch: &Value| branch.as_str() == Some("null");
        let (null_branch, inner) = match (is_null(first), is_null(second)) {
            (true, false) => (0, second),
            (false, true) => (1, first),
            _ => return None,
        };
        let inner = self.read(inner, depth + 1)?;
        let nodes = inner.nodes + 1;
        let is_nullable = matches!(inner.kind, Kind::Nullable { .. });
        (!is_nullable).then(|| Rc::new(Type { kind: Kind::Nullable { null_branch, inner }, logical: None, nodes }))
    }

    fn object(&mut self, object: &Map<String, Value>, depth: usize) -> Option<Rc<Type>> {
        let kind = match object.get("type")?.as_str()? {
            "array" => Kind::Array(self.read(object.get("items")?, depth + 1)?),
            "map" => Kind::Map(self.read(object.get("values")?, depth + 1)?),
            "record" => Kind::Record(self.fields(object.get("fields")?, depth + 1)?),
            "enum" => Kind::Enum(symbols(object.get("symbols")?)?),
            "fixed" => {
                let size = usize::try_from(object.get("size")?.as_u64()?).ok()?;
                Kind::Fixed((1..=MAX_FIXED_BYTES).contains(&size).then_some(size)?)
            }
            name => primitive(name)?,
        };
        let nodes = 1 + match &kind {
            Kind::Array(inner) | Kind::Map(inner) => inner.nodes,
            Kind::Record(fields) => fields.iter().map(|field| field.data_type.nodes).sum(),
            _ => 0,
        };
        let logical = match object.get("logicalType") {
            Some(logical) => Some(logical_type(logical.as_str()?, object, &kind)?),
            None => None,
        };
        let is_named = matches!(kind, Kind::Record(_) | Kind::Enum(_) | Kind::Fixed(_));
        let read = (nodes <= MAX_NODES).then(|| Rc::new(Type { kind, logical, nodes }))?;
        if is_named {
            self.name(object, &read)?;
        }
        Some(read)
    }

    /// Types of a namespace can be referred to in several ways, which are left to ClickHouse.
    fn name(&mut self, object: &Map<String, Value>, named: &Rc<Type>) -> Option<()> {
        let name = object.get("name")?.as_str().filter(|name| is_name(name))?;
        let namespace_is_sound = match object.get("namespace") {
            Some(namespace) => namespace.as_str()?.split('.').all(is_name),
            None => true,
        };
        let is_new = self.by_name.insert(name.to_owned(), named.clone()).is_none();
        (namespace_is_sound && is_new && !object.contains_key("aliases")).then_some(())
    }

    fn fields(&mut self, json: &Value, depth: usize) -> Option<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::new();
        for field in json.as_array()? {
            let object = field.as_object()?;
            let name = object.get("name")?.as_str().filter(|name| is_field_name(name))?.to_owned();
            let data_type = self.read(object.get("type")?, depth)?;
            let is_new = fields.iter().all(|known| known.name != name);
            let default_is_sound = object.get("default").is_none_or(|value| is_default(value, &data_type));
            if !is_new || !default_is_sound || object.contains_key("aliases") {
                return None;
            }
            fields.push(Field { name, data_type });
        }
        (!fields.is_empty()).then_some(fields)
    }
}

fn primitive(name: &str) -> Option<Kind> {
    Some(match name {
        "boolean" => Kind::Bool,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "string" => Kind::String,
        _ => return None,
    })
}

fn symbols(json: &Value) -> Option<Vec<String>> {
    let symbols = json.as_array()?.iter().map(|symbol| symbol.as_str().map(str::to_owned));
    let symbols: Vec<String> = symbols.collect::<Option<_>>()?;
    let mut sorted = symbols.clone();
    sorted.sort();
    sorted.dedup();
    (sorted.len() == symbols.len() && !symbols.is_empty()).then_some(symbols)
}

fn logical_type(name: &str, object: &Map<String, Value>, kind: &Kind) -> Option<Logical> {
    let digits = |key: &str| object.get(key).map_or(Some(0), |value| u8::try_from(value.as_u64()?).ok());
    match (name, kind) {
        ("date", Kind::Int) => Some(Logical::Date),
        ("timestamp-millis", Kind::Long) => Some(Logical::Timestamp { power: 3 }),
        ("timestamp-micros", Kind::Long) => Some(Logical::Timestamp { power: 6 }),
        ("uuid", Kind::String) => Some(Logical::Uuid),
        ("decimal", Kind::Bytes | Kind::Fixed(_)) => {
            Some(Logical::Decimal { precision: digits("precision")?, scale: digits("scale")? })
        }
        _ => None,
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit()) && is_field_name(name)
}

/// ClickHouse writes the elements of an unnamed tuple as `1`, `2` and so on.
fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Only the plainest defaults: ClickHouse checks them while it reads the schema.
fn is_default(value: &Value, data_type: &Type) -> bool {
    match &data_type.kind {
        Kind::Nullable { null_branch: 0, .. } => value.is_null(),
        Kind::Nullable { inner, .. } => is_default(value, inner),
        Kind::Bool => value.is_boolean(),
        Kind::Int => value.as_i64().is_some_and(|value| i32::try_from(value).is_ok()),
        Kind::Long => value.is_i64(),
        Kind::Float | Kind::Double => value.is_f64(),
        Kind::String => value.is_string(),
        _ => false,
    }
}
