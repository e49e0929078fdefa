//! Messages, field by field, into columns.

use windrow_block::{DataType, NotTypedReason};

use super::schema::{Enumeration, Field, Kind, Message, Scalar};
use crate::budget::Budget;
use crate::column::{Column, Field as StructField, Strings, Values};
use crate::input::Input;

/// One field of the rows.
pub(super) struct Growing {
    name: String,
    number: u32,
    kind: GrowingKind,
    rows: usize,
    /// For a column that takes NULL, which a field that isn't there is.
    nulls: Option<Vec<u8>>,
    /// In the message at hand.
    seen: bool,
}

enum GrowingKind {
    Number { scalar: Scalar, is_date: bool, data: Vec<u8> },
    Strings { ends: Vec<usize>, data: Vec<u8> },
    Enum { names: std::sync::Arc<Enumeration>, ends: Vec<usize>, data: Vec<u8> },
    List { ends: Vec<u64>, inner: Box<Growing> },
    Map { ends: Vec<u64>, pair: Vec<Growing> },
    Message(Vec<Growing>),
}

const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const DELIMITED: u64 = 2;
const FOUR_BYTES: u64 = 5;

const BROKEN: NotTypedReason = NotTypedReason::Syntax;
type Read<T> = Result<T, NotTypedReason>;

impl Growing {
    /// Nothing if ClickHouse may read such a field into such a type in another way than its values suggest.
    pub(super) fn new(field: &Field, wanted: &DataType) -> Option<Self> {
        match (field.repeated, unwrapped(wanted)) {
            (true, DataType::Array(inner)) if !is_nullable(wanted) => {
                let element = Growing::single(&field.name, field.number, &field.kind, inner)?;
                let kind = GrowingKind::List { ends: Vec::new(), inner: Box::new(element) };
                Some(Growing::of(&field.name, field.number, kind, false))
            }
            (true, _) => None,
            (false, _) => Growing::single(&field.name, field.number, &field.kind, wanted),
        }
    }

    fn of(name: &str, number: u32, kind: GrowingKind, takes_null: bool) -> Self {
        let nulls = takes_null.then(Vec::new);
        Growing { name: name.to_owned(), number, kind, rows: 0, nulls, seen: false }
    }

    fn single(name: &str, number: u32, kind: &Kind, wanted: &DataType) -> Option<Self> {
        let takes_null = is_nullable(wanted);
        let wanted = unwrapped(wanted);
        let kind = match (kind, wanted) {
            (Kind::Scalar(Scalar::String | Scalar::Bytes), wanted) if is_text(wanted) => {
                GrowingKind::Strings { ends: Vec::new(), data: Vec::new() }
            }
            (Kind::Scalar(scalar), wanted) if is_number(*scalar, wanted) => {
                let is_date = *wanted == DataType::Date;
                GrowingKind::Number { scalar: *scalar, is_date, data: Vec::new() }
            }
            (Kind::Enum(names), DataType::Enum8(_) | DataType::Enum16(_) | DataType::String) => {
                GrowingKind::Enum { names: names.clone(), ends: Vec::new(), data: Vec::new() }
            }
            (Kind::Map { key, value }, DataType::Map(wanted_key, wanted_value)) => {
                let key = Growing::single("key", 1, &Kind::Scalar(*key), wanted_key)?;
                let value = Growing::single("value", 2, value, wanted_value)?;
                GrowingKind::Map { ends: Vec::new(), pair: vec![key, value] }
            }
            (Kind::Message(message), DataType::Tuple(tuple)) if !takes_null => {
                let names = tuple.names.as_ref()?;
                GrowingKind::Message(elements(message, names, &tuple.elements)?)
            }
            _ => return None,
        };
        Some(Growing::of(name, number, kind, takes_null))
    }

    fn value(&mut self, wire: u64, input: &mut Input<'_>, budget: &mut Budget) -> Read<()> {
        if let GrowingKind::List { inner, .. } = &mut self.kind {
            return inner.element(wire, input, budget);
        }
        if let GrowingKind::Map { pair, .. } = &mut self.kind {
            return message(pair, &mut delimited(wire, input)?, budget);
        }
        // ClickHouse takes the last of several, or makes something of all of them.
        if std::mem::replace(&mut self.seen, true) {
            return Err(NotTypedReason::DuplicateField);
        }
        self.push(wire, input, budget)
    }

    /// Elements of a list may come one by one or packed.
    fn element(&mut self, wire: u64, input: &mut Input<'_>, budget: &mut Budget) -> Read<()> {
        let GrowingKind::Number { scalar, .. } = &self.kind else { return self.push(wire, input, budget) };
        let own_wire = wire_of(*scalar);
        if wire != DELIMITED {
            return self.push(wire, input, budget);
        }
        let mut packed = delimited(wire, input)?;
        while !packed.is_empty() {
            self.push(own_wire, &mut packed, budget)?;
        }
        Ok(())
    }

