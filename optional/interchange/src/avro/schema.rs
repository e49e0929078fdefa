//! An Avro schema, as the header of a file has it in JSON.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

const MAX_DEPTH: usize = 32;
/// The most nodes of a type, all uses of named types counted: these may be used again and again.
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
    Array(Arc<Type>),
    Map(Arc<Type>),
    Record(Vec<Field>),
    /// A union of two types, one of which is null.
    Nullable {
        null_branch: u64,
        inner: Arc<Type>,
    },
    /// Any other union, which may be of one type. Only schemas of messages have it.
    Union(Vec<Arc<Type>>),
    /// The type null. Only schemas of messages have it.
    Null,
}

impl Type {
    /// Returns the name of the type for error texts.
    pub(super) fn name(&self) -> String {
        let name = match &self.kind {
            Kind::Bool => "boolean",
            Kind::Int => "int",
            Kind::Long => "long",
            Kind::Float => "float",
            Kind::Double => "double",
            Kind::Bytes => "bytes",
            Kind::String => "string",
            Kind::Fixed(_) => "fixed",
            Kind::Enum(_) => "enum",
            Kind::Array(_) => "array",
            Kind::Map(_) => "map",
            Kind::Record(_) => "record",
            Kind::Nullable { inner, .. } => return format!("{} or null", inner.name()),
            Kind::Union(_) => "union",
            Kind::Null => "null",
        };
        match self.logical {
            Some(Logical::Timestamp { power }) => format!("{name}, timestamp in 10^-{power} s"),
            Some(Logical::Date) => format!("{name}, date"),
            Some(Logical::Decimal { precision, scale }) => format!("{name}, decimal({precision}, {scale})"),
            Some(Logical::Uuid) | None => name.to_owned(),
        }
    }

    /// Returns the type of values that are not NULL.
    pub(super) fn not_null(&self) -> &Type {
        match &self.kind {
            Kind::Nullable { inner, .. } => inner,
            _ => self,
        }
    }

