//! A Protobuf schema, version 3 of the language. `protox-parse` reads its text; names are looked up here.
//! Things that are not plain (extensions, version 2) are refused. Files that it imports are not known, so
//! fields of their types can't be read, only skipped.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto};

const MAX_DEPTH: usize = 16;
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The declarations at the top of a schema's text.
#[derive(Debug, Default)]
pub(super) struct File {
    package: String,
    messages: Vec<Arc<Message>>,
    /// Says whether the schema imports nothing, and all its types are known.
    pub(super) is_whole: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) repeated: bool,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Scalar(Scalar),
    Enum(Arc<Enumeration>),
    Message(Arc<Message>),
    /// A map: a message of a scalar `key` and a `value` for each pair.
    Map(Arc<Message>),
    /// A type that isn't known here, or that contains itself.
    Unknown(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Int32,
    Int64,
    UInt32,
    UInt64,
    SInt32,
    SInt64,
    Fixed32,
    Fixed64,
    SFixed32,
    SFixed64,
    Bool,
    Float,
    Double,
    String,
    Bytes,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Enumeration {
    name: String,
    /// The values; the first is the default.
    pub(super) values: Vec<EnumValue>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct EnumValue {
    pub(super) name: String,
    pub(super) number: i32,
}

/// Returns the message of this name at the top of a schema that needs no other file. With other files,
/// ClickHouse has to decide.
pub(super) fn message(text: &str, name: &str) -> Option<Arc<Message>> {
    file(text).ok().filter(|file| file.is_whole)?.messages.into_iter().find(|message| message.name == name)
}

pub(super) fn file(text: &str) -> Result<File, String> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("the schema has {} bytes; {MAX_TEXT_BYTES} are the most", text.len()));
    }
    let parsed = protox_parse::parse("schema", text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let place = before.map_or("its end".to_owned(), |before| format!("line {}", before.matches('\n').count() + 1));
        format!("the schema can't be read around {place}: {error}")
    })?;
    if parsed.syntax() != "proto3" {
        return Err("the schema is of version 2 of the language; only proto3 is read".to_owned());
    }
    if !parsed.extension.is_empty() {
        return Err("the schema has extensions, which are not read".to_owned());
    }
    let mut declared = Declared::default();
    parsed.message_type.iter().try_for_each(|message| declared.message(message, ""))?;
    parsed.enum_type.iter().try_for_each(|values| declared.enumeration(values, ""))?;
    let package = parsed.package();
    let mut resolver =
        Resolver { declared: &declared, package, known: HashMap::new(), open: Vec::new(), misses: false };
    let messages = parsed.message_type.iter().map(|message| resolver.message(message.name())).collect();
    let is_whole = parsed.dependency.is_empty() && !resolver.misses;
    Ok(File { package: package.to_owned(), messages, is_whole })
}

impl File {
    /// Finds a message by its name, with the package or without.
    pub(super) fn message(&self, name: &str) -> Option<Arc<Message>> {
        let plain = name.strip_prefix(self.package.as_str()).and_then(|rest| rest.strip_prefix('.'));
        let by_name = |name: &str| self.messages.iter().find(|message| message.name == name);
        by_name(name).or_else(|| by_name(plain?)).cloned()
    }

    pub(super) fn only_message(&self) -> Option<Arc<Message>> {
        match self.messages.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|message| message.name.as_str())
    }
}

impl Field {
    /// Returns the message of the field, or of its elements.
    pub(super) fn inside(&self) -> Option<&Message> {
        match &self.kind {
            Kind::Message(inner) | Kind::Map(inner) => Some(inner),
            _ => None,
        }
    }

    /// Says whether the field can have many values.
    pub(super) fn is_many(&self) -> bool {
        self.repeated || matches!(self.kind, Kind::Map(_))
    }