    fn push(&mut self, wire: u64, input: &mut Input<'_>, budget: &mut Budget) -> Read<()> {
        match &mut self.kind {
            GrowingKind::Number { scalar, data, .. } => {
                if wire != wire_of(*scalar) {
                    return Err(NotTypedReason::Value);
                }
                number(*scalar, input, data).ok_or(BROKEN)?;
            }
            GrowingKind::Strings { ends, data } => {
                data.extend_from_slice(delimited(wire, input)?.rest());
                ends.push(data.len());
            }
            GrowingKind::Enum { names, ends, data } => {
                let number = if wire == VARINT { input.varint() } else { None }.ok_or(NotTypedReason::Value)?;
                let value = names.values.iter().find(|value| i64::from(value.number) == number as i64);
                let value = value.ok_or(NotTypedReason::Value)?;
                budget.take(value.name.len())?;
                data.extend_from_slice(value.name.as_bytes());
                ends.push(data.len());
            }
            GrowingKind::Message(fields) => message(fields, &mut delimited(wire, input)?, budget)?,
            GrowingKind::List { .. } | GrowingKind::Map { .. } => return Err(NotTypedReason::Value),
        }
        self.rows += 1;
        if let Some(nulls) = &mut self.nulls {
            nulls.push(0);
        }
        Ok(())
    }

    /// The message at hand is over.
    fn end(&mut self, budget: &mut Budget) -> Read<()> {
        match &mut self.kind {
            GrowingKind::List { ends, inner } => {
                ends.push(inner.rows as u64);
                self.rows += 1;
                Ok(())
            }
            GrowingKind::Map { ends, pair } => {
                ends.push(pair[0].rows as u64);
                self.rows += 1;
                Ok(())
            }
            _ if std::mem::take(&mut self.seen) => Ok(()),
            _ => self.absent(budget),
        }
    }

    fn absent(&mut self, budget: &mut Budget) -> Read<()> {
        budget.take(16)?;
        self.rows += 1;
        if let Some(nulls) = &mut self.nulls {
            nulls.push(1);
        }
        match &mut self.kind {
            GrowingKind::Number { scalar, data, .. } => data.resize(data.len() + width_of(*scalar), 0),
            GrowingKind::Strings { ends, data } => ends.push(data.len()),
            GrowingKind::Enum { names, ends, data } => {
                if self.nulls.is_none() {
                    let first = names.values.first().ok_or(BROKEN)?;
                    budget.take(first.name.len())?;
                    data.extend_from_slice(first.name.as_bytes());
                }
                ends.push(data.len());
            }
            GrowingKind::Message(fields) => fields.iter_mut().try_for_each(|field| field.end(budget))?,
            GrowingKind::List { .. } | GrowingKind::Map { .. } => {}
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Option<Column<'static>> {
        let values = match self.kind {
            GrowingKind::Number { scalar, is_date, data } => number_values(scalar, is_date, data)?,
            GrowingKind::Strings { ends, data } | GrowingKind::Enum { ends, data, .. } => {
                Values::Strings(Strings { ends, data: data.into() })
            }
            GrowingKind::List { ends, inner } => Values::List { ends, inner: Box::new(inner.finish()?) },
            GrowingKind::Map { ends, pair } => {
                let [key, value] = <[Growing; 2]>::try_from(pair).ok()?;
                Values::Map { ends, key: Box::new(key.finish()?), value: Box::new(value.finish()?) }
            }
            GrowingKind::Message(fields) => {
                Values::Struct(fields.into_iter().map(struct_field).collect::<Option<_>>()?)
            }
        };
        let nulls = self.nulls.filter(|nulls| nulls.contains(&1));
        Some(Column { rows: self.rows, nulls, values })
    }
}

fn struct_field(field: Growing) -> Option<StructField<'static>> {
    Some(StructField { name: field.name.clone(), column: field.finish()? })
}

/// A whole message; the fields that it has not are ended as well.
pub(super) fn message(fields: &mut [Growing], input: &mut Input<'_>, budget: &mut Budget) -> Read<()> {
    while !input.is_empty() {
        let tag = input.varint().ok_or(BROKEN)?;
        let (number, wire) = (tag >> 3, tag & 7);
        if number == 0 || number > u64::from(u32::MAX >> 3) {
            return Err(BROKEN);
        }
        match fields.iter_mut().find(|field| u64::from(field.number) == number) {
            Some(field) => field.value(wire, input, budget)?,
            None => skip(wire, input)?,
        }
    }
    fields.iter_mut().try_for_each(|field| field.end(budget))
}

