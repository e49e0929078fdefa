//! A Protobuf schema, version 3 of the language, from its text. What isn't in it plainly (groups, extensions, version 2) is refused; of
//! other files that it imports nothing is known, so that fields of their types can't be read, only passed over.

use std::collections::HashMap;
use std::sync::Arc;

use super::tokens::{is_name, Tokens};

const MAX_DEPTH: usize = 16;

/// What a schema's text has at its top.
#[derive(Debug, Default)]
pub(super) struct File {
    package: String,
    messages: Vec<Arc<Message>>,
    /// It imports nothing, and all types are known.
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
    /// Of scalars as keys.
    Map {
        key: Scalar,
        value: Box<Kind>,
    },
    /// Of a type that isn't known here, or that has itself inside.
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
    /// The first is the default.
    pub(super) values: Vec<EnumValue>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct EnumValue {
    pub(super) name: String,
    pub(super) number: i32,
}

/// The message of this name at the top of a schema that needs no other file: with another one, ClickHouse has a word in it.
pub(super) fn message(text: &str, name: &str) -> Option<Arc<Message>> {
    file(text).ok().filter(|file| file.is_whole)?.messages.into_iter().find(|message| message.name == name)
}

pub(super) fn file(text: &str) -> Result<File, String> {
    let mut tokens = Tokens::new(text)
        .ok_or("the schema has a character that can't stand there, or a quote or a comment without an end")?;
    let declared = declared(&mut tokens).ok_or_else(|| match tokens.last() {
        "\"proto2\"" | "'proto2'" => "the schema is of version 2 of the language; only proto3 is read".to_owned(),
        last => format!("the schema is not one of proto3, or has what is not read here; see around {last}"),
    })?;
    let mut resolver = Resolver { declared: &declared, known: HashMap::new(), open: Vec::new(), misses: false };
    let tops = declared.messages.iter().filter(|(name, _)| !name.contains('.'));
    let messages = tops.map(|(name, _)| resolver.message(name)).collect();
    let is_whole = !declared.imports && !resolver.misses;
    Ok(File { messages, package: declared.package.clone(), is_whole })
}

impl File {
    /// By its name, with the package or without.
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
    /// As it is written in the schema.
    pub(super) fn type_name(&self) -> String {
        let name = match &self.kind {
            Kind::Scalar(scalar) => format!("{scalar:?}").to_lowercase(),
            Kind::Enum(enumeration) => enumeration.name.clone(),
            Kind::Message(message) => message.name.clone(),
            Kind::Map { .. } => "map".to_owned(),
            Kind::Unknown(name) => name.clone(),
        };
        match self.repeated {
            true => format!("repeated {name}"),
            false => name,
        }
    }
}

/// What the text says, before names are looked up. Types within others are named `Outer.Inner`.
#[derive(Default)]
struct Declared {
    package: String,
    imports: bool,
    messages: Vec<(String, DeclaredMessage)>,
    enums: HashMap<String, Arc<Enumeration>>,
}

#[derive(Default)]
struct DeclaredMessage {
    fields: Vec<DeclaredField>,
}

struct DeclaredField {
    name: String,
    number: u32,
    repeated: bool,
    type_name: String,
    /// The values' type is above.
    map_key: Option<Scalar>,
}

fn declared(tokens: &mut Tokens<'_>) -> Option<Declared> {
    tokens.expect("syntax")?;
    tokens.expect("=")?;
    matches!(tokens.next()?, "\"proto3\"" | "'proto3'").then_some(())?;
    tokens.expect(";")?;
    let mut file = Declared::default();
    while let Some(token) = tokens.next() {
        match token {
            ";" => {}
            "package" => {
                file.package = tokens.next()?.to_owned();
                tokens.expect(";")?;
            }
            "import" => {
                file.imports = true;
                tokens.skip_statement()?;
            }
            "option" | "service" => tokens.skip_statement()?,
            "message" => body(tokens, "", &mut file, 0)?,
            "enum" => enumeration(tokens, "", &mut file)?,
            _ => return None,
        }
    }
    Some(file)
}

impl Declared {
    fn is_new(&self, name: &str) -> bool {
        self.messages.iter().all(|(known, _)| known != name) && !self.enums.contains_key(name)
    }

