//! A Protobuf schema, version 3 of the language, from its text. What isn't in it plainly (imports, groups, extensions,
//! services, version 2) is left to ClickHouse.

use std::sync::Arc;

use super::tokens::Tokens;

const MAX_DEPTH: usize = 16;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    messages: Vec<Arc<Message>>,
    enums: Vec<Arc<Enumeration>>,
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

/// The message of this name at the top of a schema.
pub(super) fn message(text: &str, name: &str) -> Option<Arc<Message>> {
    let mut tokens = Tokens::new(text)?;
    tokens.expect("syntax")?;
    tokens.expect("=")?;
    (tokens.next()? == "\"proto3\"").then_some(())?;
    tokens.expect(";")?;
    let mut file = Message::default();
    while let Some(token) = tokens.next() {
        match token {
            ";" => {}
            "message" => {
                let message = body(&mut tokens, &[&file], 0)?;
                file.add_message(message)?;
            }
            "enum" => file.add_enum(enumeration(&mut tokens)?)?,
            _ => return None,
        }
    }
    file.messages.into_iter().find(|message| message.name == name)
}

impl Message {
    fn add_message(&mut self, message: Message) -> Option<()> {
        self.is_new(&message.name).then(|| self.messages.push(Arc::new(message)))
    }

    fn add_enum(&mut self, enumeration: Enumeration) -> Option<()> {
        self.is_new(&enumeration.name).then(|| self.enums.push(Arc::new(enumeration)))
    }

    fn is_new(&self, name: &str) -> bool {
        self.messages.iter().all(|known| known.name != name) && self.enums.iter().all(|known| known.name != name)
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        let message =
            self.messages.iter().find(|message| message.name == name).map(|found| Kind::Message(found.clone()));
        message.or_else(|| self.enums.iter().find(|known| known.name == name).map(|found| Kind::Enum(found.clone())))
    }
}

/// A message behind its keyword. Types that it uses have to stand before it, within it or around it.
fn body(tokens: &mut Tokens<'_>, around: &[&Message], depth: usize) -> Option<Message> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut message = Message { name: tokens.name()?.to_owned(), ..Message::default() };
    tokens.expect("{")?;
    let mut in_oneof = false;
    loop {
        match tokens.next()? {
            "}" if in_oneof => in_oneof = false,
            "}" => return Some(message),
            ";" => {}
            "message" if !in_oneof => {
                let inner = body(tokens, &[around, &[&message]].concat(), depth + 1)?;
                message.add_message(inner)?;
            }
            "enum" if !in_oneof => message.add_enum(enumeration(tokens)?)?,
            "oneof" if !in_oneof => {
                tokens.name()?;
                tokens.expect("{")?;
                in_oneof = true;
            }
            first => {
                let field = field(tokens, first, in_oneof, &message, around)?;
                let is_new =
                    |known: &Field| known.number != field.number && !known.name.eq_ignore_ascii_case(&field.name);
                message.fields.iter().all(is_new).then_some(())?;
                message.fields.push(field);
            }
        }
    }
}

fn field(
    tokens: &mut Tokens<'_>,
    first: &str,
    in_oneof: bool,
    message: &Message,
    around: &[&Message],
) -> Option<Field> {
    let label = matches!(first, "repeated" | "optional");
    if label && in_oneof {
        return None;
    }
    let type_name = if label { tokens.next()? } else { first };
    let kind = match type_name {
        "map" if !label && !in_oneof => {
            tokens.expect("<")?;
            let key =
                scalar(tokens.next()?).filter(|key| !matches!(key, Scalar::Float | Scalar::Double | Scalar::Bytes))?;
            tokens.expect(",")?;
            let value = kind(tokens.next()?, message, around)?;
            tokens.expect(">")?;
            Kind::Map { key, value: Box::new(value) }
        }
        name => kind(name, message, around)?,
    };
    let name = tokens.name()?.to_owned();
    tokens.expect("=")?;
    let number = tokens.next()?.parse::<u32>().ok()?;
    tokens.expect(";")?;
    let is_sound = (1..=536_870_911).contains(&number) && !(19_000..=19_999).contains(&number);
    is_sound.then_some(Field { name, number, repeated: first == "repeated", kind })
}

fn kind(name: &str, message: &Message, around: &[&Message]) -> Option<Kind> {
    let known = || message.kind(name).or_else(|| around.iter().rev().find_map(|outer| outer.kind(name)));
    scalar(name).map(Kind::Scalar).or_else(known)
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

fn enumeration(tokens: &mut Tokens<'_>) -> Option<Enumeration> {
    let mut read = Enumeration { name: tokens.name()?.to_owned(), values: Vec::new() };
    tokens.expect("{")?;
    loop {
        match tokens.next()? {
            "}" => break,
            ";" => {}
            name => {
                super::tokens::is_name(name).then_some(())?;
                tokens.expect("=")?;
                let number = tokens.next()?.parse::<i32>().ok()?;
                tokens.expect(";")?;
                let is_new = read.values.iter().all(|known| known.number != number && known.name != name);
                is_new.then(|| read.values.push(EnumValue { name: name.to_owned(), number }))?;
            }
        }
    }
    (read.values.first()?.number == 0).then_some(read)
}