    /// Returns the type as it is written in the schema.
    pub(super) fn type_name(&self) -> String {
        let name = match &self.kind {
            Kind::Scalar(scalar) => format!("{scalar:?}").to_lowercase(),
            Kind::Enum(enumeration) => enumeration.name.clone(),
            Kind::Message(message) => message.name.clone(),
            Kind::Map(_) => "map".to_owned(),
            Kind::Unknown(name) => name.clone(),
        };
        match self.repeated {
            true => format!("repeated {name}"),
            false => name,
        }
    }
}

/// The types of a file, before names are looked up. Types inside others are named `Outer.Inner`.
#[derive(Default)]
struct Declared<'d> {
    messages: HashMap<String, &'d DescriptorProto>,
    enums: HashMap<String, Arc<Enumeration>>,
}

impl<'d> Declared<'d> {
    fn has(&self, name: &str) -> bool {
        self.messages.contains_key(name) || self.enums.contains_key(name)
    }

    fn message(&mut self, message: &'d DescriptorProto, outer: &str) -> Result<(), String> {
        let name = self.new_name(message.name(), outer)?;
        if !message.extension.is_empty() || !message.extension_range.is_empty() {
            return Err(format!("message {name} of the schema has extensions, which are not read"));
        }
        let (mut names, mut numbers) = (HashSet::new(), HashSet::new());
        for field in &message.field {
            let (field, number) = (field.name(), field.number());
            let is_new = names.insert(field.to_ascii_lowercase()) && numbers.insert(number);
            if !is_new || (19_000..=19_999).contains(&number) {
                return Err(format!(
                    "field {field} = {number} of message {name} of the schema has a name or a number that is taken"
                ));
            }
        }
        self.messages.insert(name.clone(), message);
        message
            .nested_type
            .iter()
            .filter(|inner| !is_map_entry(inner))
            .try_for_each(|inner| self.message(inner, &name))?;
        message.enum_type.iter().try_for_each(|values| self.enumeration(values, &name))
    }

    fn enumeration(&mut self, declared: &EnumDescriptorProto, outer: &str) -> Result<(), String> {
        let full_name = self.new_name(declared.name(), outer)?;
        let (mut names, mut numbers) = (HashSet::new(), HashSet::new());
        let mut values = Vec::with_capacity(declared.value.len());
        for value in &declared.value {
            let (name, number) = (value.name().to_owned(), value.number());
            // Two names for one number are asked for by an option; which of them a column gets is ClickHouse's to say.
            if !names.insert(value.name()) || !numbers.insert(number) {
                return Err(format!("enum {full_name} of the schema has {name} = {number} in two ways"));
            }
            values.push(EnumValue { name, number });
        }
        if values.first().is_none_or(|first: &EnumValue| first.number != 0) {
            return Err(format!("enum {full_name} of the schema doesn't begin with 0"));
        }
        self.enums.insert(full_name, Arc::new(Enumeration { name: declared.name().to_owned(), values }));
        Ok(())
    }

    fn new_name(&self, name: &str, outer: &str) -> Result<String, String> {
        let name = within(outer, name);
        match self.has(&name) {
            true => Err(format!("the schema declares {name} twice")),
            false => Ok(name),
        }
    }
}

fn within(outer: &str, name: &str) -> String {
    match outer {
        "" => name.to_owned(),
        outer => format!("{outer}.{name}"),
    }
}

/// Says whether a message is a map's pair, in the form that the parser gives it.
fn is_map_entry(message: &DescriptorProto) -> bool {
    message.options.as_ref().is_some_and(|options| options.map_entry())
}