fn skip(wire: u64, input: &mut Input<'_>) -> Read<()> {
    let skipped = match wire {
        VARINT => input.varint().map(drop),
        EIGHT_BYTES => input.take(8).map(drop),
        FOUR_BYTES => input.take(4).map(drop),
        _ => return delimited(wire, input).map(drop),
    };
    skipped.ok_or(BROKEN)
}

pub(super) fn delimited<'a>(wire: u64, input: &mut Input<'a>) -> Read<Input<'a>> {
    if wire != DELIMITED {
        return Err(NotTypedReason::Value);
    }
    let length = input.varint().and_then(|length| usize::try_from(length).ok()).ok_or(BROKEN)?;
    input.take(length).map(Input::new).ok_or(BROKEN)
}

fn elements(message: &Message, names: &[String], wanted: &[DataType]) -> Option<Vec<Growing>> {
    if names.len() != message.fields.len() {
        return None;
    }
    let element = |(name, wanted): (&String, &DataType)| {
        let field = message.fields.iter().find(|field| field.name == *name)?;
        Growing::new(field, wanted)
    };
    names.iter().zip(wanted).map(element).collect()
}

fn wire_of(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::Fixed32 | Scalar::SFixed32 | Scalar::Float => FOUR_BYTES,
        Scalar::Fixed64 | Scalar::SFixed64 | Scalar::Double => EIGHT_BYTES,
        _ => VARINT,
    }
}

fn width_of(scalar: Scalar) -> usize {
    match scalar {
        Scalar::Bool => 1,
        Scalar::Int32 | Scalar::UInt32 | Scalar::SInt32 | Scalar::Fixed32 | Scalar::SFixed32 | Scalar::Float => 4,
        _ => 8,
    }
}

/// Appends a number that has the scalar's range.
fn number(scalar: Scalar, input: &mut Input<'_>, data: &mut Vec<u8>) -> Option<()> {
    match scalar {
        Scalar::Int32 => data.extend_from_slice(&i32::try_from(input.varint()? as i64).ok()?.to_le_bytes()),
        Scalar::UInt32 => data.extend_from_slice(&u32::try_from(input.varint()?).ok()?.to_le_bytes()),
        Scalar::SInt32 => data.extend_from_slice(&i32::try_from(input.zigzag()?).ok()?.to_le_bytes()),
        Scalar::Int64 | Scalar::UInt64 => data.extend_from_slice(&input.varint()?.to_le_bytes()),
        Scalar::SInt64 => data.extend_from_slice(&input.zigzag()?.to_le_bytes()),
        Scalar::Bool => data.push(u8::try_from(input.varint()?).ok().filter(|byte| *byte <= 1)?),
        Scalar::String | Scalar::Bytes => return None,
        fixed => data.extend_from_slice(input.take(width_of(fixed))?),
    }
    Some(())
}

fn number_values(scalar: Scalar, is_date: bool, data: Vec<u8>) -> Option<Values<'static>> {
    let width = width_of(scalar);
    let signed = match scalar {
        Scalar::Bool => return Some(Values::Bool(data)),
        Scalar::Float | Scalar::Double => return Some(Values::Float { width, data: data.into() }),
        Scalar::String | Scalar::Bytes => return None,
        Scalar::UInt32 | Scalar::UInt64 | Scalar::Fixed32 | Scalar::Fixed64 => false,
        _ => true,
    };
    // A number of days in 32 bits: those that Date holds are the same with and without sign.
    Some(if is_date { Values::Date(data.into()) } else { Values::Int { width, signed, data: data.into() } })
}

fn is_number(scalar: Scalar, wanted: &DataType) -> bool {
    use DataType as T;
    match scalar {
        Scalar::Bool => matches!(wanted, T::Bool | T::UInt8),
        Scalar::Float | Scalar::Double => matches!(wanted, T::Float32 | T::Float64),
        Scalar::UInt32 | Scalar::Fixed32 if matches!(wanted, T::Date | T::Ipv4) => true,
        _ => matches!(
            wanted,
            T::UInt8
                | T::UInt16
                | T::UInt32
                | T::UInt64
                | T::Int8
                | T::Int16
                | T::Int32
                | T::Int64
                | T::Float32
                | T::Float64
                | T::DateTime { .. }
        ),
    }
}

fn is_text(wanted: &DataType) -> bool {
    matches!(wanted, DataType::String | DataType::FixedString(_) | DataType::Uuid)
}

fn unwrapped(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::LowCardinality(inner) | DataType::Nullable(inner) => unwrapped(inner),
        other => other,
    }
}

fn is_nullable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Nullable(_) => true,
        DataType::LowCardinality(inner) => is_nullable(inner),
        _ => false,
    }
}