    fn takes_no_bytes(&self) -> bool {
        match &self.kind {
            Kind::Null => true,
            Kind::Record(fields) => fields.iter().all(|field| field.data_type.takes_no_bytes()),
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) data_type: Arc<Type>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Logical {
    Date,
    /// A point in time in ticks, `10^power` a second.
    Timestamp {
        power: u32,
    },
    Decimal {
        precision: u8,
        scale: u8,
    },
    Uuid,
}

/// Returns the fields of the record that each row of a file is.
pub(super) fn record(text: &[u8]) -> Option<Vec<Field>> {
    let json: Value = serde_json::from_slice(text).ok()?;
    let mut known = Known::default();
    let root = known.read(&json, 0)?;
    match &root.kind {
        Kind::Record(fields) => Some(fields.clone()),
        _ => None,
    }
}

/// Returns the fields like [`record`], for schemas of messages: objections that only ClickHouse could have do
/// not matter here.
pub(super) fn record_of_messages(text: &[u8]) -> Result<Vec<Field>, String> {
    let json: Value = serde_json::from_slice(text).map_err(|error| format!("the Avro schema is not JSON: {error}"))?;
    let mut known = Known { is_lenient: true, ..Known::default() };
    let root = known
        .read(&json, 0)
        .ok_or("the Avro schema can't be read: a type in it is unknown, too deep or its own part")?;
    match &root.kind {
        Kind::Record(fields) => Ok(fields.clone()),
        _ => Err("the Avro schema is not one of records".to_owned()),
    }
}

#[derive(Default)]
struct Known {
    /// Named types, by their names as written; in lenient reading with their namespaces.
    by_name: HashMap<String, Arc<Type>>,
    is_lenient: bool,
    /// The namespace around the present type, in lenient reading only.
    namespace: String,
}

impl Known {
    fn read(&mut self, json: &Value, depth: usize) -> Option<Arc<Type>> {
        if depth > MAX_DEPTH {
            return None;
        }
        match json {
            Value::String(name) => match primitive(name) {
                Some(kind) => Some(Arc::new(Type { kind, logical: None, nodes: 1 })),
                None if self.is_lenient && name == "null" => {
                    Some(Arc::new(Type { kind: Kind::Null, logical: None, nodes: 1 }))
                }
                None => self.named(name),
            },
            Value::Array(branches) => self.union(branches, depth),
            Value::Object(object) => self.object(object, depth),
            _ => None,
        }
    }

    fn named(&self, name: &str) -> Option<Arc<Type>> {
        let in_namespace = || self.by_name.get(&format!("{}.{name}", self.namespace));
        self.by_name.get(name).or_else(in_namespace).cloned()
    }

    fn union(&mut self, branches: &[Value], depth: usize) -> Option<Arc<Type>> {
        if self.is_lenient && (branches.len() != 2 || !branches.iter().any(|branch| branch.as_str() == Some("null"))) {
            let types = branches.iter().map(|branch| self.read(branch, depth + 1)).collect::<Option<Vec<_>>>()?;
            let nodes = 1 + types.iter().map(|branch| branch.nodes).sum::<usize>();
            let kind = Kind::Union(types);
            return (nodes <= MAX_NODES).then(|| Arc::new(Type { kind, logical: None, nodes }));
        }
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
        (!is_nullable).then(|| Arc::new(Type { kind: Kind::Nullable { null_branch, inner }, logical: None, nodes }))
    }

    fn object(&mut self, object: &Map<String, Value>, depth: usize) -> Option<Arc<Type>> {
        if !self.is_lenient {
            return self.object_within(object, depth);
        }
        // A type's own namespace is that of the types in it, too.
        let own = match (object.get("namespace"), object.get("name").and_then(Value::as_str)) {
            (_, Some(name)) if name.contains('.') => name.rsplit_once('.').map(|(namespace, _)| namespace),
            (Some(namespace), _) => Some(namespace.as_str()?),
            _ => None,
        };
        let outer = own.map(|own| std::mem::replace(&mut self.namespace, own.to_owned()));
        let read = self.object_within(object, depth);
        if let Some(outer) = outer {
            self.namespace = outer;
        }
        read
    }

    fn object_within(&mut self, object: &Map<String, Value>, depth: usize) -> Option<Arc<Type>> {
        if let (true, Some(inner @ (Value::Object(_) | Value::Array(_)))) = (self.is_lenient, object.get("type")) {
            return self.read(inner, depth + 1);
        }
        let kind = match object.get("type")?.as_str()? {
            "array" => {
                let inner = self.read(object.get("items")?, depth + 1)?;
                // Any number of elements could stand in no bytes.
                (!inner.takes_no_bytes()).then_some(Kind::Array(inner))?
            }
            "map" => Kind::Map(self.read(object.get("values")?, depth + 1)?),
            "record" => Kind::Record(self.fields(object.get("fields")?, depth + 1)?),
            "enum" => Kind::Enum(symbols(object.get("symbols")?)?),
            "fixed" => {
                let size = usize::try_from(object.get("size")?.as_u64()?).ok()?;
                Kind::Fixed((1..=MAX_FIXED_BYTES).contains(&size).then_some(size)?)
            }
            "null" if self.is_lenient => Kind::Null,
            name if self.is_lenient && primitive(name).is_none() => return self.named(name),
            name => primitive(name)?,
        };
        let nodes = 1 + match &kind {
            Kind::Array(inner) | Kind::Map(inner) => inner.nodes,
            Kind::Record(fields) => fields.iter().map(|field| field.data_type.nodes).sum(),
            _ => 0,
        };
        let logical = match object.get("logicalType") {
            // A logical type that isn't known, or does not fit, is to be ignored.
            Some(logical) if self.is_lenient => {
                logical.as_str().and_then(|name| lenient_logical_type(name, object, &kind))
            }
            Some(logical) => Some(logical_type(logical.as_str()?, object, &kind)?),
            None => None,
        };
        let is_named = matches!(kind, Kind::Record(_) | Kind::Enum(_) | Kind::Fixed(_));
        let read = (nodes <= MAX_NODES).then(|| Arc::new(Type { kind, logical, nodes }))?;
        if is_named {
            self.name(object, &read)?;
        }
        Some(read)
    }

    /// Notes a named type. Types of a namespace can be referred to in several ways, which are left to ClickHouse.
    fn name(&mut self, object: &Map<String, Value>, named: &Arc<Type>) -> Option<()> {
        if self.is_lenient {
            let name = object.get("name")?.as_str()?;
            let full_name = match (name.contains('.'), self.namespace.as_str()) {
                (true, _) | (false, "") => name.to_owned(),
                (false, namespace) => format!("{namespace}.{name}"),
            };
            return self.by_name.insert(full_name, named.clone()).is_none().then_some(());
        }
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
        // More could not be one type. Each name is compared with all before it.
        for field in json.as_array().filter(|fields| fields.len() <= MAX_NODES)? {
            let object = field.as_object()?;
            let name = object.get("name")?.as_str();
            let name = name.filter(|name| self.is_lenient || is_field_name(name))?.to_owned();
            let data_type = self.read(object.get("type")?, depth)?;
            let is_new = fields.iter().all(|known| known.name != name);
            let default_is_sound = object.get("default").is_none_or(|value| is_default(value, &data_type));
            if !is_new || !self.is_lenient && (!default_is_sound || object.contains_key("aliases")) {
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

fn lenient_logical_type(name: &str, object: &Map<String, Value>, kind: &Kind) -> Option<Logical> {
    match (name, kind) {
        ("local-timestamp-millis", Kind::Long) => Some(Logical::Timestamp { power: 3 }),
        ("local-timestamp-micros", Kind::Long) => Some(Logical::Timestamp { power: 6 }),
        ("timestamp-nanos" | "local-timestamp-nanos", Kind::Long) => Some(Logical::Timestamp { power: 9 }),
        _ => logical_type(name, object, kind),
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit()) && is_field_name(name)
}

/// Says whether the name is one of a field. ClickHouse writes the elements of an unnamed tuple as `1`, `2` and so on.
fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Says whether a default is one of the plainest: ClickHouse checks defaults while it reads the schema.
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