/// Returns the scalar type of a field, or `None` where its type is declared somewhere.
fn scalar(field: &FieldDescriptorProto) -> Option<Scalar> {
    Some(match Type::try_from(field.r#type?).ok()? {
        Type::Int32 => Scalar::Int32,
        Type::Int64 => Scalar::Int64,
        Type::Uint32 => Scalar::UInt32,
        Type::Uint64 => Scalar::UInt64,
        Type::Sint32 => Scalar::SInt32,
        Type::Sint64 => Scalar::SInt64,
        Type::Fixed32 => Scalar::Fixed32,
        Type::Fixed64 => Scalar::Fixed64,
        Type::Sfixed32 => Scalar::SFixed32,
        Type::Sfixed64 => Scalar::SFixed64,
        Type::Bool => Scalar::Bool,
        Type::Float => Scalar::Float,
        Type::Double => Scalar::Double,
        Type::String => Scalar::String,
        Type::Bytes => Scalar::Bytes,
        Type::Group | Type::Message | Type::Enum => return None,
    })
}

struct Resolver<'d> {
    declared: &'d Declared<'d>,
    package: &'d str,
    known: HashMap<String, Arc<Message>>,
    /// Messages that are being resolved, and are not complete yet.
    open: Vec<String>,
    /// Says whether some type is declared nowhere.
    misses: bool,
}

impl Resolver<'_> {
    /// Resolves a message that was declared.
    fn message(&mut self, full_name: &str) -> Arc<Message> {
        if let Some(known) = self.known.get(full_name) {
            return known.clone();
        }
        let Some(declared) = self.declared.messages.get(full_name) else { return Arc::default() };
        self.open.push(full_name.to_owned());
        let fields = declared.field.iter().map(|field| self.field(field, declared, full_name)).collect();
        let message = Arc::new(Message { name: declared.name().to_owned(), fields });
        self.open.pop();
        // Also where it lacks what leads back to a message around it: otherwise looking all of them up could take for ever.
        self.known.insert(full_name.to_owned(), message.clone());
        message
    }

    fn field(&mut self, field: &FieldDescriptorProto, message: &DescriptorProto, scope: &str) -> Field {
        let pair = message.nested_type.iter().find(|inner| is_map_entry(inner) && inner.name() == field.type_name());
        let map = pair.and_then(|pair| match pair.field.as_slice() {
            [key, value] => Some((scalar(key)?, value)),
            _ => None,
        });
        let kind = match map {
            Some((key, value)) => {
                let field = |name: &str, number, kind| Field { name: name.to_owned(), number, repeated: false, kind };
                let fields = vec![field("key", 1, Kind::Scalar(key)), field("value", 2, self.kind(value, scope))];
                Kind::Map(Arc::new(Message { name: "map".to_owned(), fields }))
            }
            None => self.kind(field, scope),
        };
        let repeated = map.is_none() && field.label() == Label::Repeated;
        Field { name: field.name().to_owned(), number: field.number() as u32, repeated, kind }
    }

    fn kind(&mut self, field: &FieldDescriptorProto, scope: &str) -> Kind {
        if let Some(scalar) = scalar(field) {
            return Kind::Scalar(scalar);
        }
        let name = field.type_name();
        let Some(full_name) = self.full_name(name, scope) else {
            self.misses = true;
            return Kind::Unknown(name.to_owned());
        };
        if let Some(found) = self.declared.enums.get(&full_name) {
            return Kind::Enum(found.clone());
        }
        match self.open.contains(&full_name) || self.open.len() > MAX_DEPTH {
            true => Kind::Unknown(name.to_owned()),
            false => Kind::Message(self.message(&full_name)),
        }
    }

    /// Finds the full name of a type, from the inner scope to the outer ones.
    fn full_name(&self, name: &str, scope: &str) -> Option<String> {
        let plain = name.strip_prefix('.').unwrap_or(name);
        if plain == name {
            let mut scope = scope;
            loop {
                let found = within(scope, name);
                if self.declared.has(&found) {
                    return Some(found);
                }
                if scope.is_empty() {
                    break;
                }
                scope = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
            }
        }
        let in_package = plain.strip_prefix(self.package).map(|rest| rest.trim_start_matches('.').to_owned());
        in_package.filter(|name| self.declared.has(name))
    }
}