    fn message(&self, name: &str) -> Option<&DeclaredMessage> {
        self.messages.iter().find(|(known, _)| known == name).map(|(_, message)| message)
    }
}

fn within(outer: &str, name: &str) -> String {
    match outer {
        "" => name.to_owned(),
        outer => format!("{outer}.{name}"),
    }
}

/// A message behind its keyword.
fn body(tokens: &mut Tokens<'_>, outer: &str, file: &mut Declared, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    let name = within(outer, tokens.name()?);
    file.is_new(&name).then_some(())?;
    let place = file.messages.len();
    file.messages.push((name.clone(), DeclaredMessage::default()));
    tokens.expect("{")?;
    let mut in_oneof = false;
    loop {
        match tokens.next()? {
            "}" if in_oneof => in_oneof = false,
            "}" => return Some(()),
            ";" => {}
            "option" | "reserved" => tokens.skip_statement()?,
            "message" if !in_oneof => body(tokens, &name, file, depth + 1)?,
            "enum" if !in_oneof => enumeration(tokens, &name, file)?,
            "oneof" if !in_oneof => {
                tokens.name()?;
                tokens.expect("{")?;
                in_oneof = true;
            }
            first => {
                let field = field(tokens, first, in_oneof)?;
                let fields = &mut file.messages[place].1.fields;
                let is_new = |known: &DeclaredField| {
                    known.number != field.number && !known.name.eq_ignore_ascii_case(&field.name)
                };
                fields.iter().all(is_new).then_some(())?;
                fields.push(field);
            }
        }
    }
}

fn field(tokens: &mut Tokens<'_>, first: &str, in_oneof: bool) -> Option<DeclaredField> {
    let label = matches!(first, "repeated" | "optional");
    if label && in_oneof || matches!(first, "required" | "group" | "extensions" | "extend") {
        return None;
    }
    let type_name = if label { tokens.next()? } else { first };
    let (type_name, map_key) = match type_name {
        "map" if !label && !in_oneof => {
            tokens.expect("<")?;
            let key =
                scalar(tokens.next()?).filter(|key| !matches!(key, Scalar::Float | Scalar::Double | Scalar::Bytes))?;
            tokens.expect(",")?;
            let value = tokens.next()?;
            tokens.expect(">")?;
            (value, Some(key))
        }
        name => (name, None),
    };
    type_name.trim_start_matches('.').split('.').all(is_name).then_some(())?;
    let name = tokens.name()?.to_owned();
    tokens.expect("=")?;
    let number = u32::try_from(integer(tokens.next()?)?).ok()?;
    tokens.skip_options()?;
    tokens.expect(";")?;
    let is_sound = (1..=536_870_911).contains(&number) && !(19_000..=19_999).contains(&number);
    let repeated = first == "repeated";
    is_sound.then(|| DeclaredField { name, number, repeated, type_name: type_name.to_owned(), map_key })
}

fn integer(token: &str) -> Option<i64> {
    match token.strip_prefix("0x").or_else(|| token.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => token.parse().ok(),
    }
}

fn scalar(name: &str) -> Option<Scalar> {
    Some(match name {
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "uint32" => Scalar::UInt32,
        "uint64" => Scalar::UInt64,
        "sint32" => Scalar::SInt32,
        "sint64" => Scalar::SInt64,
        "fixed32" => Scalar::Fixed32,
        "fixed64" => Scalar::Fixed64,
        "sfixed32" => Scalar::SFixed32,
        "sfixed64" => Scalar::SFixed64,
        "bool" => Scalar::Bool,
        "float" => Scalar::Float,
        "double" => Scalar::Double,
        "string" => Scalar::String,
        "bytes" => Scalar::Bytes,
        _ => return None,
    })
}

fn enumeration(tokens: &mut Tokens<'_>, outer: &str, file: &mut Declared) -> Option<()> {
    let name = tokens.name()?;
    let full_name = within(outer, name);
    let mut read = Enumeration { name: name.to_owned(), values: Vec::new() };
    tokens.expect("{")?;
    loop {
        match tokens.next()? {
            "}" => break,
            ";" => {}
            // Two names for one number are asked for by an option; which of them a column gets is ClickHouse's to say.
            "option" | "reserved" => tokens.skip_statement()?,
            name => {
                is_name(name).then_some(())?;
                tokens.expect("=")?;
                let number = i32::try_from(integer(tokens.next()?)?).ok()?;
                tokens.skip_options()?;
                tokens.expect(";")?;
                let is_new = read.values.iter().all(|known| known.number != number && known.name != name);
                is_new.then(|| read.values.push(EnumValue { name: name.to_owned(), number }))?;
            }
        }
    }
    let is_sound = read.values.first()?.number == 0 && file.is_new(&full_name);
    is_sound.then(|| drop(file.enums.insert(full_name, Arc::new(read))))
}

struct Resolver<'d> {
    declared: &'d Declared,
    known: HashMap<String, Arc<Message>>,
    /// Messages that are being looked at, which have no end yet.
    open: Vec<String>,
    /// Some type is declared nowhere.
    misses: bool,
}

impl Resolver<'_> {
    /// One that was declared.
    fn message(&mut self, full_name: &str) -> Arc<Message> {
        if let Some(known) = self.known.get(full_name) {
            return known.clone();
        }
        let name = full_name.rsplit('.').next().unwrap_or(full_name).to_owned();
        let Some(declared) = self.declared.message(full_name) else { return Arc::default() };
        self.open.push(full_name.to_owned());
        let fields = declared.fields.iter().map(|field| {
            let kind = self.kind(&field.type_name, full_name);
            let kind = match field.map_key {
                Some(key) => Kind::Map { key, value: Box::new(kind) },
                None => kind,
            };
            Field { name: field.name.clone(), number: field.number, repeated: field.repeated, kind }
        });
        let message = Arc::new(Message { name, fields: fields.collect() });
        self.open.pop();
        // Also where it lacks what leads back to a message around it: otherwise looking all of them up could take for ever.
        self.known.insert(full_name.to_owned(), message.clone());
        message
    }

    fn kind(&mut self, name: &str, scope: &str) -> Kind {
        if let Some(scalar) = scalar(name) {
            return Kind::Scalar(scalar);
        }
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

    /// Looked for from the inside out.
    fn full_name(&self, name: &str, scope: &str) -> Option<String> {
        let is_known = |name: &String| !self.declared.is_new(name);
        let plain = name.strip_prefix('.').unwrap_or(name);
        if plain == name {
            let mut scope = scope;
            loop {
                let found = within(scope, name);
                if is_known(&found) {
                    return Some(found);
                }
                if scope.is_empty() {
                    break;
                }
                scope = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
            }
        }
        let in_package =
            plain.strip_prefix(self.declared.package.as_str()).map(|rest| rest.trim_start_matches('.').to_owned());
        in_package.filter(is_known)
    }
}
